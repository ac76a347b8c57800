// Maps a file, and checks afterwards whether it was truncated meanwhile.
#include "core/files/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>
#include <utility>

#include "core/files/file_kind.h"

namespace finetune {

namespace fs = std::filesystem;

MappedFile::MappedFile(const fs::path& path, ExitCode code) : path_(path), code_(code) {
  file_ = open_file(path, code);
  struct stat info {};
  if (::fstat(file_.number(), &info) != 0) throw system_failure(path, errno, code);
  if (info.st_size > 0) {
    const auto size = size_t(info.st_size);
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file_.number(), 0);
    if (data == MAP_FAILED) {
      throw system_failure(path, errno, code);
    }
    data_ = data;
    size_ = size;
    watched_ = watch_mapping(data, size);
  }
}

MappedFile::~MappedFile() {
  if (watched_) unwatch_mapping(watched_);
  if (data_) ::munmap(data_, size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      code_(other.code_),
      file_(std::move(other.file_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      watched_(std::exchange(other.watched_, nullptr)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(code_, other.code_);
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(watched_, other.watched_);
  return *this;
}

bool MappedFile::holds(const void* address) const {
  const std::less<const void*> before;
  return data_ && !before(address, data_) && before(address, static_cast<char*>(data_) + size_);
}

void MappedFile::check_intact() const {
  if (!data_) return;
  struct stat info {};
  // Truncation within the last page gives zeros without a fault.
  if (::fstat(file_.number(), &info) == 0 && uint64_t(info.st_size) < size_) {
    throw Error(code_, concat(printable_path(path_), ": became shorter while it was read, from ",
                              size_, " bytes to ", uint64_t(info.st_size)));
  }
  if (has_faulted(*watched_)) {
    throw Error(code_, concat(printable_path(path_),
                              ": a part of it could not be read: the disk failed, or ",
                              "the file was cut meanwhile"));
  }
}

}  // namespace finetune
