// Reads whole text files: configurations, vocabularies, small JSON.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"

namespace finetune {

// Reads a regular file of up to 1 GiB. Error(code) if it is missing, not regular, unreadable,
// larger, or shorter at the end than when it was opened.
std::string read_text_file(const std::filesystem::path& path, ExitCode code = ExitCode::data);

// Maps each file's name without directories to its text.
std::map<std::string, std::string> contents_of(const std::vector<std::filesystem::path>& files,
                                               ExitCode code);

// Reads up to 64 MiB of a regular file, or of a stream from the shell: `<(...)`, standard input.
// Errors as in read_text_file. A named pipe is refused because it may have no writer.
std::string read_text_input(const std::filesystem::path& path, ExitCode code);

// Returns the first `most` bytes of a regular file, or "" for anything else. Error(code) if it
// cannot be read.
std::string read_beginning(const std::filesystem::path& path, size_t most,
                           ExitCode code = ExitCode::model);

// Throws the errors of a data file that will be read later. Pipes, and devices accepted by
// is_readable_device(), are fine.
void require_readable(const std::filesystem::path& path, ExitCode code = ExitCode::data);

}  // namespace finetune
