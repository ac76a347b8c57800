// Makes HDF5 files with the HDF5 library, valid and invalid ones.
#pragma once

#include <doctest/doctest.h>
#include <hdf5.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace finetune::test {

// An HDF5 object that is closed at the end. Failing to make it fails the test.
class Hdf5Id {
 public:
  Hdf5Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) { REQUIRE(id_ >= 0); }
  ~Hdf5Id() { close_(id_); }
  Hdf5Id(const Hdf5Id&) = delete;
  Hdf5Id& operator=(const Hdf5Id&) = delete;
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

enum class Hdf5Format { oldest, v18, newest };
constexpr Hdf5Format kHdf5Formats[] = {Hdf5Format::oldest, Hdf5Format::v18, Hdf5Format::newest};

class MadeFile {
 public:
  // Addresses and lengths have `width` bytes.
  explicit MadeFile(const std::filesystem::path& path, Hdf5Format format = Hdf5Format::oldest,
                    hsize_t user_block = 0, size_t width = 8)
      : file_(create(path, format, user_block, width), H5Fclose) {}

  operator hid_t() const { return file_; }

  void group(const std::string& path) {
    Hdf5Id(H5Gcreate2(file_, path.c_str(), parents(), H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  }

  // `change` may set properties of the dataset; `values` are converted to `type`.
  using Change = std::function<void(hid_t properties)>;
  void dataset(const std::string& path, const std::vector<hsize_t>& shape, hid_t type,
               const std::vector<double>& values, const Change& change = {},
               const hsize_t* most_shape = nullptr) {
    const Hdf5Id properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    if (change) change(properties);
    const Hdf5Id space(H5Screate_simple(int(shape.size()), shape.data(), most_shape), H5Sclose);
    const Hdf5Id made(
        H5Dcreate2(file_, path.c_str(), type, space, parents(), properties, H5P_DEFAULT), H5Dclose);
    if (values.empty()) return;
    REQUIRE(H5Dwrite(made, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
  }

  // One element of `type`; `value` points to it.
  void attribute(const std::string& object, const std::string& name, hid_t type,
                 const void* value) {
    const Hdf5Id owner(H5Oopen(file_, object.c_str(), H5P_DEFAULT), H5Oclose);
    const Hdf5Id space(H5Screate(H5S_SCALAR), H5Sclose);
    const Hdf5Id made(H5Acreate2(owner, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT),
                      H5Aclose);
    REQUIRE(H5Awrite(made, type, value) >= 0);
  }
  void mark(const std::string& object, const std::string& name) {
    const int64_t one = 1;
    attribute(object, name, H5T_STD_I64LE, &one);
  }

  // The library's own reading.
  std::vector<float> values(const std::string& path) const {
    const Hdf5Id made(H5Dopen2(file_, path.c_str(), H5P_DEFAULT), H5Dclose);
    const Hdf5Id space(H5Dget_space(made), H5Sclose);
    std::vector<float> out(size_t(H5Sget_simple_extent_npoints(space)));
    REQUIRE(H5Dread(made, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()) >= 0);
    return out;
  }

 private:
  static hid_t create(const std::filesystem::path& path, Hdf5Format format, hsize_t user_block,
                      size_t width) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    const Hdf5Id creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
    H5Pset_userblock(creation, user_block);
    H5Pset_sizes(creation, width, width);
    const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    const H5F_libver_t version = format == Hdf5Format::oldest ? H5F_LIBVER_EARLIEST
                                 : format == Hdf5Format::v18  ? H5F_LIBVER_V18
                                                              : H5F_LIBVER_LATEST;
    H5Pset_libver_bounds(access, version, std::max(version, H5F_LIBVER_V18));
    return H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access);
  }

  // Creates missing groups on the way to an object.
  static const Hdf5Id& parents() {
    static const Hdf5Id properties = [] {
      const hid_t id = H5Pcreate(H5P_LINK_CREATE);
      H5Pset_create_intermediate_group(id, 1);
      return Hdf5Id(id, H5Pclose);
    }();
    return properties;
  }

  Hdf5Id file_;
};

inline std::vector<double> counting_to(size_t count) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = double(i);
  return values;
}

}  // namespace finetune::test
