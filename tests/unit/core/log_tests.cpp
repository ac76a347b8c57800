// The log file on a disk that is full for a while. Also, which parts of the progress line fit a
// terminal.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <csignal>

#include "core/error.h"
#include "core/files/text_file.h"
#include "core/log.h"
#include "temporary_directory.h"

using namespace finetune;

namespace {

// No file grows beyond this size, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

std::string without_times(const std::string& text) {
  std::string out;
  for (std::string_view line : split(text, '\n')) {
    if (!line.empty()) out += concat(line.substr(line.find(' ') + 1), "\n");
  }
  return out;
}

}  // namespace

TEST_CASE("a line that cannot be written is retried with the next one, or is an error") {
  test::TemporaryDirectory scratch;
  const auto path = scratch / "log.txt";
  discard_held_lines();
  open_log_file(path);
  log_to_file("first");
  {
    const FileSizeLimit full(40);  // in the middle of the second line
    log_to_file("second");
    CHECK(read_text_file(path).size() == 40);
  }
  log_to_file("third");
  CHECK(without_times(read_text_file(path)) == "first\nsecond\nthird\n");
  {
    const FileSizeLimit full(100);
    log_to_file("fourth");
    CHECK_THROWS_WITH_AS(close_log_file(), doctest::Contains("log.txt: cannot be written: "),
                         Error);
  }
  CHECK_NOTHROW(close_log_file());  // it is closed
}

TEST_CASE("a warning is written once and counted, whatever its parts") {
  test::TemporaryDirectory scratch;
  const auto path = scratch / "log.txt";
  const size_t before = logged_warnings().size();
  open_log_file(path);
  warn("column ", 3, " is empty");
  log("warning: column 3 is empty");  // a line composed elsewhere
  log("warnings are no lines like this one");
  close_log_file();
  CHECK(without_times(read_text_file(path)) ==
        "warning: column 3 is empty\nwarnings are no lines like this one\n");
  REQUIRE(logged_warnings().size() == before + 1);
  CHECK(logged_warnings().back() == "column 3 is empty");
  count_warning("column 4 is empty");
  CHECK(logged_warnings().size() == before + 2);
  discard_held_lines();  // not written to standard error, so not counted either
  CHECK(logged_warnings().size() == before + 1);
}

TEST_CASE("collected warnings belong to one run and do not count outside of it") {
  test::TemporaryDirectory scratch;
  const std::vector<std::string> before = logged_warnings();
  {
    const CollectedWarnings collected;
    open_log_file(scratch / "log.txt");
    warn("the first run's");
    close_log_file();
    CHECK(collected.texts() == std::vector<std::string>{"the first run's"});
  }
  {
    const CollectedWarnings collected;
    open_log_file(scratch / "log2.txt");
    warn("the first run's");
    close_log_file();
    CHECK(collected.texts() == std::vector<std::string>{"the first run's"});
    CHECK(without_times(read_text_file(scratch / "log2.txt")) == "warning: the first run's\n");
  }
  CHECK(logged_warnings() == before);
}

TEST_CASE("parts of the highest rank are left out first, those of rank 0 never") {
  const std::vector<ProgressPart> parts = {
      {"step 1/9", 0}, {"loss 2", 2}, {"é/s", 3}, {"left 0:01", 1}};
  CHECK(fitting_parts(parts, 200) == "step 1/9  loss 2  é/s  left 0:01");
  CHECK(fitting_parts(parts, 32) == "step 1/9  loss 2  é/s  left 0:01");  // characters, not bytes
  CHECK(fitting_parts(parts, 31) == "step 1/9  loss 2  left 0:01");
  CHECK(fitting_parts(parts, 26) == "step 1/9  left 0:01");
  CHECK(fitting_parts(parts, 18) == "step 1/9");
  CHECK(fitting_parts(parts, 1) == "step 1/9");
  CHECK(fitting_parts({}, 1) == "");
}
