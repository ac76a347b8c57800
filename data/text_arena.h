// Memory for texts that live as long as their table, or until the next row.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace finetune {

// An arena that grows without moving the texts in it.
class TextArena {
 public:
  char* allocate(size_t size);
  std::string_view keep(std::string_view text);
  void clear() { used_blocks_ = 0, used_ = capacity_ = 0; }  // keeps the memory

 private:
  struct Block {
    std::unique_ptr<char[]> data;
    size_t size = 0;
  };
  std::vector<Block> blocks_;
  size_t used_blocks_ = 0;  // the last of them is being filled
  size_t used_ = 0;         // bytes used in the last block
  size_t capacity_ = 0;
};

}  // namespace finetune
