// Reports a failed internal check.
#include "core/error.h"

namespace finetune {

void check_failed(const char* expression, const char* file, int line) {
  throw internal_error("check failed at ", file, ":", line, ": ", expression);
}

}  // namespace finetune
