// Finds chunks through a version 1 B-tree, a fixed array, or as a single chunk.
#include "weights/hdf5/storage/chunks.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace finetune::hdf5 {
namespace {

constexpr const char* kIndex = "index of chunks";
constexpr uint64_t kLeastEntry = 4;  // bytes in an index for each chunk
constexpr uint64_t kIndexChecksum = 4;

class ChunkReader {
 public:
  ChunkReader(Bytes& bytes, const Layout& layout, const Space& space)
      : bytes_(bytes),
        layout_(layout),
        counts_(chunk_counts(space.shape, layout.chunk_shape)),
        chunk_bytes_(bytes_of(layout.chunk_shape, layout.element_size)) {
    const uint64_t count = bytes_of(counts_, 1);
    if (chunk_bytes_ == kUndefined || count > bytes.size() / kLeastEntry) {
      throw fault("has more chunks than the file can hold");
    }
    bytes.charge(count * sizeof(Chunk));
    chunks_.resize(size_t(count));
    bool fixed = true;  // other indexes are for dimensions that grow
    for (int64_t side : space.most_shape) fixed &= side >= 0;
    if (fixed) most_counts_ = chunk_counts(space.most_shape, layout.chunk_shape);
  }

  std::vector<Chunk> read() {
    if (chunks_.empty()) return {};
    if (layout_.address == kUndefined) throw missing();
    switch (layout_.index) {
      case ChunkIndex::tree:
        read_tree(layout_.address, -1);
        break;
      case ChunkIndex::single:
        put(0, layout_.address,
            layout_.single_size == kUndefined ? chunk_bytes_ : layout_.single_size,
            layout_.single_skipped);
        break;
      case ChunkIndex::fixed_array:
        read_fixed_array();
        break;
    }
    if (found_ != chunks_.size()) throw missing();
    return std::move(chunks_);
  }

 private:
  Fault missing() const {
    return fault("has only ", found_, " of its ", chunks_.size(), " chunks of data");
  }

  void put(uint64_t index, uint64_t address, uint64_t size, uint32_t skipped) {
    Chunk& chunk = chunks_[size_t(index)];
    if (chunk.size != 0) throw fault("has two chunks of data for one place");
    if (size == 0 || chunk_bytes_ / kMostCompression > size ||
        (layout_.filters.empty() && size != chunk_bytes_)) {
      throw fault("a chunk of it has only ", size, " bytes of data");
    }
    chunk = {bytes_.position(address, size, "chunk of data"), size, skipped};
    found_ += 1;
  }

  // A version 1 B-tree. `expected`: the level according to the parent, -1 at the root.
  void read_tree(uint64_t address, int expected) {
    constexpr uint8_t kOfChunks = 1;
    const Widths widths = bytes_.widths();
    const uint64_t before = 8 + 2 * widths.address, key = 8 + 8 * (counts_.size() + 1);
    std::string front = bytes_.structure(address, before, kIndex);
    Cursor at(front, widths, kIndex);
    at.expect("TREE");
    at.expect_version(kOfChunks);  // the type
    const int level = at.u8();
    if (expected >= 0 && level != expected) throw fault("its ", kIndex, " is damaged");
    const uint64_t entries = at.u16();
    const std::string node = bytes_.structure(address, before + entries * (key + widths.address),
                                              kIndex, std::move(front));
    Cursor entry(node, widths, kIndex);
    entry.skip(before);
    for (uint64_t i = 0; i < entries; ++i) {
      const uint64_t size = entry.u32();
      const uint32_t skipped = entry.u32();
      Cursor corner(entry.take(8 * (counts_.size() + 1)), widths, kIndex);
      const uint64_t child = entry.address();
      if (level > 0) {
        read_tree(child, level - 1);
      } else {
        put(index_of(corner), child, size, skipped);
      }
    }
  }

  // The index of the chunk whose first element is at `corner`.
  uint64_t index_of(Cursor& corner) const {
    uint64_t index = 0;
    for (size_t d = 0; d < counts_.size(); ++d) {
      const uint64_t first = corner.number(8), side = uint64_t(layout_.chunk_shape[d]);
      const uint64_t count = uint64_t(counts_[d]);
      if (first % side != 0 || first / side >= count) throw fault("its ", kIndex, " is damaged");
      index = index * count + first / side;
    }
    return index;
  }

