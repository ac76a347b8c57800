// Chooses the reader of a path by its suffix or, failing that, by its first bytes.
#include "core/error.h"
#include "weights/model_directory.h"
#include "weights/stored_weights.h"

namespace finetune {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<WeightSource> open_by_content(const fs::path& path, const TensorNames& names) {
  require_file(path, ExitCode::model);
  const std::string begin = read_beginning(path, 512);
  if (begin.starts_with("PK\x03\x04")) return open_torch_zip(path, names);
  if (begin.starts_with("\x89HDF\r\n\x1a\n")) return open_keras(path, names);
  // Before pickles: the length of a safetensors header may begin with the same byte.
  if (begin.size() > 8 && begin[8] == '{') return open_safetensors(path, names);
  if (begin.starts_with('\x80')) return open_torch_legacy(path, names);
  if (begin.size() >= 262 && begin.substr(257, 5) == "ustar") {
    throw model_error(path.string(),
                      ": is a tar archive of PyTorch before 0.1.10, too old to be "
                      "read: load it in PyTorch and save it again");
  }
  throw model_error(path.string(),
                    ": is not a weight file: neither safetensors, pytorch_model.bin "
                    "(zip or pickle) nor HDF5, by its first bytes");
}

}  // namespace

std::unique_ptr<WeightSource> open_weights(const fs::path& path, const TensorNames& names) {
  const FileKind kind = kind_of(path, ExitCode::model);
  if (kind == FileKind::directory) {
    std::optional<fs::path> weights = find_weights(path);
    if (!weights) throw model_error(path.string(), ": has no weights");
    return open_weights(*weights, names);
  }
  const std::string name = path.filename().string();
  const fs::path index = fs::path(path) += ".index";
  if (kind == FileKind::absent && path_exists(index, ExitCode::model)) {
    return open_checkpoint(index, names);
  }
  if (name.ends_with(".index")) return open_checkpoint(path, names);
  size_t data = name.rfind(".data-");
  if (data != std::string::npos && name.find("-of-", data) != std::string::npos) {
    return open_checkpoint(path.parent_path() / (name.substr(0, data) + ".index"), names);
  }
  if (name.ends_with(".index.json")) return open_shard_index(path, names);
  if (name.ends_with(".safetensors")) return open_safetensors(path, names);
  if (name.ends_with(".h5") || name.ends_with(".hdf5")) return open_keras(path, names);
  return open_by_content(path, names);
}

}  // namespace finetune
