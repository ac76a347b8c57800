// Reads a fractal heap. The heap has an address space of its own, cut into rows of `width` blocks.
// Rows 0 and 1 have blocks of the initial size; each further row doubles the size. Blocks up to
// most_direct_ hold objects; a larger block is indirect: it is a table of blocks, again in rows.
#include "weights/hdf5/dense_storage.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "weights/hdf5/bytes.h"

namespace finetune::hdf5 {
namespace {

constexpr const char* kHeap = "heap";
constexpr uint64_t kChecksumSize = 4;
constexpr uint64_t kMostDirect = uint64_t{1} << 31;

Fault damaged_heap() {
  return fault("its ", kHeap, " is damaged");
}

}  // namespace

FractalHeap::FractalHeap(Bytes& bytes, uint64_t address) : bytes_(bytes), address_(address) {
  read_header();
  if (root_ == kUndefined) return;
  if (root_rows_ == 0) {
    read_direct(root_, 0, first_size_);
  } else {
    read_indirect(root_, 0, root_rows_);
  }
}

void FractalHeap::read_header() {
  const Widths widths = bytes_.widths();
  const uint64_t size = 22 + 12 * widths.length + 3 * widths.address + kChecksumSize;
  constexpr uint64_t kBeforeFilters = 7;
  std::string front = bytes_.structure(address_, kBeforeFilters + 2, kHeap);
  Cursor filters(front, widths, kHeap);
  filters.skip(kBeforeFilters);
  if (filters.u16() != 0) throw fault("its ", kHeap, " is compressed, which is not read");
  const std::string header = bytes_.sealed(address_, size, "FRHP", kHeap, std::move(front));
  Cursor at(header, widths, kHeap);
  at.skip(4);
  at.expect_version(0);
  at.skip(2 + 2);  // sizes of names and of filters
  has_checksums_ = at.u8() & 2;
  most_object_ = at.u32();
  at.skip(2 * (widths.length + widths.address));  // huge objects, free space
  at.skip(8 * widths.length);                     // counts
  width_ = at.u16();
  first_size_ = at.length();
  most_direct_ = at.length();
  bits_ = at.u16();
  at.skip(2);
  root_ = at.address();
  root_rows_ = at.u16();
  const bool sound = std::has_single_bit(width_) && std::has_single_bit(first_size_) &&
                     std::has_single_bit(most_direct_) && first_size_ <= most_direct_ &&
                     most_direct_ <= kMostDirect && bits_ > 0 && bits_ < 64 && most_object_ > 0;
  if (!sound) throw damaged_heap();
  offset_bytes_ = size_t(bits_ + 7) / 8;
}

uint64_t FractalHeap::row_size(uint64_t row) const {
  return row == 0 ? first_size_ : first_size_ << (row - 1);
}

// Checks a block's signature, version, heap address and offset. Returns a cursor behind them.
Cursor FractalHeap::open_block(const std::string& bytes, const char* signature,
                               uint64_t offset) const {
  Cursor at(bytes, bytes_.widths(), kHeap);
  at.expect(signature);
  at.expect_version(0);
  if (at.address() != address_ || at.number(offset_bytes_) != offset) throw damaged_heap();
  return at;
}

void FractalHeap::read_direct(uint64_t address, uint64_t offset, uint64_t size) {
  std::string bytes = bytes_.structure(address, size, kHeap);
  Cursor at = open_block(bytes, "FHDB", offset);
  if (has_checksums_) {  // computed with zeros in place of the checksum
    const size_t place = at.at();
    const uint32_t checksum = at.u32();
    std::fill_n(bytes.begin() + ptrdiff_t(place), kChecksumSize, '\0');
    if (checksum != lookup3(bytes)) {
      throw fault("its ", kHeap, " does not match its checksum: the file is damaged");
    }
  }
  blocks_.push_back({offset, std::move(bytes)});
}

void FractalHeap::read_indirect(uint64_t address, uint64_t offset, uint64_t rows) {
  const uint64_t first_bits = uint64_t(std::countr_zero(first_size_));
  const uint64_t width_bits = uint64_t(std::countr_zero(width_));
  // Refuses rows beyond the largest offset, so that no size below overflows.
  if (rows > 1 && rows - 1 + first_bits + width_bits > bits_) throw damaged_heap();
  const Widths widths = bytes_.widths();
  const uint64_t size =
      5 + widths.address + offset_bytes_ + rows * width_ * widths.address + kChecksumSize;
  const std::string bytes = bytes_.sealed(address, size, "FHIB", kHeap);
  Cursor at = open_block(bytes, "FHIB", offset);
  for (uint64_t row = 0; row < rows; ++row) {
    const uint64_t block = row_size(row);
    for (uint64_t i = 0; i < width_; ++i, offset += block) {
      const uint64_t child = at.address();
      if (child == kUndefined) continue;
      if (block <= most_direct_) {
        read_direct(child, offset, block);
      } else {
        const uint64_t block_bits = uint64_t(std::countr_zero(block));
        if (block_bits < first_bits + width_bits) throw damaged_heap();
        read_indirect(child, offset, block_bits - first_bits - width_bits + 1);
      }
    }
  }
}

std::string_view FractalHeap::object(std::string_view id) const {
  constexpr int kManaged = 0;
  Cursor at(id, bytes_.widths(), kHeap);
  if (at.u8() >> 4 != kManaged) {
    throw fault("its ", kHeap, " holds an object that is not managed, which is not read");
  }
  const uint64_t offset = at.number(offset_bytes_);
  const size_t length_bytes = std::min<size_t>(size_t(std::bit_width(most_direct_) + 6) / 8,
                                               size_t(std::bit_width(most_object_) + 7) / 8);
  const uint64_t length = at.number(length_bytes);
  auto after = std::upper_bound(blocks_.begin(), blocks_.end(), offset,
                                [](uint64_t o, const Block& block) { return o < block.offset; });
  if (after == blocks_.begin()) throw damaged_heap();
  const Block& block = *(after - 1);
  Cursor object(block.bytes, bytes_.widths(), kHeap);
  object.skip(offset - block.offset);
  return object.take(length);
}

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
