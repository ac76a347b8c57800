// Chooses the reader of a path by its suffix or, failing that, by its first bytes.
#include "core/error.h"
#include "weights/model_directory.h"
#include "weights/stored_weights.h"
#include "weights/weight_format.h"

namespace finetune {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<WeightSource> open_by_content(const fs::path& path, const TensorNames& names) {
  require_file(path, ExitCode::model);
  switch (format_of(path, read_beginning(path, kFormatBytes))) {
    case WeightFormat::safetensors:
      return open_safetensors(path, names);
    case WeightFormat::torch_zip:
      return open_torch_zip(path, names);
    case WeightFormat::torch_legacy:
      return open_torch_legacy(path, names);
    case WeightFormat::hdf5:
      break;
  }
  return open_keras(path, names);
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
