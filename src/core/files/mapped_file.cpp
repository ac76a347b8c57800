// Maps a file, and checks afterwards whether it was truncated meanwhile.
#include "core/files/mapped_file.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "core/error.h"
#include "core/files/file_kind.h"

namespace finetune {

// An entry of a list that only grows; entries with end 0 are free for reuse. The handler walks the
// list without a lock.
struct WatchedMapping {
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<bool> faulted{false};
  WatchedMapping* next = nullptr;
};

namespace {

static_assert(std::atomic<uintptr_t>::is_always_lock_free);  // safe in a handler
std::atomic<WatchedMapping*> first_mapping{nullptr};
std::mutex list_mutex;
struct sigaction action_before {};
std::atomic<bool> passed_on{false};
uintptr_t page_size = 0;

// An entry may be reused for another mapping meanwhile: reading its end twice detects that.
WatchedMapping* mapping_around(uintptr_t address, uintptr_t& end) {
  for (WatchedMapping* m = first_mapping.load(); m; m = m->next) {
    end = m->end.load();
    if (address < end && address >= m->begin.load() && m->end.load() == end) return m;
  }
  return nullptr;
}

// Maps zeros over the faulting page and all pages after it.
bool replace_pages(uintptr_t address, uintptr_t end) {
  const uintptr_t page = address / page_size * page_size;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the fault's address is a number.
  return ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

// Passes the signal to the previous handler, or to the default one if the previous handler returned
// here. The instruction then faults again.
void pass_on(int number, bool sent) {
  struct sigaction last {};
  last.sa_handler = SIG_DFL;
  ::sigaction(number, passed_on.exchange(true) ? &last : &action_before, nullptr);
  if (sent) ::raise(number);
}

extern "C" void on_bus_error(int number, siginfo_t* info, void*) {
  const int error = errno;
  const bool sent = info->si_code <= 0;  // by kill(), with no address
  uintptr_t end = 0;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  WatchedMapping* mapping = sent ? nullptr : mapping_around(address, end);
  if (mapping) mapping->faulted.store(true);
  if (!mapping || !replace_pages(address, end)) pass_on(number, sent);
  errno = error;
}

// A library may have replaced the handler since the last time.
void install_handler() {
  struct sigaction now {};
  FINETUNE_CHECK(::sigaction(SIGBUS, nullptr, &now) == 0);
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_bus_error) return;
  page_size = uintptr_t(::sysconf(_SC_PAGESIZE));
  action_before = now;
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  FINETUNE_CHECK(::sigaction(SIGBUS, &action, nullptr) == 0);
}

WatchedMapping* free_entry() {
  WatchedMapping* first = first_mapping.load();
  for (WatchedMapping* m = first; m; m = m->next) {
    if (m->end.load() == 0) return m;
  }
  auto* entry = new WatchedMapping;
  entry->next = first;
  first_mapping.store(entry);
  return entry;
}

}  // namespace

WatchedMapping* watch_mapping(const void* begin, size_t size) {
  std::lock_guard lock(list_mutex);
  install_handler();
  WatchedMapping* entry = free_entry();
  entry->faulted.store(false);
  const auto address = reinterpret_cast<uintptr_t>(begin);
  entry->begin.store(address);
  entry->end.store((address + size + page_size - 1) / page_size * page_size);
  return entry;
}

void unwatch_mapping(WatchedMapping* mapping) {
  std::lock_guard lock(list_mutex);
  mapping->end.store(0);
  mapping->begin.store(UINTPTR_MAX);
}

bool has_faulted(const WatchedMapping& mapping) {
  return mapping.faulted.load();
}

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

// Releases whole pages only, because the rest of a page may be in use.
void MappedFile::release(const void* begin, size_t bytes) const {
  const auto first = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t from = (first + page_size - 1) / page_size * page_size;
  const uintptr_t to = (first + bytes) / page_size * page_size;
  if (from >= to) return;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  ::madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);  // failure does no harm
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
