#include "weights/hdf5_file.h"

namespace finetune {
std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace finetune
