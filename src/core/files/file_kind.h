// Finds out what a path is, and opens regular files for reading. No function here waits for a
// pipe's other end, and all messages are short.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/files/descriptor.h"

struct stat;

namespace finetune {

enum class FileKind { absent, file, directory, pipe, socket, device };

// Follows links. Error(code) if the kind cannot be determined: the name is too long, links form a
// circle, or a folder may not be searched.
FileKind kind_of(const std::filesystem::path& path, ExitCode code);
bool path_exists(const std::filesystem::path& path, ExitCode code);
bool directory_exists(const std::filesystem::path& path, ExitCode code);
// The size of a regular file in bytes; Error(code) for anything else.
uint64_t file_bytes(const std::filesystem::path& path, ExitCode code);

// Error(code), saying what `path` is, unless it is a regular file.
void require_file(const std::filesystem::path& path, ExitCode code);
// The same, and opens the regular file.
Descriptor open_file(const std::filesystem::path& path, ExitCode code);

// Whether a device can be read like a pipe: the terminal at standard input, and /dev/null. Other
// devices may be endless (/dev/zero).
bool is_readable_device(const struct stat& info);
// Error(code) unless it is a file, a pipe or such a device.
void require_stream(const struct stat& info, const std::filesystem::path& path, ExitCode code);

// "PATH: is a pipe, a file is needed"
Error not_a_file(const std::filesystem::path& path, const struct stat& info, ExitCode code);
// Whether a system call failed at the limit of open files.
bool is_open_files(int error);
// The exit code of a failed system call: `device` if memory or open files ran out; `model` instead
// of `usage` if the disk failed; else `code`.
ExitCode code_of_failure(int error, ExitCode code);
// "PATH: WHAT" and the system's text for `error`
Error system_failure(const std::filesystem::path& path, int error, ExitCode code,
                     std::string_view what = "");
// "PATH: cannot be written: " and the system's text for `error`
Error write_failure(const std::filesystem::path& path, int error);

// A path for a message: control bytes are escaped, the middle of a long path is omitted.
std::string printable_path(const std::filesystem::path& path);

}  // namespace finetune
