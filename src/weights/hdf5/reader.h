// Reads HDF5 files without the HDF5 library, for weights and checkpoints that come from anywhere:
// groups, attributes and datasets of numbers or of texts of fixed size, as h5py, Keras and our own
// checkpoints have them. Whatever is damaged, unknown, or leads out of the file is refused with one
// line that names the file, the object and the reason, before any value is read.
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
#include "weights/hdf5/storage/links.h"

namespace finetune::hdf5 {

// Objects are named by their paths from the root, "/weights/bert.pooler.dense.bias"; "/" is the
// root. All errors are Error(model).
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  uint64_t file_bytes() const { return bytes_.size(); }

  bool is_group(const std::string& object);
  // Of a group, in order of name.
  std::vector<std::string> names(const std::string& group);
  // Of a group.
  std::vector<std::string> attribute_names(const std::string& group);
  AttributeValue attribute(const std::string& group, const std::string& name);
  // All of it is checked: the file has the bytes of its values, and no other dataset has them.
  Dataset dataset(const std::string& object);

  // Both may be called by several threads.
  // Bytes [offset, offset + size) of values that are not in chunks, as they are stored.
  void read_bytes(const Dataset& dataset, uint64_t offset, uint64_t size, void* out) const;
  // All elements of a dataset of numbers, row-major.
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
  std::map<std::string, Object> objects_;  // those opened so far, by path
  std::set<uint64_t> groups_;              // addresses
  std::set<std::string> datasets_;         // paths of those whose bytes are claimed
  uint64_t claimed_ = 0;
};

}  // namespace finetune::hdf5
