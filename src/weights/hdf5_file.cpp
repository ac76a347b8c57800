#include "weights/hdf5_file.h"

#include <cstring>

#include "core/error.h"

namespace finetune {
namespace {

constexpr size_t kMostStrings = 100'000;
constexpr size_t kLongestString = 64 * 1024;
constexpr size_t kMostBytes = size_t{16} << 20;

std::string until_nul(const char* text, size_t limit) {
  return std::string(text, strnlen(text, limit));
}

std::vector<std::string> read_variable(hid_t attribute, hid_t type, hid_t space, size_t count,
                                       bool& valid) {
  std::vector<char*> pointers(count, nullptr);
  std::vector<std::string> strings;
  valid = H5Aread(attribute, type, pointers.data()) >= 0;
  if (!valid) return strings;
  for (char* text : pointers) strings.push_back(text ? until_nul(text, kLongestString) : "");
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, pointers.data());
  return strings;
}

std::vector<std::string> read_fixed(hid_t attribute, hid_t type, size_t count, bool& valid) {
  const size_t size = H5Tget_size(type);
  std::vector<std::string> strings;
  valid = size > 0 && size <= kLongestString && count <= kMostBytes / size;
  if (!valid) return strings;
  std::vector<char> bytes(count * size);
  valid = H5Aread(attribute, type, bytes.data()) >= 0;
  if (!valid) return strings;
  for (size_t i = 0; i < count; ++i) {
    strings.push_back(until_nul(bytes.data() + i * size, size));
    if (H5Tget_strpad(type) == H5T_STR_SPACEPAD) {
      strings.back().erase(strings.back().find_last_not_of(' ') + 1);
    }
  }
  return strings;
}

}  // namespace

std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::string hdf5_reason() {
  std::string reason;
  auto keep_innermost = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
    if (error->desc && *error->desc) *static_cast<std::string*>(out) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_innermost, &reason);
  H5Eclear2(H5E_DEFAULT);
  return reason.empty() ? "unknown reason" : reason;
}

Hdf5Handle open_hdf5(const std::filesystem::path& path) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  htri_t is_hdf5 = H5Fis_hdf5(path.c_str());
  if (is_hdf5 == 0) throw model_error(path.string(), ": is not an HDF5 file");
  Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_file_locking(access, false, true);  // a read-only file system has no locks
  Hdf5Handle file(is_hdf5 < 0 ? -1 : H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), H5Fclose);
  if (!file.valid()) throw model_error(path.string(), ": HDF5 cannot open it: ", hdf5_reason());
  return file;
}

std::optional<std::vector<std::string>> read_strings(const std::string& file, hid_t object,
                                                     const std::string& name) {
  if (H5Aexists(object, name.c_str()) <= 0) return std::nullopt;
  Hdf5Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose);
  Hdf5Handle type(attribute.valid() ? H5Aget_type(attribute) : -1, H5Tclose);
  Hdf5Handle space(attribute.valid() ? H5Aget_space(attribute) : -1, H5Sclose);
  hssize_t count = space.valid() ? H5Sget_simple_extent_npoints(space) : -1;
  if (count == 0) return std::vector<std::string>();  // of any type: h5py writes [] as float64
  bool valid = type.valid() && H5Tget_class(type) == H5T_STRING && count >= 0 &&
               size_t(count) <= kMostStrings;
  std::vector<std::string> strings;
  if (valid) {
    strings = H5Tis_variable_str(type) > 0
                  ? read_variable(attribute, type, space, size_t(count), valid)
                  : read_fixed(attribute, type, size_t(count), valid);
  }
  if (!valid) {
    throw model_error(file, ": attribute ", finetune::quoted(name),
                      " is not a readable list of strings: ", hdf5_reason());
  }
  return strings;
}

std::optional<std::vector<std::string>> read_string_list(const std::string& file, hid_t object,
                                                         const std::string& name) {
  auto whole = read_strings(file, object, name);
  if (whole) return whole;
  std::optional<std::vector<std::string>> joined;
  for (size_t chunk = 0; chunk < kMostStrings; ++chunk) {
    auto part = read_strings(file, object, concat(name, chunk));
    if (!part) break;
    if (!joined) joined.emplace();
    joined->insert(joined->end(), part->begin(), part->end());
  }
  return joined;
}

}  // namespace finetune
