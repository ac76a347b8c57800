// Finds objects by path; every fault becomes a one-line error with the file and the object.
#include "weights/hdf5/reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.h"
#include "weights/hdf5/bytes.h"
#include "weights/hdf5/object_header.h"

namespace finetune::hdf5 {
namespace {

// Sets the base and width of addresses in `bytes`; returns the address of the root group's object
// header. Fault: not an HDF5 file, truncated, or one of several files.
uint64_t read_superblock(Bytes& bytes);

using namespace std::string_view_literals;

constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n"sv;
constexpr const char* kName = "superblock";
constexpr uint64_t kVersionEnd = 9;  // signature and version

// The fields that all versions share.
struct Superblock {
  Widths widths;
  uint64_t base = 0, end = 0, root = 0;
  uint64_t extension = kUndefined;
};

std::optional<uint64_t> find_signature(const Bytes& bytes) {
  std::string found(kSignature.size(), '\0');
  for (uint64_t at = 0; at < bytes.size(); at = at == 0 ? 512 : 2 * at) {
    if (bytes.size() - at < kVersionEnd) break;
    bytes.read(at, found.size(), found.data());
    if (found == kSignature) return at;
  }
  return std::nullopt;
}

Widths read_widths(Cursor& at) {
  Widths widths;
  widths.address = at.u8();
  widths.length = at.u8();
  for (size_t width : {widths.address, widths.length}) {
    if (width != 4 && width != 8) throw fault("has addresses of ", width, " bytes");
  }
  return widths;
}

// Versions 0 and 1 contain the root group's symbol table entry.
Superblock read_old(Bytes& bytes, uint8_t version, std::string start) {
  constexpr uint64_t kBeforeWidths = 13, kBetween = 1 + 2 + 2 + 4, kOfVersion1 = 4;
  std::string beginning = bytes.structure(0, kBeforeWidths + 2, kName, std::move(start));
  Cursor front(beginning, {}, kName);
  front.skip(kBeforeWidths);
  Superblock block;
  block.widths = read_widths(front);
  const uint64_t skip = kBeforeWidths + 2 + kBetween + (version == 1 ? kOfVersion1 : 0);
  const std::string whole =
      bytes.structure(0, skip + 6 * block.widths.address, kName, std::move(beginning));
  Cursor at(whole, block.widths, kName);
  at.skip(skip);
  block.base = at.address();
  at.address();  // free space
  block.end = at.address();
  if (at.address() != kUndefined) {
    throw fault("is one of several files, or was written through a driver, which is not read");
  }
  at.address();  // the root group's name
  block.root = at.address();
  return block;
}

// Versions 2 and 3.
Superblock read_new(Bytes& bytes, uint8_t version, std::string start) {
  constexpr uint64_t kFixed = 12, kChecksum = 4;
  std::string beginning = bytes.structure(0, kFixed, kName, std::move(start));
  Cursor front(beginning, {}, kName);
  front.skip(kVersionEnd);
  Superblock block;
  block.widths = read_widths(front);
  const bool being_written = front.u8() & 1;
  if (version == 3 && being_written) throw fault("was not closed by the program that wrote it");
  const uint64_t size = kFixed + 4 * block.widths.address + kChecksum;
  const std::string whole = bytes.sealed(0, size, kSignature, kName, std::move(beginning));
  Cursor at(whole, block.widths, kName);
  at.skip(kFixed);
  block.base = at.address();
  block.extension = at.address();
  block.end = at.address();
  block.root = at.address();
  return block;
}

// Refuses extensions that change the meaning of addresses.
void check_extension(Bytes& bytes, uint64_t address) {
  for (const Message& message : read_object_header(bytes, address)) {
    if (message.type == MessageType::driver) {
      throw fault("was written through a driver, which is not read");
    }
    if (message.type == MessageType::cache_image) {
      throw fault("has an image of its writer's cache, which is not read");
    }
  }
}

uint64_t read_superblock(Bytes& bytes) {
  const std::optional<uint64_t> start = find_signature(bytes);
  if (!start) throw fault("is not an HDF5 file");
  bytes.set_layout(*start, {});
  std::string beginning = bytes.structure(0, kVersionEnd, kName);
  const uint8_t version = uint8_t(beginning.back());
  if (version > 3) throw fault("is HDF5 of superblock version ", version, ", which is not read");
  const Superblock block = version < 2 ? read_old(bytes, version, std::move(beginning))
                                       : read_new(bytes, version, std::move(beginning));
  bytes.set_layout(*start, block.widths);
  // The end counts from the beginning of the file as written. A user block may have been added or
  // removed since then.
  if (block.end < block.base || block.end - block.base > bytes.size() - *start) {
    throw fault("is a truncated file: ", bytes.size(), " bytes, its end is at ", block.end);
  }
  if (block.extension != kUndefined) check_extension(bytes, block.extension);
  return block.root;
}

constexpr size_t kMostObjects = 50'000;
constexpr size_t kLongestPath = 4096;
constexpr size_t kShownPath = 200;

// Calls act(); turns a Fault into an Error(model) that begins with `where`.
template <typename Act>
decltype(auto) naming(const std::string& where, const Act& act) {
  try {
    return act();
  } catch (const Fault& found) {
    throw model_error(where, found.what());
  }
}

Bytes open_bytes(const std::filesystem::path& path) {
  return naming(concat(path.string(), ": "), [&] { return Bytes(path); });
}

}  // namespace

Reader::Reader(const std::filesystem::path& path) : path_(path), bytes_(open_bytes(path)) {
  const uint64_t root =
      naming(concat(path_.string(), ": "), [&] { return read_superblock(bytes_); });
  open("/", root);
}

template <typename Act>
decltype(auto) Reader::guarded(const std::string& object, const Act& act) const {
  return naming(concat(path_.string(), ": ", in_quotes(object, kShownPath), ": "), act);
}

const Reader::Object& Reader::open(const std::string& path, uint64_t address) {
  return guarded(path, [&]() -> const Object& {
    if (objects_.size() == kMostObjects || path.size() > kLongestPath) {
      throw fault("the file has more objects, or deeper groups, than weights need");
    }
    bytes_.charge(path.size());
    Object object;
    object.address = address;
    object.header = read_object_header(bytes_, address);
    object.is_group = hdf5::is_group(object.header);
    if (object.is_group) {
      if (!groups_.insert(address).second) {
        throw fault(
            "has a second link to it: groups that contain each other or are "
            "shared are not read");
      }
      object.links = read_links(bytes_, object.header);
      object.attributes = read_attributes(bytes_, object.header);
      object.header.clear();
    }
    return objects_.emplace(path, std::move(object)).first->second;
  });
}

const Reader::Object& Reader::find(const std::string& path) {
  auto found = objects_.find(path);
  if (found != objects_.end()) return found->second;
  const size_t slash = path.rfind('/');
  FINETUNE_CHECK(slash != std::string::npos && slash + 1 < path.size());
  const std::string name = path.substr(slash + 1);
  const std::vector<Link>& links = group(slash == 0 ? "/" : path.substr(0, slash)).links;
  auto link = std::lower_bound(links.begin(), links.end(), name,
                               [](const Link& a, const std::string& b) { return a.name < b; });
  if (link == links.end() || link->name != name) {
    throw model_error(path_.string(), ": has no ", in_quotes(path, kShownPath));
  }
  return open(path, link->address);
}

const Reader::Object& Reader::group(const std::string& path) {
  const Object& object = find(path);
  if (!object.is_group) {
    throw model_error(path_.string(), ": ", in_quotes(path, kShownPath), " is not a group");
  }
  return object;
}

bool Reader::is_group(const std::string& path) {
  return find(path).is_group;
}

std::vector<std::string> Reader::names(const std::string& path) {
  std::vector<std::string> names;
  for (const Link& link : group(path).links) names.push_back(link.name);
  return names;
}

std::vector<std::string> Reader::attribute_names(const std::string& path) {
  std::vector<std::string> names;
  for (const Attribute& attribute : group(path).attributes) names.push_back(attribute.name);
  return names;
}

AttributeValue Reader::attribute(const std::string& path, const std::string& name) {
  for (const Attribute& attribute : group(path).attributes) {
    if (attribute.name != name) continue;
    return guarded(path, [&] { return value_of(attribute, bytes_.widths()); });
  }
  throw model_error(path_.string(), ": has no attribute ", in_quotes(name));
}

Dataset Reader::dataset(const std::string& path) {
  const Object& object = find(path);
  return guarded(path, [&] {
    Dataset dataset = read_dataset(bytes_, object.header);
    dataset.path = path;
    if (datasets_.insert(path).second) claimed_ += dataset.stored;
    if (claimed_ > bytes_.size()) throw fault("shares its data with other datasets");
    return dataset;
  });
}

void Reader::read_bytes(const Dataset& dataset, uint64_t offset, uint64_t size, void* out) const {
  guarded(dataset.path, [&] { read_stored(bytes_, dataset, offset, size, out); });
}

void Reader::read_floats(const Dataset& dataset, float* out) const {
  guarded(dataset.path, [&] { hdf5::read_floats(bytes_, dataset, out); });
}

}  // namespace finetune::hdf5
