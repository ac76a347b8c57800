// Counts allocated bytes, with our own operators or a sanitizer.
#pragma once

#include <cstddef>

namespace finetune::fuzz {

// Counts from its construction on.
class AllocationCount {
 public:
  AllocationCount();
  size_t peak() const;  // largest number of bytes beyond those at construction

 private:
  size_t before_ = 0;
};

}  // namespace finetune::fuzz
