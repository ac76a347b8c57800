#include "core/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace finetune {
namespace {

constexpr size_t kBufferSize = 1 << 20;

std::string reason(int error) {
  return std::strerror(error);
}

void sync_directory(const fs::path& file) {
  fs::path directory = file.parent_path().empty() ? fs::path(".") : file.parent_path();
  int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);  // best effort: some file systems refuse it on directories
  ::close(descriptor);
}

}  // namespace

MappedFile::MappedFile(const fs::path& path, ExitCode code) : path_(path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw Error(code, concat(path.string(), ": ", reason(errno)));
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) {
    int error = errno;
    ::close(descriptor);
    throw Error(code, concat(path.string(), ": ", reason(error)));
  }
  if (S_ISDIR(info.st_mode)) {
    ::close(descriptor);
    throw Error(code, concat(path.string(), ": is a directory, a file is needed"));
  }
  const bool is_file = S_ISREG(info.st_mode);
  std::string piped;  // a pipe cannot be mapped: it is read to its end
  if (!is_file) {
    char block[1 << 16];
    ssize_t count = 0;
    while ((count = ::read(descriptor, block, sizeof block)) != 0) {
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        int error = errno;
        ::close(descriptor);
        throw Error(code, concat(path.string(), ": cannot be read: ", reason(error)));
      }
      piped.append(block, size_t(count));
    }
  }
  size_ = is_file ? size_t(info.st_size) : piped.size();
  if (size_ > 0) {
    void* data = is_file ? ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0)
                         : ::mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
      int error = errno;
      ::close(descriptor);
      throw Error(code, concat(path.string(), ": cannot be mapped: ", reason(error)));
    }
    data_ = data;
    if (!is_file) std::memcpy(data, piped.data(), size_);
  }
  ::close(descriptor);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(data_, size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

std::string read_text_file(const fs::path& path, ExitCode code) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw Error(code, concat(path.string(), ": ", reason(errno)));
  std::string text;
  char block[1 << 16];
  for (;;) {  // not mapped: this also reads pipes and /dev/stdin
    ssize_t count = ::read(descriptor, block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      int error = errno;
      ::close(descriptor);
      throw Error(code,
                  concat(path.string(), ": ",
                         error == EISDIR ? "is a directory, a file is needed" : reason(error)));
    }
    if (count == 0) break;
    text.append(block, size_t(count));
  }
  ::close(descriptor);
  return text;
}

void require_readable(const fs::path& path, ExitCode code) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || ::access(path.c_str(), R_OK) != 0) {
    throw Error(code, concat(path.string(), ": ", reason(errno)));
  }
  if (S_ISDIR(info.st_mode)) {
    throw Error(code, concat(path.string(), ": is a directory, a file is needed"));
  }
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) return false;
    if (count > 0) bytes.remove_prefix(size_t(count));
  }
  return true;
}

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  temporary_ = path_;
  temporary_ += concat(".tmp.", int64_t(::getpid()));
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw model_error(path_.string(), ": cannot be written: ", reason(errno));
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
  }
}

void AtomicFile::write(const void* data, size_t size) {
  buffer_.append(static_cast<const char*>(data), size);
  if (buffer_.size() >= kBufferSize) flush_buffer();
}

void AtomicFile::flush_buffer() {
  if (!write_all(descriptor_, buffer_)) {
    throw model_error(path_.string(), ": cannot be written: ", reason(errno));
  }
  buffer_.clear();
}

void AtomicFile::commit() {
  flush_buffer();
  if (::fsync(descriptor_) != 0) {
    throw model_error(path_.string(), ": cannot be written: ", reason(errno));
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw model_error(path_.string(), ": cannot be written: ", reason(errno));
  }
  ::close(descriptor_);
  descriptor_ = -1;
  sync_directory(path_);
}

void write_file(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void create_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw model_error(path.string(), ": cannot be created: ", error.message());
}

void require_free_space(const fs::path& directory, uint64_t bytes, std::string_view what) {
  struct statvfs info {};
  if (::statvfs(directory.c_str(), &info) != 0) return;  // no answer is no refusal
  uint64_t available = uint64_t(info.f_bavail) * info.f_frsize;
  if (available < bytes) {
    throw model_error(directory.string(), ": ", what, " needs ", (bytes >> 20) + 1,
                      " MiB of disk, ", available >> 20, " MiB are free");
  }
}

}  // namespace finetune
