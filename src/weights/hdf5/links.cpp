// Reads links from symbol tables, messages and dense storage; refuses all but hard links.
#include "weights/hdf5/links.h"

#include <algorithm>
#include <utility>

#include "weights/hdf5/dense_storage.h"

namespace finetune::hdf5 {
namespace {

constexpr size_t kLongestName = 1024;
constexpr const char* kTable = "symbol table";
constexpr const char* kLink = "link";
constexpr uint8_t kTreeOfNames = 5;  // type of a version 2 B-tree

bool is_plain(std::string_view name) {
  return std::none_of(name.begin(), name.end(),
                      [](char c) { return uint8_t(c) < 0x20 || c == 0x7F || c == '/'; });
}

class LinkReader {
 public:
  explicit LinkReader(Bytes& bytes) : bytes_(bytes) {}

  std::vector<Link> read(const std::vector<Message>& header) {
    const Message* table = find_message(header, MessageType::symbol_table);
    const Message* info = find_message(header, MessageType::link_info);
    if (table && info) throw fault("has both old and new kinds of links");
    if (table) read_table(table->body);
    if (info) read_dense(info->body);
    for (const Message& message : header) {
      if (message.type != MessageType::link) continue;
      if (message.shared || !info) throw fault("its ", kLink, "s are damaged");
      read_link(message.body);
    }
    sort();
    return std::move(links_);
  }

 private:
  void add(std::string_view name, uint64_t address) {
    bytes_.charge(name.size());
    if (name.empty() || name == "." || name == ".." || name.size() > kLongestName ||
        !is_plain(name) || invalid_utf8(name) != std::string_view::npos) {
      throw fault("has a link with the name ", in_quotes(name), ", which is not read");
    }
    if (address == kUndefined) throw fault("its link ", in_quotes(name), " leads to nothing");
    links_.push_back({std::string(name), address});
  }

  static Fault not_hard(std::string_view name, const char* kind) {
    return fault("its link ", in_quotes(name), " is ", kind,
                 ", which may lead to another file: it is not followed");
  }

  void sort() {
    std::sort(links_.begin(), links_.end(),
              [](const Link& a, const Link& b) { return a.name < b.name; });
    auto twice = std::adjacent_find(links_.begin(), links_.end(),
                                    [](const Link& a, const Link& b) { return a.name == b.name; });
    if (twice != links_.end()) throw fault("has two links named ", in_quotes(twice->name));
  }

  // Old groups: a version 1 B-tree over symbol table nodes, with names in a local heap.
  void read_table(std::string_view body) {
    Cursor at(body, bytes_.widths(), kTable);
    const uint64_t tree = at.address();
    const std::string names = local_heap(at.address());
    read_tree(tree, names, -1);
  }

  std::string local_heap(uint64_t address) {
    const Widths widths = bytes_.widths();
    const std::string header =
        bytes_.structure(address, 8 + 2 * widths.length + widths.address, kTable);
    Cursor at(header, widths, kTable);
    at.expect("HEAP");
    at.expect_version(0);
    at.skip(3);
    const uint64_t size = at.length();
    at.length();  // free space
    return bytes_.structure(at.address(), size, kTable);
  }

  // `expected`: the level according to the parent, -1 at the root.
  void read_tree(uint64_t address, const std::string& names, int expected) {
    const Widths widths = bytes_.widths();
    const uint64_t before = 8 + 2 * widths.address;
    std::string front = bytes_.structure(address, before, kTable);
    Cursor at(front, widths, kTable);
    at.expect("TREE");
    at.expect_version(0);  // the type of group trees
    const int level = at.u8();
    if (expected >= 0 && level != expected) throw fault("its ", kTable, " is damaged");
    const uint64_t entries = at.u16();
    const uint64_t size = before + entries * (widths.address + widths.length) + widths.length;
    const std::string whole = bytes_.structure(address, size, kTable, std::move(front));
    Cursor children(whole, widths, kTable);
    children.skip(before);
    for (uint64_t i = 0; i < entries; ++i) {
      children.length();  // the key
      const uint64_t child = children.address();
      if (level == 0) {
        read_node(child, names);
      } else {
        read_tree(child, names, level - 1);
      }
    }
  }

  void read_node(uint64_t address, const std::string& names) {
    constexpr uint32_t kSymbolicLink = 2;
    const Widths widths = bytes_.widths();
    const uint64_t entry_size = 2 * widths.address + 24;
    std::string front = bytes_.structure(address, 8, kTable);
    Cursor at(front, widths, kTable);
    at.expect("SNOD");
    at.expect_version(1);
    at.skip(1);
    const uint64_t count = at.u16();
    const std::string node =
        bytes_.structure(address, 8 + count * entry_size, kTable, std::move(front));
    Cursor entries(node, widths, kTable);
    entries.skip(8);
    for (uint64_t i = 0; i < count; ++i) {
      const std::string_view name = name_at(names, entries.address());
      const uint64_t object = entries.address();
      const uint32_t cached = entries.u32();
      if (cached == kSymbolicLink) throw not_hard(name, "a soft link");
      if (cached > kSymbolicLink) throw fault("its ", kTable, " is damaged");
      entries.skip(20);
      add(name, object);
    }
  }

  static std::string_view name_at(const std::string& names, uint64_t offset) {
    if (offset >= names.size()) throw fault("its ", kTable, " is damaged");
    std::string_view rest = std::string_view(names).substr(size_t(offset), kLongestName + 1);
    return rest.substr(0, rest.find('\0'));
  }

  // New groups have many links in dense storage. With few, the address is undefined.
  void read_dense(std::string_view body) {
    constexpr uint8_t kOrder = 1;
    Cursor at(body, bytes_.widths(), kLink);
    at.expect_version(0);
    if (at.u8() & kOrder) at.skip(8);
    const uint64_t heap_address = at.address(), tree = at.address();
    if (heap_address == kUndefined) return;
    const FractalHeap heap(bytes_, heap_address);
    each_record(bytes_, tree, kTreeOfNames, [&](std::string_view record) {
      constexpr size_t kHash = 4;
      if (record.size() <= kHash) throw fault("its ", kLink, "s are damaged");
      read_link(heap.object(record.substr(kHash)));
    });
  }

  void read_link(std::string_view body) {
    constexpr uint8_t kOrder = 4, kType = 8, kCharacters = 16, kReserved = 0xE0;
    constexpr uint8_t kHard = 0, kSoft = 1, kExternal = 64;
    Cursor at(body, bytes_.widths(), kLink);
    at.expect_version(1);
    const uint8_t flags = at.u8();
    if (flags & kReserved) throw fault("its ", kLink, "s are damaged");
    const uint8_t type = flags & kType ? at.u8() : kHard;
    if (flags & kOrder) at.skip(8);
    if (flags & kCharacters) at.skip(1);
    const uint64_t length = at.number(size_t{1} << (flags & 3));
    const std::string_view name = at.take(length);
    if (type == kHard) return add(name, at.address());
    throw not_hard(name, type == kSoft       ? "a soft link"
                         : type == kExternal ? "an external link"
                                             : "a user-defined link");
  }

  Bytes& bytes_;
  std::vector<Link> links_;
};

}  // namespace

bool is_group(const std::vector<Message>& header) {
  return std::any_of(header.begin(), header.end(), [](const Message& message) {
    return message.type == MessageType::symbol_table || message.type == MessageType::link_info;
  });
}

std::vector<Link> read_links(Bytes& bytes, const std::vector<Message>& header) {
  return LinkReader(bytes).read(header);
}

}  // namespace finetune::hdf5
