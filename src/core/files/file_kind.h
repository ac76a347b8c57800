// What a path leads to, and opening it to be read: nothing but a regular file, unless a caller asks
// for more. No function here waits for a pipe's other end, and every message is short.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/error.h"
#include "core/files/descriptor.h"

struct stat;

namespace finetune {

enum class FileKind { absent, file, directory, pipe, socket, device };

// Links are followed. Error(code) where nobody can tell: a name that is too long, links in a
// circle, a folder that may not be searched.
FileKind kind_of(const std::filesystem::path& path, ExitCode code);
bool path_exists(const std::filesystem::path& path, ExitCode code);
bool directory_exists(const std::filesystem::path& path, ExitCode code);
// Bytes of a regular file; Error(code) for anything else.
uint64_t file_bytes(const std::filesystem::path& path, ExitCode code);

// Error(code) that says what `path` is and that a file is needed, for all but a regular file.
void require_file(const std::filesystem::path& path, ExitCode code);
// The same, for a regular file that is then open.
Descriptor open_file(const std::filesystem::path& path, ExitCode code);

// A device that is read like a pipe: the terminal at the standard input, and /dev/null. Others may
// have no end (/dev/zero).
bool is_readable_device(const struct stat& info);
// Error(code) for what is neither a file nor a pipe nor such a device.
void require_stream(const struct stat& info, const std::filesystem::path& path, ExitCode code);

// "PATH: is a pipe, a file is needed"
Error not_a_file(const std::filesystem::path& path, const struct stat& info, ExitCode code);
// "PATH: what the system says of `error`"
Error system_failure(const std::filesystem::path& path, int error, ExitCode code);

// A path for a message: control bytes are escaped, the middle of a long one is left out.
std::string printable_path(const std::filesystem::path& path);

}  // namespace finetune
