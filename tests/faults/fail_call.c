// A library to preload that fails chosen calls of the C library's file functions, or counts them.
// fault_plan.c describes its environment variables.
#undef _FILE_OFFSET_BITS  // or the headers give open64's name to open
#undef _FORTIFY_SOURCE
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fault_plan.h"

static int failed(enum fault fault) {
  errno = error_of(fault);
  return -1;
}

// The C library's function behind one of ours.
#define NEXT(name) (__extension__(__typeof__(&name)) next_function(#name))
static void* next_function(const char* name) {
  void* function = dlsym(RTLD_NEXT, name);
  if (!function) {
    fprintf(stderr, "fail_call: the C library has no %s\n", name);
    _exit(125);
  }
  return function;
}

// A function that is called for its effect and gives 0: done, failed, or said to be done.
#define EFFECT(what, call)               \
  do {                                   \
    const enum fault now = (what);       \
    if (now == LOST) return 0;           \
    if (now != NONE) return failed(now); \
    return call;                         \
  } while (0)

// ---- Data: what is handed on in place of the caller's

struct transfer {
  enum fault fault;
  bool skip;  // nothing is handed on: `result` is the answer
  const void* data;
  size_t size;
  void* copy;
  ssize_t result;
};

static struct transfer start(enum fault fault, const void* data, size_t size) {
  struct transfer t = {fault, false, data, size, NULL, 0};
  if (fault == SHORT || fault == TORN) t.size = (size + 1) / 2;
  t.skip = fault == ERROR || fault == LOST;
  if (fault == ERROR) t.result = failed(fault);
  return t;
}

static struct transfer start_write(const char* call, int descriptor, const void* data,
                                   size_t size) {
  struct transfer t = start(on_descriptor(WRITE, call, descriptor), data, size);
  if (t.fault == LOST) t.result = (ssize_t)size;
  if (t.fault == FLIP && size > 0 && (t.copy = malloc(size))) {
    memcpy(t.copy, data, size);
    ((char*)t.copy)[size / 2] ^= 1;
    t.data = t.copy;
  }
  return t;
}

static ssize_t end_write(struct transfer* t) {
  if (t->fault == TORN) die();
  free(t->copy);
  return t->result;
}

static struct transfer start_read(const char* call, int descriptor, void* data, size_t size) {
  struct transfer t = start(on_descriptor(READ, call, descriptor), data, size);
  if (t.fault == TORN) die();
  return t;
}

static ssize_t end_read(struct transfer* t) {
  if (t->fault == FLIP && t->result > 0) ((char*)t->data)[t->result / 2] ^= 1;
  return t->result;
}

// The pieces of writev and readv one after the other, as one buffer.
static size_t total_size(const struct iovec* pieces, int count) {
  size_t size = 0;
  for (int i = 0; i < count; ++i) size += pieces[i].iov_len;
  return size;
}

static char* joined(const struct iovec* pieces, int count) {
  char *all = malloc(total_size(pieces, count) + 1), *to = all;
  if (!all) _exit(125);
  for (int i = 0; i < count; ++i) to = mempcpy(to, pieces[i].iov_base, pieces[i].iov_len);
  return all;
}

static void deal_out(const char* all, ssize_t size, const struct iovec* pieces, int count) {
  for (int i = 0; i < count && size > 0; ++i) {
    const size_t part = pieces[i].iov_len < (size_t)size ? pieces[i].iov_len : (size_t)size;
    memcpy(pieces[i].iov_base, all, part);
    all += part;
    size -= (ssize_t)part;
  }
}

// ---- write

ssize_t write(int descriptor, const void* data, size_t size) {
  struct transfer t = start_write("write", descriptor, data, size);
  if (!t.skip) t.result = NEXT(write)(descriptor, t.data, t.size);
  return end_write(&t);
}

