// Opens a data file so that it can be read again: a pipe is copied to a nameless file first.
#include "data/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/files/descriptor.h"
#include "core/files/file_kind.h"
#include "core/files/files.h"
#include "core/files/path_advice.h"
#include "data/source/temporary_copy.h"

namespace finetune {
namespace {

constexpr size_t kCopyBlock = 256 << 10;
constexpr int kMostWaitMilliseconds = 200;
constexpr uint64_t kMostInMemory = uint64_t{1} << 30;

using Sink = std::function<void(std::string_view)>;

class MemoryCopy {
 public:
  explicit MemoryCopy(const fs::path& pipe) : source_name_(input_name(pipe)) {
    if (file_.number() < 0) throw write_failure();
  }

  void write(std::string_view bytes) {
    size_ += bytes.size();
    if (size_ > kMostInMemory) {
      throw data_error(source_name_, ": brings more than ", kMostInMemory >> 20,
                       " MiB, too much to be kept in memory; write it to a file first");
    }
    if (!write_all(file_.number(), bytes)) throw write_failure();
  }
  fs::path path() const { return concat("/proc/self/fd/", file_.number()); }

 private:
  Error write_failure() const {
    return device_error(source_name_, ": cannot be kept in memory: ", start_failure(errno));
  }

  std::string source_name_;
  uint64_t size_ = 0;
  Descriptor file_{::memfd_create("finetune-input", MFD_CLOEXEC)};
};

// Waits until there is something to read, or the end. Returns false after `most_wait` seconds, if
// that is not 0. poll() is needed because a handled signal ends poll() but not read().
bool wait_for_bytes(int descriptor, double most_wait, const std::function<void()>& check_stop) {
  const double begin = seconds_now();
  for (;;) {
    if (check_stop) check_stop();
    pollfd state{descriptor, POLLIN, 0};
    const int ready = ::poll(&state, 1, kMostWaitMilliseconds);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;  // read() reports the error
    if (most_wait > 0 && seconds_now() - begin >= most_wait) return false;
  }
}

Descriptor open_stream(const fs::path& path) {
  // Without O_NONBLOCK, open() would wait for the pipe's writer and ignore signals.
  Descriptor source(path == "-"
                        ? ::dup(STDIN_FILENO)
                        : ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (source.number() < 0) throw system_failure(input_name(path), errno, ExitCode::data);
  return source;
}

// Copies to the end of the stream. `most_wait`: see in_memory().
void copy_stream(const fs::path& path, const Descriptor& source, double most_wait,
                 const std::function<void()>& check_stop, const Sink& sink) {
  std::vector<char> block(kCopyBlock);
  for (;;) {
    const bool ready = wait_for_bytes(source.number(), most_wait, check_stop);
    const ssize_t count = ::read(source.number(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN) {
      throw system_failure(input_name(path), errno, ExitCode::data, "cannot be read: ");
    }
    if (count == 0 && ready) return;
    if (count == 0) throw data_error(input_name(path), ": is a pipe that nobody writes to");
    if (count > 0) sink({block.data(), size_t(count)});
    most_wait = 0;  // the pipe has a writer
  }
}

template <typename Copy>
InputFile copied(InputFile file, double most_wait, const std::function<void()>& check_stop) {
  if (!is_pipe(file.content)) return file;
  require_stream(file.name);
  auto copy = std::make_shared<Copy>(file.name);
  const Descriptor source = open_stream(file.name);
  copy_stream(file.name, source, most_wait, check_stop,
              [&](std::string_view bytes) { copy->write(bytes); });
  file.content = copy->path();
  file.copy = std::move(copy);
  return file;
}

}  // namespace

bool is_pipe(const fs::path& path) {
  if (path == "-") return true;
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode);
}

std::string input_name(const fs::path& path) {
  return path == "-" ? "standard input" : path.string();
}

void require_stream(const fs::path& path) {
  struct stat info {};
  const bool input = path == "-";
  if ((input ? ::fstat(STDIN_FILENO, &info) : ::stat(path.c_str(), &info)) != 0) {
    const int error = errno;
    refuse_with_advice(path, ExitCode::data);
    throw system_failure(input_name(path), error, ExitCode::data);
  }
  if (!input && S_ISDIR(info.st_mode)) refuse_with_advice(path, ExitCode::data);
  if (input && S_ISSOCK(info.st_mode)) return;  // sockets as inetd connects them
  require_stream(info, input_name(path), ExitCode::data);
}

InputFile rereadable(InputFile file, const std::function<void()>& check_stop) {
  return copied<TemporaryCopy>(std::move(file), 0, check_stop);
}

InputFile in_memory(InputFile file, double most_wait) {
  return copied<MemoryCopy>(std::move(file), most_wait, nullptr);
}

}  // namespace finetune
