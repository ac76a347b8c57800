#include "train/hdf5_store.h"

#include <algorithm>

#include "core/error.h"
#include "weights/stored_tensor.h"

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

std::vector<int64_t> shape_of(hid_t dataset) {
  Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
  int rank = H5Sget_simple_extent_ndims(space);
  std::vector<hsize_t> extent(size_t(std::max(rank, 0)));
  if (rank > 0) H5Sget_simple_extent_dims(space, extent.data(), nullptr);
  return {extent.begin(), extent.end()};
}

Hdf5Handle string_type(size_t size) {
  Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, std::max<size_t>(size, 1));
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

void cut_padding(std::string& text) {
  while (!text.empty() && text.back() == '\0') text.pop_back();
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

Hdf5Store Hdf5Store::open(const std::filesystem::path& path) {
  silence_hdf5();
  Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_file_locking(access, false, true);
  Hdf5Store file;
  file.path_ = path.string();
  file.file_ = file.check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), H5Fclose,
                          "is not a readable HDF5 file");
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

Hdf5Handle Hdf5Store::open_attribute(const std::string& group, const std::string& name) const {
  return check(H5Aopen_by_name(file_, group.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
               H5Aclose, concat("has no attribute ", in_quotes(name)));
}

int64_t Hdf5Store::read_int(const std::string& group, const std::string& name) const {
  int64_t value = 0;
  check(H5Aread(open_attribute(group, name), H5T_NATIVE_INT64, &value),
        concat("attribute ", in_quotes(name), " is not a number"));
  return value;
}

double Hdf5Store::read_double(const std::string& group, const std::string& name) const {
  double value = 0;
  check(H5Aread(open_attribute(group, name), H5T_NATIVE_DOUBLE, &value),
        concat("attribute ", in_quotes(name), " is not a number"));
  return value;
}

std::string Hdf5Store::read_text(const std::string& group, const std::string& name) const {
  Hdf5Handle attribute = open_attribute(group, name);
  Hdf5Handle type(H5Aget_type(attribute), H5Tclose);
  bool text = H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0;
  if (!text) throw model_error(path_, ": attribute ", in_quotes(name), " is not a text");
  std::string value(H5Tget_size(type), '\0');
  check(H5Aread(attribute, type, value.data()),
        concat("attribute ", in_quotes(name), " cannot be read"));
  cut_padding(value);
  return value;
}

std::vector<std::string> Hdf5Store::attribute_names(const std::string& group) const {
  Hdf5Handle owner =
      check(H5Oopen(file_, group.c_str(), H5P_DEFAULT), H5Oclose, concat("has no group ", group));
  std::vector<std::string> names;
  auto collect = [](hid_t, const char* name, const H5A_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  check(H5Aiterate2(owner, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names), "cannot be read");
  return names;
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

std::vector<std::string> Hdf5Store::read_strings(const std::string& name) const {
  Hdf5Handle dataset = check(H5Dopen2(file_, name.c_str(), H5P_DEFAULT), H5Dclose,
                             concat("has no dataset ", in_quotes(name)));
  Hdf5Handle type(H5Dget_type(dataset), H5Tclose);
  std::vector<int64_t> shape = shape_of(dataset);
  bool text = H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0;
  if (!text || shape.size() != 1) {
    throw model_error(path_, ": dataset ", in_quotes(name), " is not a list of texts");
  }
  size_t size = H5Tget_size(type);
  std::string block(size * size_t(shape[0]), '\0');
  if (shape[0] > 0) {
    check(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, block.data()),
          concat("dataset ", in_quotes(name), " cannot be read"));
  }
  std::vector<std::string> values;
  for (size_t i = 0; i < size_t(shape[0]); ++i) {
    values.push_back(block.substr(i * size, size));
    cut_padding(values.back());
  }
  return values;
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

void Hdf5Store::read_floats(const std::string& name, const std::vector<int64_t>& shape,
                            const Room& next, const Filled& filled) const {
  Hdf5Handle dataset =
      check(H5Dopen2(file_, name.c_str(), H5P_DEFAULT), H5Dclose, concat("has no tensor ", name));
  std::vector<int64_t> found = shape_of(dataset);
  if (found != shape) {
    throw model_error(path_, ": tensor ", name, " has shape ", shape_text(found),
                      ", the model needs ", shape_text(shape));
  }
  each_slab(shape, [&](int64_t first, int64_t count) {
    Slab slab = slab_of(dataset, shape, first, count);
    float* data = next(first, count);
    check(H5Dread(dataset, H5T_NATIVE_FLOAT, slab.memory, slab.file, H5P_DEFAULT, data),
          concat("tensor ", name, " cannot be read"));
    filled(first, count, data);
  });
}

std::vector<Hdf5Store::Entry> Hdf5Store::datasets(const std::string& group) const {
  Hdf5Handle owner =
      check(H5Gopen2(file_, group.c_str(), H5P_DEFAULT), H5Gclose, concat("has no group ", group));
  std::vector<std::string> names;
  auto collect = [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  check(H5Literate(owner, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names), "cannot be read");
  std::vector<Entry> entries;
  for (const auto& name : names) {
    Hdf5Handle dataset = check(H5Dopen2(owner, name.c_str(), H5P_DEFAULT), H5Dclose,
                               concat("has no dataset ", in_quotes(name)));
    entries.push_back({name, shape_of(dataset)});
  }
  return entries;
}

}  // namespace finetune
