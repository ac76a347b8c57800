#include "weights/hdf5_file.h"

#include "core/error.h"

namespace finetune {
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

}  // namespace finetune
