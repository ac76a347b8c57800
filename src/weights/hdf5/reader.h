// Reads untrusted HDF5 files (weights, checkpoints) without the HDF5 library. It knows groups,
// attributes and datasets of numbers or fixed-size texts, as h5py, Keras and our own checkpoints
// write them. A file that is damaged, uses an unknown feature, or refers to other files is refused
// before any value is read, with one line that names the file, the object and the reason.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weights/hdf5/attributes.h"
#include "weights/hdf5/bytes.h"
#include "weights/hdf5/dataset.h"
#include "weights/hdf5/links.h"

namespace finetune::hdf5 {

// Objects are named by their paths, "/weights/bert.pooler.dense.bias"; "/" is the root. All errors
// are Error(model).
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  uint64_t file_bytes() const { return bytes_.size(); }

  bool is_group(const std::string& object);
  // The names in a group, sorted.
  std::vector<std::string> names(const std::string& group);
  // The attributes of a group.
  std::vector<std::string> attribute_names(const std::string& group);
  AttributeValue attribute(const std::string& group, const std::string& name);
  // Also checks that the file contains the bytes of its values, and that no other dataset shares
  // them.
  Dataset dataset(const std::string& object);

  // The two functions below are thread-safe. Reads bytes [offset, offset + size) of the values, as
  // stored.
  void read_bytes(const Dataset& dataset, uint64_t offset, uint64_t size, void* out) const;
  // Reads all elements of a numeric dataset, row-major.
  void read_floats(const Dataset& dataset, float* out) const;

 private:
  struct Object {
    uint64_t address = 0;
    std::vector<Message> header;
    bool is_group = false;
    std::vector<Link> links;
    std::vector<Attribute> attributes;
  };

  template <typename Act>
  decltype(auto) guarded(const std::string& object, const Act& act) const;
  const Object& find(const std::string& object);
  const Object& group(const std::string& object);
  const Object& open(const std::string& object, uint64_t address);

  std::filesystem::path path_;
  Bytes bytes_;
  std::map<std::string, Object> objects_;  // objects opened so far, by path
  std::set<uint64_t> groups_;              // addresses of groups
  std::set<std::string> datasets_;         // paths of datasets whose bytes are claimed
  uint64_t claimed_ = 0;
};

}  // namespace finetune::hdf5
