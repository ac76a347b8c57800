// Walks version 2 B-trees with bounds checks.
#include "weights/hdf5/storage/btree2.h"

#include <bit>
#include <vector>

namespace finetune::hdf5 {
namespace {

constexpr const char* kTree = "B-tree";
constexpr uint64_t kNodeOverhead = 10;  // signature, version, type, checksum
constexpr uint16_t kDeepest = 16;       // four levels hold more than any file

// The number of bytes that hold a count up to `most`.
size_t width_for(uint64_t most) {
  return most == 0 ? 1 : size_t(std::bit_width(most) + 7) / 8;
}

class TreeReader {
 public:
  TreeReader(Bytes& bytes, uint8_t type, const std::function<void(std::string_view)>& visit)
      : bytes_(bytes), type_(type), visit_(visit) {}

  void read(uint64_t address) {
    const Widths widths = bytes_.widths();
    const std::string header =
        bytes_.sealed(address, 22 + widths.address + widths.length, "BTHD", kTree);
    Cursor at(header, widths, kTree);
    at.skip(4);
    at.expect_version(0);
    if (at.u8() != type_) throw fault("its ", kTree, " is not of the type that it must be");
    node_size_ = at.u32();
    record_size_ = at.u16();
    const uint16_t depth = at.u16();
    at.skip(2);  // thresholds for splitting and merging
    const uint64_t root = at.address();
    const uint16_t records = at.u16();
    const uint64_t all = at.length();
    plan_levels(depth);
    if (all > 0) read_node(root, depth, records);
    if (found_ != all) throw fault("its ", kTree, " has ", found_, " records, not ", all);
  }

 private:
  // The layout of nodes of one level; leaves are level 0.
  struct Level {
    uint64_t most_records = 0;  // in a node
    uint64_t most_below = 0;    // in a node and everything below it
    size_t pointer_size = 0;    // child's address, its records, all records below it
  };

  void plan_levels(uint16_t depth) {
    if (depth > kDeepest) throw fault("its ", kTree, " is of depth ", depth);
    if (record_size_ == 0 || node_size_ < kNodeOverhead + record_size_) {
      throw fault("its ", kTree, " is damaged");
    }
    const uint64_t leaf = (node_size_ - kNodeOverhead) / record_size_;
    levels_.push_back({leaf, leaf, 0});
    for (uint16_t d = 1; d <= depth; ++d) {
      const Level& below = levels_.back();
      Level level;
      level.pointer_size = bytes_.widths().address + width_for(leaf);
      if (d > 1) level.pointer_size += width_for(below.most_below);
      if (node_size_ < kNodeOverhead + level.pointer_size) {
        throw fault("its ", kTree, " is damaged");
      }
      level.most_records =
          (node_size_ - kNodeOverhead - level.pointer_size) / (record_size_ + level.pointer_size);
      if (__builtin_mul_overflow(level.most_records + 1, below.most_below, &level.most_below) ||
          __builtin_add_overflow(level.most_below, level.most_records, &level.most_below)) {
        throw fault("its ", kTree, " is of depth ", depth);
      }
      levels_.push_back(level);
    }
  }

  void read_node(uint64_t address, uint16_t depth, uint64_t records) {
    const Level& level = levels_[depth];
    if (records > level.most_records) throw fault("its ", kTree, " is damaged");
    const uint64_t children = depth == 0 ? 0 : records + 1;
    const uint64_t size = kNodeOverhead + records * record_size_ + children * level.pointer_size;
    const std::string node = bytes_.sealed(address, size, depth == 0 ? "BTLF" : "BTIN", kTree);
    Cursor at(node, bytes_.widths(), kTree);
    at.skip(4);
    at.expect_version(0);
    if (at.u8() != type_) throw fault("its ", kTree, " is damaged");
    const std::string_view all = at.take(records * record_size_);
    for (uint64_t i = 0; i <= records; ++i) {
      if (depth > 0) {
        const uint64_t child = at.address();
        const uint64_t count = at.number(width_for(levels_[0].most_records));
        if (depth > 1) at.skip(width_for(levels_[depth - 1].most_below));
        read_node(child, uint16_t(depth - 1), count);
      }
      if (i == records) break;
      found_ += 1;
      visit_(all.substr(size_t(i) * record_size_, record_size_));
    }
  }

  Bytes& bytes_;
  const uint8_t type_;
  const std::function<void(std::string_view)>& visit_;
  uint32_t node_size_ = 0;
  uint16_t record_size_ = 0;
  uint64_t found_ = 0;
  std::vector<Level> levels_;
};

}  // namespace

void each_record(Bytes& bytes, uint64_t address, uint8_t type,
                 const std::function<void(std::string_view)>& visit) {
  TreeReader(bytes, type, visit).read(address);
}

}  // namespace finetune::hdf5
