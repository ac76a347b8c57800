#include "train/hdf5_store.h"

#include <algorithm>

#include "core/error.h"

namespace finetune {
namespace {

void silence_hdf5() {
  static const bool once = [] {
    H5dont_atexit();  // after a failed write its exit handler would complain
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    return true;
  }();
  (void)once;
}

Hdf5Handle string_type(size_t size) {
  Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, std::max<size_t>(size, 1));
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

// No time stamps: equal content gives equal bytes.
Hdf5Handle dataset_properties() {
  Hdf5Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(properties, false);
  H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER);
  return properties;
}

}  // namespace

Hdf5Handle Hdf5Store::check(hid_t id, herr_t (*close)(hid_t), const std::string& what) const {
  if (id < 0) throw model_error(path_, ": ", what);
  return {id, close};
}

void Hdf5Store::check(herr_t status, const std::string& what) const {
  if (status < 0) throw model_error(path_, ": ", what);
}

Hdf5Store Hdf5Store::create(const std::filesystem::path& path, uint64_t user_block) {
  silence_hdf5();
  Hdf5Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_userblock(creation, user_block);
  H5Pset_obj_track_times(creation, false);  // of the root group
  Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
  H5Pset_file_locking(access, false, true);
  Hdf5Store file;
  file.path_ = path.string();
  file.file_ = file.check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access), H5Fclose,
                          "cannot be created");
  return file;
}

void Hdf5Store::close() {
  hid_t id = file_;
  H5Iinc_ref(id);  // the handle lets go first, so that the status of the last close is seen
  file_ = Hdf5Handle();
  if (H5Fclose(id) < 0) throw model_error(path_, ": cannot be written (is the disk full?)");
}

void Hdf5Store::make_group(const std::string& name) {
  Hdf5Handle properties(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  H5Pset_obj_track_times(properties, false);
  check(H5Gcreate2(file_, name.c_str(), H5P_DEFAULT, properties, H5P_DEFAULT), H5Gclose,
        "cannot be written (is the disk full?)");
}

void Hdf5Store::put_attribute(const std::string& group, const std::string& name, hid_t type,
                              const void* value) {
  Hdf5Handle owner =
      check(H5Oopen(file_, group.c_str(), H5P_DEFAULT), H5Oclose, concat("has no group ", group));
  Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  std::string failure = "cannot be written (is the disk full?)";
  Hdf5Handle attribute = check(
      H5Acreate2(owner, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose, failure);
  check(H5Awrite(attribute, type, value), failure);
}

void Hdf5Store::write_attribute(const std::string& group, const std::string& name, int64_t value) {
  put_attribute(group, name, H5T_STD_I64LE, &value);
}

void Hdf5Store::write_attribute(const std::string& group, const std::string& name, double value) {
  put_attribute(group, name, H5T_IEEE_F64LE, &value);
}

void Hdf5Store::write_attribute(const std::string& group, const std::string& name,
                                const std::string& text) {
  put_attribute(group, name, string_type(text.size()), text.c_str());
}

void Hdf5Store::write_strings(const std::string& name, const std::vector<std::string>& values) {
  size_t size = 1;
  for (const auto& value : values) size = std::max(size, value.size());
  std::string block(size * values.size(), '\0');
  for (size_t i = 0; i < values.size(); ++i) values[i].copy(&block[i * size], size);
  Hdf5Handle type = string_type(size);
  hsize_t extent = values.size();
  std::string failure = "cannot be written (is the disk full?)";
  Hdf5Handle space = check(H5Screate_simple(1, &extent, nullptr), H5Sclose, failure);
  Hdf5Handle dataset = check(
      H5Dcreate2(file_, name.c_str(), type, space, H5P_DEFAULT, dataset_properties(), H5P_DEFAULT),
      H5Dclose, failure);
  if (extent == 0) return;
  check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, block.data()), failure);
}

namespace {

constexpr int64_t kSlabFloats = int64_t{1} << 22;

int64_t row_floats(const std::vector<int64_t>& shape) {
  int64_t floats = 1;
  for (size_t d = 1; d < shape.size(); ++d) floats *= shape[d];
  return std::max<int64_t>(floats, 1);
}

// Rows [first, first + count) of a dataset, in the file and in memory.
struct Slab {
  Hdf5Handle file, memory;
};

Slab slab_of(hid_t dataset, const std::vector<int64_t>& shape, int64_t first, int64_t count) {
  std::vector<hsize_t> start(shape.size(), 0), extent(shape.begin(), shape.end());
  start[0] = hsize_t(first);
  extent[0] = hsize_t(count);
  Slab slab{Hdf5Handle(H5Dget_space(dataset), H5Sclose),
            Hdf5Handle(H5Screate_simple(int(extent.size()), extent.data(), nullptr), H5Sclose)};
  H5Sselect_hyperslab(slab.file, H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr);
  return slab;
}

}  // namespace

int64_t checkpoint_rows(const std::vector<int64_t>& shape) {
  return std::max<int64_t>(1, kSlabFloats / row_floats(shape));
}

void Hdf5Store::write_floats(const std::string& name, const std::vector<int64_t>& shape,
                             const Source& next) {
  std::vector<hsize_t> extent(shape.begin(), shape.end());
  std::string failure = "cannot be written (is the disk full?)";
  Hdf5Handle space =
      check(H5Screate_simple(int(extent.size()), extent.data(), nullptr), H5Sclose, failure);
  Hdf5Handle dataset = check(H5Dcreate2(file_, name.c_str(), H5T_IEEE_F32LE, space, H5P_DEFAULT,
                                        dataset_properties(), H5P_DEFAULT),
                             H5Dclose, failure);
  each_slab(shape, [&](int64_t first, int64_t count) {
    Slab slab = slab_of(dataset, shape, first, count);
    check(H5Dwrite(dataset, H5T_NATIVE_FLOAT, slab.memory, slab.file, H5P_DEFAULT,
                   next(first, count)),
          failure);
  });
}

}  // namespace finetune
