// Reads the layout message of versions 1 to 4; refuses chunks and filters.
#include "weights/hdf5/storage/layout.h"

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

// Versions 1 and 2 store the sides for every layout.
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

}  // namespace finetune::hdf5
