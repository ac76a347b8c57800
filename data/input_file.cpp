#include "data/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/descriptor.h"
#include "core/error.h"
#include "core/files.h"

namespace finetune {
namespace {

constexpr size_t kCopyBlock = 256 << 10;
constexpr int kMostWaitMilliseconds = 200;

class PipeCopy {
 public:
  explicit PipeCopy(const fs::path& pipe)
      : source_name_(input_name(pipe)), file_name_(temporary_name()) {
    if (file_.number() < 0) throw write_failure();
    ::unlink(file_name_.c_str());
  }

  void write(std::string_view bytes) {
    if (!write_all(file_.number(), bytes)) throw write_failure();
  }
  fs::path path() const { return concat("/proc/self/fd/", file_.number()); }

 private:
  static std::string temporary_name() {
    const char* directory = ::getenv("TMPDIR");
    return concat(directory && *directory ? directory : "/tmp", "/finetune-XXXXXX");
  }
  Error write_failure() const {
    return model_error(file_name_, ": a copy of ", source_name_,
                       " cannot be written: ", std::strerror(errno),
                       " (TMPDIR names another directory)");
  }

  std::string source_name_, file_name_;
  Descriptor file_{::mkostemp(file_name_.data(), O_CLOEXEC)};
};

// Until there is something to read, or the end. A handled signal ends poll(), but not read().
void wait_for_bytes(int descriptor, const std::function<void()>& check_stop) {
  for (;;) {
    if (check_stop) check_stop();
    pollfd state{descriptor, POLLIN, 0};
    const int ready = ::poll(&state, 1, kMostWaitMilliseconds);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return;  // read() says what is wrong
  }
}

}  // namespace

bool is_pipe(const fs::path& path) {
  std::error_code ignored;
  return path == "-" || (fs::exists(path, ignored) && !fs::is_directory(path, ignored) &&
                         !fs::is_regular_file(path, ignored));
}

std::string input_name(const fs::path& path) {
  return path == "-" ? "standard input" : path.string();
}

InputFile rereadable(InputFile file, const std::function<void()>& check_stop) {
  if (!is_pipe(file.content)) return file;
  const fs::path& path = file.name;
  auto copy = std::make_shared<PipeCopy>(path);
  // Without O_NONBLOCK the call would wait for the pipe's other end, whatever signal comes.
  const Descriptor source(path == "-" ? ::dup(STDIN_FILENO)
                                      : ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (source.number() < 0) throw data_error(input_name(path), ": ", std::strerror(errno));
  std::vector<char> block(kCopyBlock);
  for (;;) {
    wait_for_bytes(source.number(), check_stop);
    const ssize_t count = ::read(source.number(), block.data(), block.size());
    if (count == 0) break;
    if (count > 0) {
      copy->write({block.data(), size_t(count)});
    } else if (errno != EINTR && errno != EAGAIN) {
      throw data_error(input_name(path), ": cannot be read: ", std::strerror(errno));
    }
  }
  file.content = copy->path();
  file.copy = std::move(copy);
  return file;
}

}  // namespace finetune
