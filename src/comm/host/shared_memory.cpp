// Memory shared between processes: created by memfd, opened through /proc, mapped.
#include "comm/host/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/failure.h"

namespace finetune {
namespace {

constexpr size_t kHugePage = size_t(2) << 20;

Error no_memory(size_t bytes, int error) {
  return device_error("cannot get ", bytes / (1 << 20) + (bytes % (1 << 20) != 0),
                      " MiB of memory: ", start_failure(error));
}

constexpr int kReadWrite = PROT_READ | PROT_WRITE;

// Aligns the address for huge pages; mmap aligns only to small pages.
void* map_aligned(size_t bytes, int flags, int descriptor) {
  void* reserved = ::mmap(nullptr, bytes + kHugePage, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return MAP_FAILED;
  const auto begin = reinterpret_cast<uintptr_t>(reserved);
  const size_t before = (kHugePage - begin % kHugePage) % kHugePage, after = kHugePage - before;
  std::byte* place = static_cast<std::byte*>(reserved) + before;
  void* memory = ::mmap(place, bytes, kReadWrite, flags | MAP_FIXED, descriptor, 0);
  if (memory == MAP_FAILED) {
    const int error = errno;
    ::munmap(reserved, bytes + kHugePage);
    errno = error;
    return MAP_FAILED;
  }
  if (before > 0) ::munmap(reserved, before);
  if (after > 0) ::munmap(place + bytes, after);
  ::madvise(memory, bytes, MADV_HUGEPAGE);  // best effort: the kernel may disallow huge pages
  return memory;
}

size_t whole_pages(size_t bytes) {
  const auto page = size_t(::sysconf(_SC_PAGESIZE));
  return bytes == 0 ? page : (bytes + page - 1) / page * page;
}

void require_possible(size_t bytes) {
  if (bytes > size_t(std::numeric_limits<off_t>::max()) / 2) throw no_memory(bytes, ENOMEM);
}

std::shared_ptr<void> map(size_t bytes, int flags, int descriptor) {
  const size_t size = whole_pages(bytes);
  void* begin = size >= kHugePage ? map_aligned(size, flags, descriptor)
                                  : ::mmap(nullptr, size, kReadWrite, flags, descriptor, 0);
  if (begin == MAP_FAILED) throw no_memory(bytes, errno);
  return {begin, [size](void* address) { ::munmap(address, size); }};
}

}  // namespace

Descriptor create_memory(size_t bytes) {
  require_possible(bytes);
  Descriptor memory(::memfd_create("finetune", MFD_CLOEXEC));
  if (memory.number() < 0 || ::ftruncate(memory.number(), off_t(whole_pages(bytes))) != 0) {
    throw no_memory(bytes, errno);
  }
  return memory;
}

Descriptor open_memory(int pid, int descriptor) {
  const std::string path = concat("/proc/", pid, "/fd/", descriptor);
  Descriptor memory(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (memory.number() < 0) {
    throw device_error("cannot open the memory of process ", pid, " on this host (", path,
                       "): ", std::strerror(errno),
                       "; the processes of a run must share user, /proc and rights");
  }
  return memory;
}

std::shared_ptr<void> map_memory(const Descriptor& memory, size_t bytes) {
  return map(bytes, MAP_SHARED, memory.number());
}

std::shared_ptr<void> map_private_memory(size_t bytes) {
  require_possible(bytes);
  return map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

}  // namespace finetune
