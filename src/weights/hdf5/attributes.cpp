// Reads an object's attributes from the messages of its header, or from dense storage.
#include "weights/hdf5/attributes.h"

#include <algorithm>

#include "weights/hdf5/dense_storage.h"

namespace finetune::hdf5 {
namespace {

constexpr const char* kAttribute = "attribute";
constexpr uint8_t kAttributesByName = 8;  // type of a version 2 B-tree

// The parts of an attribute message.
struct Parts {
  std::string_view name, type, space, value;
  bool has_shared = false;
};

Parts parts_of(std::string_view message, Widths widths) {
  Cursor at(message, widths, kAttribute);
  const uint8_t version = at.u8(), flags = at.u8();
  if (version < 1 || version > 3) throw fault("has an ", kAttribute, " of version ", version);
  const uint64_t name_size = at.u16(), type_size = at.u16(), space_size = at.u16();
  if (version == 3) at.skip(1);  // ASCII or UTF-8
  auto take = [&](uint64_t size) {
    const std::string_view part = at.take(size);
    if (version == 1) at.skip((8 - size % 8) % 8);
    return part;
  };
  Parts parts;
  parts.has_shared = version > 1 && flags & 3;
  parts.name = take(name_size);
  parts.name = parts.name.substr(0, parts.name.find('\0'));
  parts.type = take(type_size);
  parts.space = take(space_size);
  parts.value = at.take(at.left());
  return parts;
}

class AttributeReader {
 public:
  explicit AttributeReader(Bytes& bytes) : bytes_(bytes) {}

  std::vector<Attribute> read(const std::vector<Message>& header) {
    for (const Message& message : header) {
      if (message.type == MessageType::attribute) add(message.body, message.shared);
    }
    if (const Message* info = find_message(header, MessageType::attribute_info)) {
      read_dense_attributes(info->body);
    }
    auto by_name = [](const Attribute& a, const Attribute& b) { return a.name < b.name; };
    std::sort(attributes_.begin(), attributes_.end(), by_name);
    auto twice =
        std::adjacent_find(attributes_.begin(), attributes_.end(),
                           [](const Attribute& a, const Attribute& b) { return a.name == b.name; });
    if (twice != attributes_.end()) {
      throw fault("has two attributes named ", in_quotes(twice->name));
    }
    return std::move(attributes_);
  }

 private:
  void add(std::string_view message, bool shared) {
    if (shared) throw fault("has a shared ", kAttribute, ", which is not read");
    bytes_.charge(message.size());
    attributes_.push_back(
        {std::string(parts_of(message, bytes_.widths()).name), std::string(message)});
  }

  // Many attributes are in dense storage. With few, the address is undefined.
  void read_dense_attributes(std::string_view body) {
    constexpr uint8_t kHasOrder = 1;
    Cursor at(body, bytes_.widths(), kAttribute);
    at.expect_version(0);
    if (at.u8() & kHasOrder) at.skip(2);
    const uint64_t heap_address = at.address(), tree = at.address();
    if (heap_address == kUndefined) return;
    const FractalHeap heap(bytes_, heap_address);
    each_record(bytes_, tree, kAttributesByName, [&](std::string_view record) {
      constexpr size_t kBehind = 1 + 4 + 4;  // flags, creation order, hash
      constexpr uint8_t kSharedRecord = 2;
      if (record.size() <= kBehind) throw fault("has a damaged ", kAttribute);
      const size_t id_size = record.size() - kBehind;
      add(heap.object(record.substr(0, id_size)), uint8_t(record[id_size]) & kSharedRecord);
    });
  }

  Bytes& bytes_;
  std::vector<Attribute> attributes_;
};

}  // namespace

std::vector<Attribute> read_attributes(Bytes& bytes, const std::vector<Message>& header) {
  return AttributeReader(bytes).read(header);
}

AttributeValue value_of(const Attribute& attribute, Widths widths) {
  const Parts parts = parts_of(attribute.message, widths);
  if (parts.has_shared) {
    throw fault("its attribute ", in_quotes(attribute.name), " has a shared type");
  }
  const Type type = parse_type(parts.type, widths);
  const Space space = parse_space(parts.space, widths);
  const uint64_t size = space.is_null ? 0 : bytes_of(space.shape, type.size);
  if (size > parts.value.size()) {
    throw fault("its attribute ", in_quotes(attribute.name), " is cut short");
  }
  return {type, space.shape, std::string(parts.value.substr(0, size_t(size)))};
}

}  // namespace finetune::hdf5
