// Handles, errors and the global lock of the HDF5 library, which writes checkpoints.
#include "weights/hdf5/hdf5_file.h"

namespace finetune {
std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

void prepare_hdf5() {
  static const bool once = [] {
    H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    return true;
  }();
  (void)once;
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

}  // namespace finetune
