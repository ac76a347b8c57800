// The log: lines to standard error and, once a run has a directory, to its log.txt. Nothing is
// written to standard error before open_console(): a failed validation leaves exactly its one line.
// A line stays one and harmless whatever it quotes: each goes through printable_message(). In the
// file each begins with its time.
//
// A line that begins with "warning: " is a warning. It goes to standard error even with --quiet, it
// is written once however often it is logged, and it is counted for --fail-on-warning.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/text.h"

namespace finetune {

void log_line(std::string_view line);  // thread-safe; held back until open_console()
template <typename... Parts>
void log(const Parts&... parts) {
  log_line(concat(parts...));
}

template <typename... Parts>
void warn(const Parts&... parts) {
  log_line(concat("warning: ", parts...));
}
// Counts a warning that the command prints among its results, as `check` does.
void count_warning(std::string_view text);
// The warnings so far, each text once, in their order and without "warning: ".
std::vector<std::string> logged_warnings();

// While it lives, warnings go to the log file and into texts(). They are not written to standard
// error, and logged_warnings() does not have them.
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

void log_to_file(std::string_view line);  // what standard error gets in another way, or not at all

// For a process that another one speaks for: its lines go nowhere. Its warnings still count.
void mute_log();
// From now on lines go to standard error; with `quiet` warnings alone. Held-back lines come first.
void open_console(bool quiet);
// Appends; held-back lines are written too. Error(model).
void open_log_file(const std::filesystem::path& path);
// Error(model): not every line could be written, though each was tried again with the next ones.
void close_log_file();
void discard_held_lines();  // what was said before a file or the console was there

// The one progress line: rewritten in place on a terminal, a plain line every few seconds
// otherwise and in the file. With --quiet it is in the file alone, with --no-progress nowhere.
void enable_progress(bool on);
struct ProgressPart {
  std::string text;
  int rank = 0;  // where the terminal is too narrow, parts of the highest rank are left out first
};
void show_progress(const std::vector<ProgressPart>& parts, bool force = false);
void show_progress(std::string_view line, bool force = false);
void clear_progress();

// The parts that fit into so many columns, two spaces between them; at least those of rank 0.
std::string fitting_parts(std::vector<ProgressPart> parts, size_t columns);

}  // namespace finetune
