// Writes checkpoints with the HDF5 library and checks every status.
#include "train/checkpoint/hdf5_writer.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/files/file_kind.h"
#include "weights/stored_tensor.h"

namespace finetune {
namespace {

// The library reports the system's error as "errno = 28, error message =".
Error last_failure(const std::string& path) {
  constexpr std::string_view kMark = "errno = ";
  const std::string report = hdf5_reason();
  const size_t at = report.find(kMark);
  const int error = at == std::string::npos ? 0 : std::atoi(report.c_str() + at + kMark.size());
  if (error > 0) return write_failure(path, error);
  return model_error(path, ": cannot be written: HDF5 reports: ", report);
}

}  // namespace

void Hdf5Writer::check(herr_t status) const {
  if (status < 0) throw last_failure(path_);
}

Hdf5Handle Hdf5Writer::check(hid_t id, herr_t (*close)(hid_t)) const {
  check(id < 0 ? -1 : 0);
  return {id, close};
}

// No time stamps: equal content gives equal bytes.
Hdf5Handle Hdf5Writer::properties_of(hid_t creation) const {
  Hdf5Handle properties = check(H5Pcreate(creation), H5Pclose);
  check(H5Pset_obj_track_times(properties, false));
  return properties;
}

Hdf5Writer::Hdf5Writer(const std::filesystem::path& path, uint64_t user_block)
    : path_(path.string()) {
  prepare_hdf5();
  Hdf5Handle creation = properties_of(H5P_FILE_CREATE);
  check(H5Pset_userblock(creation, user_block));
  Hdf5Handle access = check(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  check(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18));
  check(H5Pset_file_locking(access, false, true));
  // Makes closing the file an error while an object in it is open; else HDF5 closes it later.
  check(H5Pset_fclose_degree(access, H5F_CLOSE_SEMI));
  file_ = check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access), H5Fclose);
  close_all(creation, access);
}

void Hdf5Writer::close() {
  check(H5Fflush(file_, H5F_SCOPE_LOCAL));
  close_all(file_);
  lock_.unlock();
}

void Hdf5Writer::make_group(const std::string& name) {
  Hdf5Handle properties = properties_of(H5P_GROUP_CREATE);
  Hdf5Handle group =
      check(H5Gcreate2(file_, name.c_str(), H5P_DEFAULT, properties, H5P_DEFAULT), H5Gclose);
  close_all(group, properties);
}

void Hdf5Writer::put_attribute(const std::string& group, const std::string& name, hid_t type,
                               const void* value) {
  Hdf5Handle owner = check(H5Oopen(file_, group.c_str(), H5P_DEFAULT), H5Oclose);
  Hdf5Handle space = check(H5Screate(H5S_SCALAR), H5Sclose);
  Hdf5Handle attribute =
      check(H5Acreate2(owner, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  check(H5Awrite(attribute, type, value));
  close_all(attribute, space, owner);
}

void Hdf5Writer::write_attribute(const std::string& group, const std::string& name, int64_t value) {
  put_attribute(group, name, H5T_STD_I64LE, &value);
}

void Hdf5Writer::write_attribute(const std::string& group, const std::string& name, double value) {
  put_attribute(group, name, H5T_IEEE_F64LE, &value);
}

Hdf5Handle Hdf5Writer::string_type(size_t size) const {
  Hdf5Handle type = check(H5Tcopy(H5T_C_S1), H5Tclose);
  check(H5Tset_size(type, std::max<size_t>(size, 1)));
  check(H5Tset_strpad(type, H5T_STR_NULLPAD));
  check(H5Tset_cset(type, H5T_CSET_UTF8));
  return type;
}

void Hdf5Writer::write_attribute(const std::string& group, const std::string& name,
                                 const std::string& text) {
  Hdf5Handle type = string_type(text.size());
  put_attribute(group, name, type, text.c_str());
  close_all(type);
}

Hdf5Handle Hdf5Writer::create_dataset(const std::string& name, hid_t type, hid_t space) const {
  Hdf5Handle properties = properties_of(H5P_DATASET_CREATE);
  check(H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER));
  Hdf5Handle dataset = check(
      H5Dcreate2(file_, name.c_str(), type, space, H5P_DEFAULT, properties, H5P_DEFAULT), H5Dclose);
  close_all(properties);
  return dataset;
}

void Hdf5Writer::write_strings(const std::string& name, const std::vector<std::string>& values) {
  size_t size = 1;
  for (const auto& value : values) size = std::max(size, value.size());
  std::string block(size * values.size(), '\0');
  for (size_t i = 0; i < values.size(); ++i) values[i].copy(&block[i * size], size);
  const hsize_t extent = values.size();
  Hdf5Handle type = string_type(size);
  Hdf5Handle space = check(H5Screate_simple(1, &extent, nullptr), H5Sclose);
  Hdf5Handle dataset = create_dataset(name, type, space);
  if (extent > 0) {
    check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, block.data()));
  }
  close_all(dataset, space, type);
}

void Hdf5Writer::write_floats(const std::string& name, const std::vector<int64_t>& shape,
                              const Source& next) {
  const int rank = int(shape.size());
  std::vector<hsize_t> start(shape.size(), 0), extent(shape.begin(), shape.end());
  Hdf5Handle space = check(H5Screate_simple(rank, extent.data(), nullptr), H5Sclose);
  Hdf5Handle dataset = create_dataset(name, H5T_IEEE_F32LE, space);
  each_slab(shape, [&](int64_t first, int64_t count) {
    start[0] = hsize_t(first);
    extent[0] = hsize_t(count);
    Hdf5Handle memory = check(H5Screate_simple(rank, extent.data(), nullptr), H5Sclose);
    check(
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr));
    check(H5Dwrite(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, next(first, count)));
    close_all(memory);
  });
  close_all(dataset, space);
}

}  // namespace finetune
