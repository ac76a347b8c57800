// The log: lines to standard error and, once a run has a directory, to its log.txt. Nothing is
// written to standard error before open_console(), so a failed validation prints only its one line.
// Logged text stays on one line and cannot control a terminal: it goes through printable_message().
// Lines in the file begin with the time.
//
// A line that begins with "warning: " is a warning. It is written to standard error even with
// --quiet, only once however often it is logged, and counted for --fail-on-warning.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/text.h"

namespace finetune {

void log_line(std::string_view line);  // thread-safe; held back until open_console()
// `shown` is the line on standard error, where it must fit into console_columns().
void log_line(std::string_view line, std::string_view shown);
// The width of standard error's terminal; 0: no terminal, or of unknown width.
size_t console_columns();

template <typename... Parts>
void log(const Parts&... parts) {
  log_line(concat(parts...));
}

template <typename... Parts>
void warn(const Parts&... parts) {
  log_line(concat("warning: ", parts...));
}
// Counts a warning that the command prints in its own results, as `check` does.
void count_warning(std::string_view text);
// The distinct warnings so far, in order, without "warning: ".
std::vector<std::string> logged_warnings();

// During its lifetime warnings go to the log file and into texts(), not to standard error or
// logged_warnings().
class CollectedWarnings {
 public:
  CollectedWarnings();
  ~CollectedWarnings();
  CollectedWarnings(const CollectedWarnings&) = delete;
  CollectedWarnings& operator=(const CollectedWarnings&) = delete;
  std::vector<std::string> texts() const { return logged_warnings(); }

 private:
  std::vector<std::string> outer_;
};

void log_to_file(std::string_view line);  // writes to the log file, not to standard error

// For a process other than rank 0: its lines are dropped, but warnings still count.
void mute_log();
// Writes held-back lines and all later ones to standard error; with `quiet` only warnings.
void open_console(bool quiet);
// Opens a file for appending and writes held-back lines too. Error(model).
void open_log_file(const std::filesystem::path& path);
// Error(model) if some lines could not be written, even after retrying with each later line.
void close_log_file();
void discard_held_lines();  // lines logged before a file or the console was open

// The progress line: rewritten in place on a terminal; elsewhere, and in the file, a line every few
// seconds: on standard error not in the first ones. With --quiet it is only in the file, with
// --no-progress nowhere.
void enable_progress(bool on);
// Commands whose work may be short show none before, so that one that fails prints only one line.
inline constexpr double kSecondsWithoutProgress = 2;
struct ProgressPart {
  std::string text;
  int rank = 0;  // on a narrow terminal parts with the highest rank are omitted first
};
void show_progress(const std::vector<ProgressPart>& parts, bool force = false);
void show_progress(std::string_view line, bool force = false);
void clear_progress();

// The parts that fit into `columns`, separated by two spaces; parts of rank 0 are always included.
std::string fitting_parts(std::vector<ProgressPart> parts, size_t columns);

}  // namespace finetune