#define PWRITE(name, offset_type)                                                   \
  ssize_t name(int descriptor, const void* data, size_t size, offset_type offset) { \
    struct transfer t = start_write(#name, descriptor, data, size);                 \
    if (!t.skip) t.result = NEXT(name)(descriptor, t.data, t.size, offset);         \
    return end_write(&t);                                                           \
  }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

ssize_t writev(int descriptor, const struct iovec* pieces, int count) {
  if (!concerns(WRITE)) return NEXT(writev)(descriptor, pieces, count);
  char* all = joined(pieces, count);
  struct transfer t = start_write("writev", descriptor, all, total_size(pieces, count));
  if (!t.skip) t.result = NEXT(write)(descriptor, t.data, t.size);
  free(all);
  return end_write(&t);
}

#define PWRITEV(name, offset_type)                                                          \
  ssize_t name(int descriptor, const struct iovec* pieces, int count, offset_type offset) { \
    if (!concerns(WRITE)) return NEXT(name)(descriptor, pieces, count, offset);             \
    char* all = joined(pieces, count);                                                      \
    struct transfer t = start_write(#name, descriptor, all, total_size(pieces, count));     \
    if (!t.skip) t.result = NEXT(pwrite64)(descriptor, t.data, t.size, offset);             \
    free(all);                                                                              \
    return end_write(&t);                                                                   \
  }
PWRITEV(pwritev, off_t)
PWRITEV(pwritev64, off64_t)

// A stream whose write fails has dropped what it held, and remembers the error.
int fflush(FILE* stream) {
  const enum fault fault = stream ? on_descriptor(WRITE, "fflush", fileno(stream)) : NONE;
  if (fault == NONE) return NEXT(fflush)(stream);
  if (fault == TORN) die();
  __fpurge(stream);
  if (fault == LOST) return 0;
  stream->_flags |= 0x20;  // what ferror asks for
  return failed(fault);
}

#define SENDFILE(name, offset_type)                                          \
  ssize_t name(int out, int in, offset_type* offset, size_t size) {          \
    struct transfer t = start(on_descriptor(WRITE, #name, out), NULL, size); \
    if (t.fault == LOST) t.result = (ssize_t)size;                           \
    if (!t.skip) t.result = NEXT(name)(out, in, offset, t.size);             \
    return end_write(&t);                                                    \
  }
SENDFILE(sendfile, off_t)
SENDFILE(sendfile64, off64_t)

ssize_t copy_file_range(int in, off64_t* from, int out, off64_t* to, size_t size, unsigned flags) {
  struct transfer t = start(on_descriptor(WRITE, "copy_file_range", out), NULL, size);
  if (t.fault == LOST) t.result = (ssize_t)size;
  if (!t.skip) t.result = NEXT(copy_file_range)(in, from, out, to, t.size, flags);
  return end_write(&t);
}

// ---- read

ssize_t read(int descriptor, void* data, size_t size) {
  struct transfer t = start_read("read", descriptor, data, size);
  if (!t.skip) t.result = NEXT(read)(descriptor, data, t.size);
  return end_read(&t);
}

#define PREAD(name, offset_type)                                              \
  ssize_t name(int descriptor, void* data, size_t size, offset_type offset) { \
    struct transfer t = start_read(#name, descriptor, data, size);            \
    if (!t.skip) t.result = NEXT(name)(descriptor, data, t.size, offset);     \
    return end_read(&t);                                                      \
  }
PREAD(pread, off_t)
PREAD(pread64, off64_t)

#define READV(name, parameters, arguments, single)                \
  ssize_t name parameters {                                       \
    if (!concerns(READ)) return NEXT(name) arguments;             \
    const size_t size = total_size(pieces, count);                \
    char* all = malloc(size + 1);                                 \
    if (!all) _exit(125);                                         \
    struct transfer t = start_read(#name, descriptor, all, size); \
    if (!t.skip) t.result = single;                               \
    const ssize_t result = end_read(&t);                          \
    deal_out(all, result, pieces, count);                         \
    free(all);                                                    \
    return result;                                                \
  }
READV(readv, (int descriptor, const struct iovec* pieces, int count), (descriptor, pieces, count),
      NEXT(read)(descriptor, all, t.size))
READV(preadv, (int descriptor, const struct iovec* pieces, int count, off_t offset),
      (descriptor, pieces, count, offset), NEXT(pread)(descriptor, all, t.size, offset))
READV(preadv64, (int descriptor, const struct iovec* pieces, int count, off64_t offset),
      (descriptor, pieces, count, offset), NEXT(pread64)(descriptor, all, t.size, offset))

size_t fread(void* data, size_t size, size_t count, FILE* stream) {
  struct transfer t = start_read("fread", fileno(stream), data, size * count);
  if (t.fault == ERROR) stream->_flags |= 0x20;
  if (t.skip || size == 0) return 0;
  t.result = (ssize_t)(NEXT(fread)(data, size, t.size / size, stream) * size);
  return (size_t)end_read(&t) / size;
}

// What fortified programs call.
ssize_t __read_chk(int descriptor, void* data, size_t size, size_t room) {
  (void)room;
  return read(descriptor, data, size);
}
ssize_t __pread_chk(int descriptor, void* data, size_t size, off_t offset, size_t room) {
  (void)room;
  return pread(descriptor, data, size, offset);
}
ssize_t __pread64_chk(int descriptor, void* data, size_t size, off64_t offset, size_t room) {
  (void)room;
  return pread64(descriptor, data, size, offset);
}
size_t __fread_chk(void* data, size_t room, size_t size, size_t count, FILE* stream) {
  (void)room;
  return fread(data, size, count, stream);
}

// ---- open

static mode_t mode_of(int flags, va_list list) {
  return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(list, mode_t) : 0;
}

#define OPENAT(name, open_name)                                         \
  int name(int directory, const char* path, int flags, ...) {           \
    va_list list;                                                       \
    va_start(list, flags);                                              \
    const mode_t mode = mode_of(flags, list);                           \
    va_end(list);                                                       \
    const enum fault fault = on_path(OPEN, #name, directory, path);     \
    if (fault != NONE) return failed(fault);                            \
    return NEXT(name)(directory, path, flags, mode);                    \
  }                                                                     \
  int open_name(const char* path, int flags, ...) {                     \
    va_list list;                                                       \
    va_start(list, flags);                                              \
    const mode_t mode = mode_of(flags, list);                           \
    va_end(list);                                                       \
    const enum fault fault = on_path(OPEN, #open_name, AT_FDCWD, path); \
    if (fault != NONE) return failed(fault);                            \
    return NEXT(open_name)(path, flags, mode);                          \
  }                                                                     \
  int __##name##_2(int directory, const char* path, int flags) {        \
    return name(directory, path, flags);                                \
  }                                                                     \
  int __##open_name##_2(const char* path, int flags) {                  \
    return open_name(path, flags);                                      \
  }
OPENAT(openat, open)
OPENAT(openat64, open64)

#define OPENED(result, failure, name, parameters, arguments)       \
  result name parameters {                                         \
    const enum fault fault = on_path(OPEN, #name, AT_FDCWD, path); \
    if (fault == NONE) return NEXT(name) arguments;                \
    failed(fault);                                                 \
    return failure;                                                \
  }
OPENED(int, -1, creat, (const char* path, mode_t mode), (path, mode))
OPENED(int, -1, creat64, (const char* path, mode_t mode), (path, mode))
OPENED(FILE*, NULL, fopen, (const char* path, const char* mode), (path, mode))
OPENED(FILE*, NULL, fopen64, (const char* path, const char* mode), (path, mode))
OPENED(DIR*, NULL, opendir, (const char* path), (path))

int memfd_create(const char* name, unsigned flags) {
  char path[300];
  snprintf(path, sizeof path, "/memfd:%s", name);
  const enum fault fault = on_path(OPEN, "memfd_create", AT_FDCWD, path);
  return fault == NONE ? NEXT(memfd_create)(name, flags) : failed(fault);
}

// ---- Everything else

int close(int descriptor) {
  const enum fault fault = on_descriptor(CLOSE, "close", descriptor);
  const int result = NEXT(close)(descriptor);
  return fault == NONE || fault == LOST ? result : failed(fault);
}

int fclose(FILE* stream) {
  const enum fault fault = on_descriptor(CLOSE, "fclose", fileno(stream));
  const int result = NEXT(fclose)(stream);
  return fault == NONE || fault == LOST ? result : failed(fault);
}

int fsync(int descriptor) {
  EFFECT(on_descriptor(SYNC, "fsync", descriptor), NEXT(fsync)(descriptor));
}
int fdatasync(int descriptor) {
  EFFECT(on_descriptor(SYNC, "fdatasync", descriptor), NEXT(fdatasync)(descriptor));
}

int rename(const char* from, const char* to) {
  EFFECT(on_paths(RENAME, "rename", AT_FDCWD, from, AT_FDCWD, to), NEXT(rename)(from, to));
}
int renameat(int from_directory, const char* from, int to_directory, const char* to) {
  EFFECT(on_paths(RENAME, "renameat", from_directory, from, to_directory, to),
         NEXT(renameat)(from_directory, from, to_directory, to));
}
int renameat2(int from_directory, const char* from, int to_directory, const char* to,
              unsigned flags) {
  EFFECT(on_paths(RENAME, "renameat2", from_directory, from, to_directory, to),
         NEXT(renameat2)(from_directory, from, to_directory, to, flags));
}

#define MMAP(name, offset_type)                                                                 \
  void* name(void* address, size_t size, int protection, int flags, int file, offset_type at) { \
    const bool of_file = file >= 0 && !(flags & MAP_ANONYMOUS);                                 \
    const enum fault fault = of_file ? on_descriptor(MMAP, #name, file) : NONE;                 \
    if (fault == NONE) return NEXT(name)(address, size, protection, flags, file, at);           \
    failed(fault);                                                                              \
    return MAP_FAILED;                                                                          \
  }
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

#define TRUNCATE_CALLS(suffix, offset_type)                                            \
  int ftruncate##suffix(int file, offset_type size) {                                  \
    EFFECT(on_descriptor(TRUNCATE, "ftruncate" #suffix, file),                         \
           NEXT(ftruncate##suffix)(file, size));                                       \
  }                                                                                    \
  int truncate##suffix(const char* path, offset_type size) {                           \
    EFFECT(on_path(TRUNCATE, "truncate" #suffix, AT_FDCWD, path),                      \
           NEXT(truncate##suffix)(path, size));                                        \
  }                                                                                    \
  int fallocate##suffix(int file, int mode, offset_type at, offset_type size) {        \
    EFFECT(on_descriptor(TRUNCATE, "fallocate" #suffix, file),                         \
           NEXT(fallocate##suffix)(file, mode, at, size));                             \
  }                                                                                    \
  int posix_fallocate##suffix(int file, offset_type at, offset_type size) {            \
    const enum fault fault = on_descriptor(TRUNCATE, "posix_fallocate" #suffix, file); \
    if (fault == NONE) return NEXT(posix_fallocate##suffix)(file, at, size);           \
    return fault == LOST ? 0 : error_of(fault);                                        \
  }
TRUNCATE_CALLS(, off_t)
TRUNCATE_CALLS(64, off64_t)

int mkdir(const char* path, mode_t mode) {
  EFFECT(on_path(MKDIR, "mkdir", AT_FDCWD, path), NEXT(mkdir)(path, mode));
}
int mkdirat(int directory, const char* path, mode_t mode) {
  EFFECT(on_path(MKDIR, "mkdirat", directory, path), NEXT(mkdirat)(directory, path, mode));
}

int unlink(const char* path) {
  EFFECT(on_path(UNLINK, "unlink", AT_FDCWD, path), NEXT(unlink)(path));
}
int unlinkat(int directory, const char* path, int flags) {
  EFFECT(on_path(UNLINK, "unlinkat", directory, path), NEXT(unlinkat)(directory, path, flags));
}
int rmdir(const char* path) {
  EFFECT(on_path(UNLINK, "rmdir", AT_FDCWD, path), NEXT(rmdir)(path));
}
int remove(const char* path) {
  EFFECT(on_path(UNLINK, "remove", AT_FDCWD, path), NEXT(remove)(path));
}

int fchmod(int descriptor, mode_t mode) {
  EFFECT(on_descriptor(CHMOD, "fchmod", descriptor), NEXT(fchmod)(descriptor, mode));
}
