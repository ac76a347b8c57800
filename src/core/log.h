// The log: lines to standard error and, once a run has a directory, to its log.txt. Nothing is
// written to standard error before open_console(): a failed validation leaves exactly its one line.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/text.h"

namespace finetune {

void log_line(std::string_view line);  // thread-safe; held back until open_console()
template <typename... Parts>
void log(const Parts&... parts) { log_line(concat(parts...)); }

void open_console(bool quiet);                         // from now on lines go to standard error
void open_log_file(const std::filesystem::path& path);  // appends; held-back lines are written too
void close_log_file();

// The one progress line: rewritten in place on a terminal, a plain line every few seconds
// otherwise, nothing with --no-progress or --quiet.
void enable_progress(bool on);
void show_progress(std::string_view line, bool force = false);
void clear_progress();

}  // namespace finetune
