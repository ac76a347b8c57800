// What is allocated: counted by operators of our own, or by a sanitizer.
#pragma once

#include <cstddef>

namespace finetune::fuzz {

// From its making on.
class AllocationCount {
 public:
  AllocationCount();
  size_t peak() const;  // most bytes at once, beside those that were there before

 private:
  size_t before_ = 0;
};

}  // namespace finetune::fuzz
