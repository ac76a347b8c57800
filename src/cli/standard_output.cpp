// Writes to standard output; a reader that went away ends the program quietly.
#include "cli/standard_output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "core/error.h"
#include "core/terminal_line.h"
#include "core/text/text.h"

namespace finetune {
namespace {

// Asks the pipe itself, since an earlier write may have failed and its errno is gone.
bool reader_is_gone() {
  pollfd reader{STDOUT_FILENO, 0, 0};
  return ::poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0;
}

[[noreturn]] void failed(int error) {
  if (error == EPIPE || reader_is_gone()) throw ReaderGone{};
  throw model_error("standard output cannot be written: ", std::strerror(error));
}

}  // namespace

void write_standard_output(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) failed(errno);
}

void write_lines(std::string_view lines) {
  write_standard_output(prose_for(STDOUT_FILENO, lines));
}

size_t standard_output_columns() {
  constexpr int64_t kLeast = 40, kMost = 120;
  const char* given = std::getenv("COLUMNS");
  const auto columns = parse_int(given ? given : "").value_or(terminal_columns(STDOUT_FILENO));
  return size_t(std::clamp(columns, kLeast, kMost));
}

void flush_standard_output() {
  errno = 0;
  std::cout.flush();
  if (!std::cout || std::fflush(stdout) != 0 || std::ferror(stdout)) failed(errno ? errno : EIO);
}

}  // namespace finetune
