// The log's outputs: standard error, log.txt and the progress line.
#include "core/log.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/files/files.h"
#include "core/terminal_line.h"
#include "core/text/printable.h"

namespace finetune {
namespace {

constexpr size_t kLongestLine = 4000;
constexpr size_t kMostWarnings = 10000;  // remembered, to log each only once
constexpr std::string_view kWarning = "warning:", kWarningTitle = "warning: ";
// Lines about the input that are shown even with --quiet, but do not fail --fail-on-warning.
constexpr std::string_view kNoteTitle = "note: ";
constexpr double kTerminalInterval = 0.1, kPlainInterval = 5;  // seconds

struct State {
  std::mutex mutex;
  bool console_open = false;
  bool quiet = false;
  bool muted = false;
  bool progress = true;
  double next_progress = 0;  // compared with seconds_now(); 0: none was shown
  double next_file_progress = 0;
  std::vector<std::string> held_console;
  std::vector<std::string> held_file;
  std::vector<std::string> warnings;  // without their title
  bool collects_warnings = false;     // CollectedWarnings
  int file = -1;
  std::filesystem::path file_path;
  std::string unwritten;  // not yet in the file: retried with each line
  int file_error = 0;
};

State& state() {
  static State instance;
  return instance;
}

void put(std::string_view text) {
  size_t written = std::fwrite(text.data(), 1, text.size(), stderr);
  (void)written;  // a closed standard error must not stop a run
}

void put_line(std::string_view line) {
  std::string text = prose_for(STDERR_FILENO, concat(line, "\n"));
  if (line.starts_with(kWarning) && has_colors()) {
    text.replace(0, kWarning.size(), concat("\033[33m", kWarning, "\033[0m"));
  }
  put(text);
}

void write_on(State& s) {
  while (!s.unwritten.empty()) {
    const ssize_t count = ::write(s.file, s.unwritten.data(), s.unwritten.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      s.file_error = errno;
      return;
    }
    s.unwritten.erase(0, size_t(count));
  }
}

void write_to_file(State& s, std::string_view line) {
  s.unwritten.append(line).append("\n");
  write_on(s);
}

// Local time with its UTC offset: 2026-11-24T09:30:00+0100.
std::string timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[40];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &local));
}

void to_file(State& s, std::string_view line) {
  const std::string stamped = concat(timestamp(), " ", line);
  if (s.file >= 0)
    write_to_file(s, stamped);
  else
    s.held_file.push_back(stamped);
}

// Returns false if the warning was remembered before.
bool remember_warning(State& s, std::string text) {
  if (std::find(s.warnings.begin(), s.warnings.end(), text) != s.warnings.end()) return false;
  if (s.warnings.size() < kMostWarnings) s.warnings.push_back(std::move(text));
  return true;
}

}  // namespace

void log_to_file(std::string_view text) {
  const std::string line = printable_message(text, kLongestLine);
  State& s = state();
  std::lock_guard lock(s.mutex);
  to_file(s, line);
}

void log_line(std::string_view text) {
  log_line(text, text);
}

size_t console_columns() {
  return size_t(known_columns(STDERR_FILENO));
}

void log_line(std::string_view text, std::string_view shown_text) {
  const std::string line = printable_message(text, kLongestLine);
  const std::string shown = printable_message(shown_text, kLongestLine);
  State& s = state();
  std::lock_guard lock(s.mutex);
  const bool is_warning = line.starts_with(kWarningTitle);
  if (is_warning && !remember_warning(s, line.substr(kWarningTitle.size()))) return;
  if (s.muted) return;
  to_file(s, line);
  if (is_warning ? s.collects_warnings : s.quiet && !line.starts_with(kNoteTitle)) return;
  if (!s.console_open) {
    s.held_console.push_back(shown);
    return;
  }
  erase_terminal_line();
  put_line(shown);
}

void count_warning(std::string_view text) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  remember_warning(s, printable_message(text, kLongestLine));
}

std::vector<std::string> logged_warnings() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  return s.warnings;
}

CollectedWarnings::CollectedWarnings() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.collects_warnings = true;
  outer_ = std::exchange(s.warnings, {});
}

CollectedWarnings::~CollectedWarnings() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.collects_warnings = false;
  s.warnings = std::move(outer_);
}

void mute_log() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.muted = true;
}

void open_console(bool quiet) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.console_open = true;
  s.quiet = quiet;
  for (const std::string& line : s.held_console) {
    const bool is_shown = line.starts_with(kWarningTitle) || line.starts_with(kNoteTitle);
    if (!quiet || is_shown) put_line(line);
  }
  s.held_console.clear();
}

void open_log_file(const std::filesystem::path& path) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.file = open_for_appending(path, false);
  s.file_path = path;
  s.unwritten.clear();
  for (const auto& line : s.held_file) write_to_file(s, line);
  s.held_file.clear();
}

void close_log_file() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (s.file < 0) return;
  write_on(s);
  int error = s.unwritten.empty() ? 0 : s.file_error;
  if (::close(std::exchange(s.file, -1)) != 0 && error == 0) error = errno;
  if (error != 0) {
    throw write_failure(s.file_path, error);
  }
}

void discard_held_lines() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  for (const std::string& line : s.held_console) {
    if (line.starts_with(kWarningTitle)) std::erase(s.warnings, line.substr(kWarningTitle.size()));
  }
  s.held_file.clear();
  s.held_console.clear();
}

void enable_progress(bool on) {
  state().progress = on;
}

std::string fitting_parts(std::vector<ProgressPart> parts, size_t columns) {
  for (;;) {
    std::string line;
    for (const ProgressPart& part : parts) line += concat(line.empty() ? "" : "  ", part.text);
    const auto least = std::max_element(
        parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
    if (count_code_points(line) <= columns || least == parts.end() || least->rank == 0) return line;
    parts.erase(least);
  }
}

void show_progress(const std::vector<ProgressPart>& parts, bool force) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (!s.progress || !s.console_open || s.muted) return;
  const double now = seconds_now();
  if (s.file >= 0 && (force || now >= s.next_file_progress)) {
    to_file(s, fitting_parts(parts, kLongestLine));
    s.next_file_progress = now + kPlainInterval;
  }
  if (s.quiet) return;
  if (!force && now < s.next_progress && !(has_terminal() && terminal_was_resized())) return;
  const bool is_first = s.next_progress == 0;
  if (has_terminal()) {
    // Leaves the last column free: some terminals wrap when it is used.
    draw_terminal_line(fitting_parts(parts, size_t(std::max(1, terminal_columns() - 1))));
    s.next_progress = now + kTerminalInterval;
  } else {
    // Work that takes seconds needs no lines of progress.
    if (force || !is_first) put(concat(fitting_parts(parts, kLongestLine), "\n"));
    s.next_progress = now + kPlainInterval;
  }
}

void show_progress(std::string_view line, bool force) {
  show_progress(std::vector<ProgressPart>{{std::string(line), 0}}, force);
}

void clear_progress() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  erase_terminal_line();
}

}  // namespace finetune
