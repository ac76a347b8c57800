// The plan of fail_call.c's functions: which call fails, and how.
#pragma once

#include <stdbool.h>

enum family {
  OPEN,
  READ,
  WRITE,
  CLOSE,
  SYNC,
  RENAME,
  MMAP,
  TRUNCATE,
  MKDIR,
  UNLINK,
  CHMOD,
  FAMILIES
};

// The fault applied to one call.
enum fault { NONE, ERROR, SHORT, LOST, FLIP, KILL, STOP, TORN };

// Each counts a call that matches the plan and returns the fault for it (KILL and STOP act at
// once). errno is unchanged.
enum fault on_descriptor(enum family family, const char* call, int descriptor);
enum fault on_path(enum family family, const char* call, int directory, const char* path);
// Matches if either of two paths does.
enum fault on_paths(enum family family, const char* call, int directory, const char* path,
                    int second_directory, const char* second_path);

// Returns false if no such call fails or is counted.
bool concerns(enum family family);

// The errno of a call with this fault.
int error_of(enum fault fault);
// Kills the process.
void die(void);
