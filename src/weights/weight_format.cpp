// Recognises the format of a weight file.
#include "weights/weight_format.h"

#include "core/error.h"

namespace finetune {

WeightFormat format_of(const std::filesystem::path& path, std::string_view begin) {
  if (begin.starts_with("PK\x03\x04")) return WeightFormat::torch_zip;
  if (begin.starts_with("\x89HDF\r\n\x1a\n")) return WeightFormat::hdf5;
  // Before pickles: the length of a safetensors header may begin with the same byte.
  if (begin.size() > 8 && begin[8] == '{') return WeightFormat::safetensors;
  if (begin.starts_with('\x80')) return WeightFormat::torch_legacy;
  if (begin.size() >= 262 && begin.substr(257, 5) == "ustar") {
    throw model_error(path.string(),
                      ": is a tar archive of PyTorch before 0.1.10, too old to be "
                      "read: load it in PyTorch and save it again");
  }
  throw model_error(path.string(),
                    ": is not a weight file: neither safetensors, pytorch_model.bin "
                    "(zip or pickle) nor HDF5, by its first bytes");
}

}  // namespace finetune
