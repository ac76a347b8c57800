// Which backends' attention is a library's with dropout masks of its own.
#pragma once

#include "ops/backend.h"

namespace finetune::test {

inline bool draws_own_masks(const Backend& backend) {
  return backend.description().find("attention: cuDNN") != std::string::npos;
}

}  // namespace finetune::test
