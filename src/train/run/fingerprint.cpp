// Hashes data and model files in a thread of low priority.
#include "train/run/fingerprint.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/sha256.h"

namespace finetune {
namespace {

constexpr size_t kPieceBytes = 1 << 18;
constexpr int kLowPriority = 10;

// Only for the calling thread: Linux has a priority per thread. The main thread gets signals.
void step_back() {
  ::setpriority(PRIO_PROCESS, id_t(::syscall(SYS_gettid)), kLowPriority);
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

Fingerprint::Fingerprint(std::vector<InputFile> files, ExitCode code)
    : files_(std::move(files)), code_(code) {
  thread_ = std::thread([this] { work(); });
}

Fingerprint::~Fingerprint() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

const std::string& Fingerprint::result() {
  if (thread_.joinable()) thread_.join();
  if (error_) std::rethrow_exception(error_);
  return result_;
}

void Fingerprint::work() {
  step_back();
  try {
    std::vector<std::string> sums;
    for (const auto& file : files_) {
      sums.push_back(hash_file(file));
      if (stop_) return;
    }
    if (sums.size() == 1)
      result_ = sums[0];
    else if (!sums.empty())
      result_ = sha256_of(join(sums, "\n") + "\n");
  } catch (...) {
    error_ = std::current_exception();
  }
  finished_ = true;
}

std::string Fingerprint::hash_file(const InputFile& file) {
  const std::string name = file.name.string();
  // O_NONBLOCK: a pipe has been read already, and opening it could block forever.
  int descriptor = ::open(file.content.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) throw system_failure(file.name, errno, code_);
  struct stat info {};
  if (::fstat(descriptor, &info) == 0 && !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    throw Error(code_, concat(name, ": is not a regular file: it cannot be read a second time"));
  }
  std::vector<char> piece(kPieceBytes);
  Sha256 hash;
  int error = 0;
  while (!stop_) {
    ssize_t count = ::read(descriptor, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) error = errno;
    if (count <= 0) break;
    hash.update(piece.data(), size_t(count));
  }
  ::close(descriptor);
  if (error != 0) throw system_failure(file.name, error, code_);
  return hash.hex();
}

}  // namespace finetune
