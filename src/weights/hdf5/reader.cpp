// Finds objects by path; every fault becomes a one-line error with the file and the object.
#include "weights/hdf5/reader.h"

#include <algorithm>

#include "core/error.h"
#include "weights/hdf5/superblock.h"

namespace finetune::hdf5 {
namespace {

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
