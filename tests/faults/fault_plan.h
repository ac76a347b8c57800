// Which call is to fail, and how: the plan that fail_call.c's functions ask about each call.
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

// What is done to one call.
enum fault { NONE, ERROR, SHORT, LOST, FLIP, KILL, STOP, TORN };

// Each counts a call that matches the plan and says what is done to it (KILL and STOP were, then).
// errno stays as it is.
enum fault on_descriptor(enum family family, const char* call, int descriptor);
enum fault on_path(enum family family, const char* call, int directory, const char* path);
// Of two paths either may match.
enum fault on_paths(enum family family, const char* call, int directory, const char* path,
                    int second_directory, const char* second_path);

// False: none of these calls fails or is counted.
bool concerns(enum family family);

// errno of a call that fails like this.
int error_of(enum fault fault);
// Kills the process.
void die(void);
