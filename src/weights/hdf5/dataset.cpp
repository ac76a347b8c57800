// Reads a dataset's description from the messages of its header, and its values.
#include "weights/hdf5/dataset.h"

#include <algorithm>

#include "core/error.h"
#include "weights/hdf5/types.h"
#include "weights/stored_tensor.h"

namespace finetune::hdf5 {
namespace {

constexpr const char* kLayout = "layout";
constexpr uint8_t kCompact = 0, kContiguous = 1, kChunked = 2, kVirtual = 3;

Layout::Kind kind_of(uint8_t layout_class) {
  switch (layout_class) {
    case kCompact:
      return Layout::Kind::compact;
    case kContiguous:
      return Layout::Kind::contiguous;
    case kChunked:
      throw fault(
          "is stored in chunks (compressed or resizable), which are not read; h5repack -l CONTI -f "
          "NONE OLD.h5 NEW.h5 rewrites it");
    case kVirtual:
      throw fault(
          "is a virtual dataset: its values lie in other datasets or files, which are not read");
    default:
      throw fault("its ", kLayout, " is not known here");
  }
}

// Versions 1 and 2 store the dimension sizes for every layout.
Layout read_oldest(Cursor& at) {
  Layout layout;
  const size_t rank = at.u8();
  layout.kind = kind_of(at.u8());
  at.skip(5);
  if (layout.kind != Layout::Kind::compact) layout.address = at.address();
  at.skip(4 * rank);
  layout.size = kUndefined;
  if (layout.kind == Layout::Kind::compact) layout.compact = at.take(at.u32());
  return layout;
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
  }
  if (find_message(header, MessageType::filters)) throw fault("has filters without chunks");
  return layout;
}

namespace {

Fault too_little(const Dataset& dataset) {
  return fault("its shape is ", shape_text(dataset.shape), ", but it has only ", dataset.stored,
               " bytes of data");
}

void find_values(Bytes& bytes, Dataset& dataset) {
  const Layout& layout = dataset.layout;
  if (layout.kind == Layout::Kind::compact) {
    dataset.stored = layout.compact.size();
  } else if (layout.address != kUndefined) {
    dataset.stored = layout.size == kUndefined ? dataset.bytes : layout.size;
  }
  if (dataset.stored != dataset.bytes) throw too_little(dataset);
  if (layout.kind == Layout::Kind::contiguous && dataset.stored > 0) {
    dataset.position = bytes.position(layout.address, dataset.stored, "data");
  }
}

// Converts piece by piece, without a copy of all values.
void convert_stored(const Bytes& bytes, const Dataset& dataset, float* out) {
  constexpr uint64_t kPiece = 1 << 18;  // elements
  const uint64_t size = dataset.type.size, count = dataset.bytes / size;
  std::string piece(size_t(std::min(kPiece, count) * size), '\0');
  for (uint64_t first = 0; first < count; first += kPiece) {
    const uint64_t elements = std::min(kPiece, count - first);
    read_stored(bytes, dataset, first * size, elements * size, piece.data());
    to_floats(dataset.type, piece.data(), elements, out + first);
  }
}

}  // namespace

Dataset read_dataset(Bytes& bytes, const std::vector<Message>& header) {
  const Widths widths = bytes.widths();
  const Message* type = find_message(header, MessageType::datatype);
  const Message* space = find_message(header, MessageType::dataspace);
  Dataset dataset;
  dataset.layout = read_layout(header, widths);
  if (!type || !space) throw fault("is not a dataset");
  dataset.type = parse_type(type->body, widths);
  const Space elements = parse_space(space->body, widths);
  if (elements.is_null) throw fault("has no values");
  dataset.shape = elements.shape;
  dataset.bytes = bytes_of(dataset.shape, dataset.type.size);
  if (dataset.bytes == kUndefined) {
    throw fault("its shape ", shape_text(dataset.shape), " is larger than any file");
  }
  find_values(bytes, dataset);
  return dataset;
}

void read_stored(const Bytes& bytes, const Dataset& dataset, uint64_t offset, uint64_t size,
                 void* out) {
  FINETUNE_CHECK(offset <= dataset.bytes && size <= dataset.bytes - offset);
  if (dataset.layout.kind == Layout::Kind::compact) {
    dataset.layout.compact.copy(static_cast<char*>(out), size_t(size), size_t(offset));
  } else {
    bytes.read(dataset.position + offset, size, out);
  }
}

void read_floats(const Bytes& bytes, const Dataset& dataset, float* out) {
  if (dataset.bytes == 0) return;
  if (is_plain_float(dataset.type)) {
    read_stored(bytes, dataset, 0, dataset.bytes, out);
  } else {
    convert_stored(bytes, dataset, out);
  }
}

}  // namespace finetune::hdf5
