// Texts read whole: configurations, vocabularies, small JSON.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"

namespace finetune {

// A regular file of up to 1 GiB. Throws Error(code): missing, no regular file, unreadable, larger,
// or shorter at its end than when it was opened.
std::string read_text_file(const std::filesystem::path& path, ExitCode code = ExitCode::data);

// Of each its text, by its name without directories.
std::map<std::string, std::string> contents_of(const std::vector<std::filesystem::path>& files,
                                               ExitCode code);

// Up to 64 MiB of a regular file, or of what the shell connects: `<(...)`, the standard input.
// Errors are those of read_text_file. A named pipe is refused: nobody may ever write to it.
std::string read_text_input(const std::filesystem::path& path, ExitCode code);

// The first bytes of a regular file; nothing of what is no such file. Error(code): what it holds
// cannot be read.
std::string read_beginning(const std::filesystem::path& path, size_t most,
                           ExitCode code = ExitCode::model);

// The errors of a file of data that is read later. A pipe, and what is_readable_device() says, will
// do.
void require_readable(const std::filesystem::path& path, ExitCode code = ExitCode::data);

}  // namespace finetune
