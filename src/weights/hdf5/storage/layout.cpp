// Reads the layout message of versions 1 to 4 and the filter message.
#include "weights/hdf5/storage/layout.h"

namespace finetune::hdf5 {
namespace {

constexpr const char* kLayout = "layout";
constexpr uint8_t kCompact = 0, kContiguous = 1, kChunked = 2, kVirtual = 3;
constexpr size_t kMostRank = 33;  // of chunks, counting the element's bytes as the last dimension

Layout::Kind kind_of(uint8_t layout_class) {
  switch (layout_class) {
    case kCompact:
      return Layout::Kind::compact;
    case kContiguous:
      return Layout::Kind::contiguous;
    case kChunked:
      return Layout::Kind::chunked;
    case kVirtual:
      throw fault(
          "is a virtual dataset: its values lie in other datasets or files, which are not read");
    default:
      throw fault("its ", kLayout, " is not known here");
  }
}

// Reads `rank` sides; the last one is the element's size in bytes.
void read_chunk_shape(Cursor& at, size_t rank, size_t width, Layout& layout) {
  if (rank < 2 || rank > kMostRank || width < 1 || width > 8) {
    throw fault("its ", kLayout, " is damaged");
  }
  for (size_t i = 0; i < rank; ++i) {
    const uint64_t side = at.number(width);
    if (side == 0 || side > uint64_t{1} << 32) throw fault("its ", kLayout, " is damaged");
    if (i + 1 < rank) layout.chunk_shape.push_back(int64_t(side));
    layout.element_size = side;
  }
}

// Versions 1 and 2 store the sides for every layout.
Layout read_oldest(Cursor& at) {
  Layout layout;
  const size_t rank = at.u8();
  layout.kind = kind_of(at.u8());
  at.skip(5);
  if (layout.kind != Layout::Kind::compact) layout.address = at.address();
  if (layout.kind == Layout::Kind::chunked) {
    read_chunk_shape(at, rank, 4, layout);
  } else {
    at.skip(4 * rank);
    layout.size = kUndefined;
  }
  if (layout.kind == Layout::Kind::compact) layout.compact = at.take(at.u32());
  return layout;
}

void read_index(Cursor& at, bool filtered, Layout& layout) {
  constexpr uint8_t kSingle = 1, kImplicit = 2, kFixedArray = 3, kExtensibleArray = 4, kTree2 = 5;
  const uint8_t index = at.u8();
  switch (index) {
    case kSingle:
      layout.index = ChunkIndex::single;
      if (filtered) {
        layout.single_size = at.length();
        layout.single_skipped = at.u32();
      }
      break;
    case kFixedArray:
      layout.index = ChunkIndex::fixed_array;
      at.skip(1);  // repeated in the array's header
      break;
    case kImplicit:
    case kExtensibleArray:
    case kTree2:
    default:
      throw fault("its chunks have an index of type ", index,
                  ", which is not read: write the dataset without chunks");
  }
  layout.address = at.address();
}

void read_chunked(Cursor& at, uint8_t version, Layout& layout) {
  constexpr uint8_t kPartialUnfiltered = 1, kSingleFiltered = 2;
  if (version == 3) {
    const size_t rank = at.u8();
    layout.address = at.address();
    return read_chunk_shape(at, rank, 4, layout);
  }
  const uint8_t flags = at.u8();
  if (flags & kPartialUnfiltered)
    throw fault("its edge chunks are stored unfiltered, which is not read");
  const size_t rank = at.u8(), width = at.u8();
  read_chunk_shape(at, rank, width, layout);
  read_index(at, flags & kSingleFiltered, layout);
}

}  // namespace

Layout read_layout(const std::vector<Message>& header, Widths widths) {
  if (find_message(header, MessageType::external_files)) {
    throw fault("its values lie in other files (external storage), which are not read");
  }
  const Message* message = find_message(header, MessageType::layout);
  if (!message) throw fault("is not a dataset");
  Cursor at(message->body, widths, kLayout);
  const uint8_t version = at.u8();
  if (version == 0 || version > 4)
    throw fault("its ", kLayout, " is of version ", version, ", which is not read");
  Layout layout;
  if (version < 3) {
    layout = read_oldest(at);
  } else {
    layout.kind = kind_of(at.u8());
    if (layout.kind == Layout::Kind::compact) layout.compact = at.take(at.u16());
    if (layout.kind == Layout::Kind::contiguous) {
      layout.address = at.address();
      layout.size = at.length();
    }
    if (layout.kind == Layout::Kind::chunked) read_chunked(at, version, layout);
  }
  if (const Message* filters = find_message(header, MessageType::filters)) {
    layout.filters = parse_filters(filters->body, widths);
    if (!layout.filters.empty() && layout.kind != Layout::Kind::chunked) {
      throw fault("has filters without chunks");
    }
  }
  return layout;
}

}  // namespace finetune::hdf5