  // One entry for each chunk that the dataset may grow to, in pages if there are many.
  void read_fixed_array() {
    constexpr uint8_t kFiltered = 1;
    const Widths widths = bytes_.widths();
    const std::string header =
        bytes_.sealed(layout_.address, 12 + widths.length + widths.address, "FAHD", kIndex);
    Cursor at(header, widths, kIndex);
    at.skip(4);
    at.expect_version(0);
    const bool filtered = at.u8() == kFiltered;
    const uint64_t entry_size = at.u8(), page_bits = at.u8(), entries = at.length();
    const uint64_t block = at.address();
    const uint64_t least = widths.address + (filtered ? 1 + 4 : 0);
    if (filtered == layout_.filters.empty() || entry_size < least || entry_size > least + 7 ||
        (!filtered && entry_size != least) || page_bits > 32 || most_counts_.empty() ||
        entries != bytes_of(most_counts_, 1) || entries > bytes_.size() / kLeastEntry) {
      throw fault("its ", kIndex, " is damaged");
    }
    read_array_block(block, entries, uint64_t{1} << page_bits, size_t(entry_size), filtered);
  }

  void read_array_block(uint64_t address, uint64_t entries, uint64_t page, size_t entry_size,
                        bool filtered) {
    const bool paged = entries > page;
    const uint64_t pages = (entries + page - 1) / page;
    const uint64_t prefix = 6 + bytes_.widths().address + (paged ? (pages + 7) / 8 : 0);
    const uint64_t inside = paged ? 0 : entries * entry_size;
    const std::string block =
        bytes_.sealed(address, prefix + inside + kIndexChecksum, "FADB", kIndex);
    if (!paged) {
      return read_entries(std::string_view(block).substr(size_t(prefix)), 0, entry_size, filtered);
    }
    uint64_t at = address + prefix + kIndexChecksum;
    for (uint64_t first = 0; first < entries; first += page) {
      const uint64_t size = std::min(page, entries - first) * entry_size + kIndexChecksum;
      read_entries(bytes_.sealed(at, size, "", kIndex), first, entry_size, filtered);
      at += size;
    }
  }

  void read_entries(std::string_view entries, uint64_t first, size_t entry_size, bool filtered) {
    Cursor at(entries, bytes_.widths(), kIndex);
    for (uint64_t i = first; at.left() > 0; ++i) {
      const uint64_t address = at.address();
      uint64_t size = chunk_bytes_;
      uint32_t skipped = 0;
      if (filtered) {
        size = at.number(entry_size - bytes_.widths().address - 4);
        skipped = at.u32();
      }
      const std::optional<uint64_t> index = index_now(i);
      if (index && address != kUndefined) put(*index, address, size, skipped);
    }
  }

  // Converts the index of a chunk in the largest possible shape to its index in the current shape.
  std::optional<uint64_t> index_now(uint64_t i) const {
    uint64_t index = 0, step = 1;
    for (size_t d = counts_.size(); d-- > 0;) {
      const uint64_t most = uint64_t(most_counts_[d]), count = uint64_t(counts_[d]);
      if (i % most >= count) return std::nullopt;
      index += i % most * step;
      step *= count;
      i /= most;
    }
    return index;
  }

  Bytes& bytes_;
  const Layout& layout_;
  const std::vector<int64_t> counts_;
  std::vector<int64_t> most_counts_;
  const uint64_t chunk_bytes_;
  uint64_t found_ = 0;
  std::vector<Chunk> chunks_;
};

}  // namespace

std::vector<int64_t> chunk_counts(const std::vector<int64_t>& shape,
                                  const std::vector<int64_t>& chunk_shape) {
  std::vector<int64_t> counts;
  for (size_t d = 0; d < shape.size(); ++d) {
    counts.push_back(shape[d] / chunk_shape[d] + (shape[d] % chunk_shape[d] != 0));
  }
  return counts;
}

std::vector<Chunk> read_chunks(Bytes& bytes, const Layout& layout, const Space& space) {
  if (layout.chunk_shape.size() != space.shape.size()) {
    throw fault("has a shape of ", space.shape.size(), " dimensions and chunks of ",
                layout.chunk_shape.size());
  }
  return ChunkReader(bytes, layout, space).read();
}

}  // namespace finetune::hdf5
