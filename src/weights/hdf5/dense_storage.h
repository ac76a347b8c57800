// The storage of many links or attributes: a fractal heap that holds them, and version 2 B-trees
// that index it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/hdf5/bytes.h"

namespace finetune::hdf5 {

// A fractal heap. Reads all direct blocks at once. Fault: damaged, or filtered.
class FractalHeap {
 public:
  FractalHeap(Bytes& bytes, uint64_t address);
  // Returns the object with this heap id, valid as long as the heap. Fault: outside the heap, or a
  // "tiny" or "huge" object: the sizes of links and attributes lie between those two kinds.
  std::string_view object(std::string_view id) const;

 private:
  struct Block {
    uint64_t offset;  // in the heap's address space
    std::string bytes;
  };

  void read_header();
  void read_direct(uint64_t address, uint64_t offset, uint64_t size);
  void read_indirect(uint64_t address, uint64_t offset, uint64_t rows);
  uint64_t row_size(uint64_t row) const;
  Cursor open_block(const std::string& bytes, const char* signature, uint64_t offset) const;

  Bytes& bytes_;
  uint64_t address_;
  uint64_t first_size_ = 0, most_direct_ = 0, most_object_ = 0;
  uint64_t width_ = 0;  // blocks per row
  uint16_t bits_ = 0;   // bits of an offset
  size_t offset_bytes_ = 0;
  bool has_checksums_ = false;
  uint64_t root_ = kUndefined, root_rows_ = 0;
  std::vector<Block> blocks_;  // in order of offset
};

// Calls visit(record), in order, for every record of the version 2 B-tree at `address`. Fault: the
// tree is damaged or has another type.
void each_record(Bytes& bytes, uint64_t address, uint8_t type,
                 const std::function<void(std::string_view)>& visit);

}  // namespace finetune::hdf5
