// Breaks prose for terminals, and draws the last line, also from the SIGWINCH handler.
#include "core/terminal_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/text/text.h"

namespace finetune {
namespace {

constexpr int kUsualColumns = 80, kLeastColumns = 40;
constexpr size_t kProseIndent = 2, kBlockIndent = 4;
constexpr std::string_view kGap = "  ";             // between cells of a table's line
constexpr std::string_view kEraseBelow = "\033[J";  // from the cursor to the end of the screen

// The visible text. The signal handler reads it only while no thread draws.
char shown[1024];
std::atomic<size_t> shown_size{0};
std::atomic<bool> drawing{false}, resized{false};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<size_t>::is_always_lock_free);

void write_all_of(const char* text, size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(STDERR_FILENO, text, size);
    if (written < 0 && errno != EINTR) return;  // a closed standard error must not stop a run
    if (written <= 0) continue;
    text += written;
    size -= size_t(written);
  }
}

// Makes a single write, so that no other output interleaves, and only async-signal-safe calls.
void write_shown() {
  char buffer[sizeof shown + 16];
  size_t size = std::min(shown_size.load(), size_t(std::max(1, terminal_columns() - 1)));
  // Do not cut inside a UTF-8 character.
  while (size > 0 && size < shown_size && (static_cast<unsigned char>(shown[size]) & 0xC0) == 0x80)
    --size;
  buffer[0] = '\r';
  std::memcpy(buffer + 1, shown, size);
  std::memcpy(buffer + 1 + size, kEraseBelow.data(), kEraseBelow.size());
  buffer[1 + size + kEraseBelow.size()] = '\r';
  write_all_of(buffer, size + kEraseBelow.size() + 2);
}

extern "C" void on_resize(int) {
  const int error = errno;
  resized = true;
  if (!drawing && shown_size > 0) write_shown();
  errno = error;
}

void follow_resizes() {
  struct sigaction action {};
  action.sa_handler = on_resize;
  action.sa_flags = SA_RESTART;  // restart interrupted reads and writes
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGWINCH, &action, nullptr);
}

}  // namespace

bool has_terminal() {
  static const bool terminal = [] {
    const char* kind = std::getenv("TERM");
    return ::isatty(STDERR_FILENO) && !(kind && std::string_view(kind) == "dumb");
  }();
  return terminal;
}

bool has_colors() {
  const char* none = std::getenv("NO_COLOR");
  return has_terminal() && !(none && *none);
}

int terminal_columns() {
  return terminal_columns(STDERR_FILENO);
}

int known_columns(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int terminal_columns(int descriptor) {
  const int known = known_columns(descriptor);
  return known > 0 ? known : kUsualColumns;
}

std::string wrapped(std::string line, std::string_view text, size_t indent, size_t columns) {
  std::string out;
  bool at_start = true;
  for (std::string_view word : split(text, ' ')) {
    if (!at_start && count_code_points(line) + 1 + count_code_points(word) > columns) {
      out += line + "\n";
      line.assign(indent, ' ');
      at_start = true;
    }
    line += concat(at_start ? "" : " ", word);
    at_start = false;
  }
  return out + line + "\n";
}

namespace {

// The words of a shell command, each with the blanks before it. Quoted blanks are part of a word.
std::vector<std::string_view> shell_words(std::string_view command) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  char quote = 0;
  for (size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '\\') {
      ++i;
    } else if (c == ' ' && i > begin && command[i - 1] != ' ') {
      words.push_back(command.substr(begin, i - begin));
      begin = i;
    }
  }
  words.push_back(command.substr(begin));
  return words;
}

bool is_option(std::string_view word) {
  const std::string_view name = trim(word);
  return name.size() > 1 && name[0] == '-';
}

}  // namespace

std::string folded_command(std::string_view command, size_t indent, size_t columns) {
  constexpr std::string_view kGoesOn = " \\";
  if (count_code_points(command) <= columns) return std::string(command);
  const std::vector<std::string_view> words = shell_words(command);
  std::string out, line;
  for (size_t i = 0; i < words.size(); ++i) {
    size_t needed = count_code_points(words[i]);
    if (is_option(words[i])) {
      size_t with_values = needed;
      for (size_t k = i + 1; k < words.size() && !is_option(words[k]); ++k)
        with_values += count_code_points(words[k]);
      if (indent + with_values + kGoesOn.size() <= columns) needed = with_values;
    }
    if (i > 0 && count_code_points(line) + needed + kGoesOn.size() > columns) {
      out += concat(line, kGoesOn, "\n");
      line = std::string(indent, ' ').append(trim(words[i]));
    } else {
      line += words[i];
    }
  }
  return out + line;
}

namespace {

// The column where the last cell of a table's line begins; 0 for prose.
size_t last_cell(std::string_view line) {
  const size_t gap = line.rfind(kGap);
  return gap == line.npos ? 0 : gap + kGap.size();
}

size_t longest_word(std::string_view text) {
  size_t longest = 0;
  for (std::string_view word : split(text, ' ')) {
    longest = std::max(longest, count_code_points(word));
  }
  return longest;
}

// One line, and its end, in lines of at most `columns` as far as its words allow that.
std::string fitted(std::string_view line, size_t columns) {
  const size_t begin = last_cell(line);
  const std::string_view before = line.substr(0, begin), cell = line.substr(begin);
  const size_t at = count_code_points(before);
  if (cell.starts_with("finetune ") && begin > 0) {
    return folded_command(line, at + kBlockIndent, columns) + "\n";
  }
  if (begin == 0) return wrapped("", line, kProseIndent, columns);
  const bool is_narrow = count_code_points(line) <= columns;
  if (is_narrow || at >= columns || cell.find(' ') == cell.npos) return concat(line, "\n");
  if (at + longest_word(cell) <= columns) return wrapped(std::string(before), cell, at, columns);
  const size_t end = before.find_last_not_of(' ') + 1;  // npos + 1 == 0
  const std::string above = end == 0 ? "" : concat(before.substr(0, end), "\n");
  return above + wrapped(std::string(kBlockIndent, ' '), cell, kBlockIndent, columns);
}

}  // namespace

std::string prose_for(int descriptor, std::string_view lines) {
  const int width = known_columns(descriptor);
  if (width == 0) return std::string(lines);
  const auto columns = size_t(std::max(kLeastColumns, width));
  std::string out;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size() - 1) + 1;
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end);
    out += line.back() == '\n' ? fitted(line.substr(0, end - 1), columns) : std::string(line);
  }
  return out;
}

void draw_terminal_line(std::string_view text) {
  static const bool followed = (follow_resizes(), true);
  (void)followed;
  drawing = true;
  const size_t size = std::min(text.size(), sizeof shown);
  std::memcpy(shown, text.data(), size);
  shown_size = size;
  do {  // repeat if the width changed meanwhile
    resized = false;
    write_shown();
  } while (resized);
  drawing = false;
}

void erase_terminal_line() {
  if (shown_size == 0) return;
  drawing = true;
  shown_size = 0;
  write_all_of("\r", 1);
  write_all_of(kEraseBelow.data(), kEraseBelow.size());
  drawing = false;
}

bool terminal_was_resized() {
  return resized;
}

}  // namespace finetune
