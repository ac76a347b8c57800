// Reads sharded weights, safetensors or PyTorch's, through their index file.
// model.safetensors.index.json, pytorch_model.bin.index.json: {"metadata": {...}, "weight_map":
// {tensor: file beside it}}.
#include <simdjson.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/text/json_text.h"
#include "weights/stored_weights.h"
#include "weights/weight_format.h"

namespace finetune {
namespace {

struct Shard {
  std::unordered_map<std::string, StoredTensor> tensors;  // by stored name
  std::string entry;                                      // WeightSource::remark
  bool is_torch = false;
};

// One file may be listed under several names (links, ./name) and would be read once for each.
class SeenFiles {
 public:
  bool add(const std::filesystem::path& file) {
    struct stat info {};
    if (::stat(file.c_str(), &info) != 0) return true;  // opening it reports the error
    return seen_.emplace(info.st_dev, info.st_ino).second;
  }

 private:
  std::set<std::pair<dev_t, ino_t>> seen_;
};
constexpr size_t kLongestName = 255;  // longest file name on common file systems

// Shards must lie beside their index, so that an index cannot name other files.
void check_shard_name(const std::filesystem::path& index, std::string_view name) {
  const bool is_control =
      std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
  if (is_control || name.size() > kLongestName) {
    throw model_error(
        printable_path(index), ": shard ", in_quotes(name), " has ",
        is_control ? "control bytes in its name" : concat("a name of ", name.size(), " bytes"),
        ", which no shard has");
  }
  std::filesystem::path shard(name);
  bool leaves = name.empty() || shard.is_absolute();
  for (const auto& part : shard) leaves |= part == "..";
  if (leaves) {
    throw model_error(index.string(), ": shard ", in_quotes(name),
                      " is not a file of the index's directory");
  }
}

WeightFormat format_of_shard(const MappedFile& file) {
  if (file.path().extension() == ".safetensors") return WeightFormat::safetensors;
  return format_of(file.path(), file.text().substr(0, kFormatBytes));
}

FileTensors parse_shard(const MappedFile& file, WeightFormat format) {
  switch (format) {
    case WeightFormat::safetensors:
      return {parse_safetensors(file), ""};
    case WeightFormat::torch_zip:
      return parse_torch_zip(file);
    case WeightFormat::torch_legacy:
      return parse_torch_legacy(file);
    case WeightFormat::hdf5:
      break;
  }
  throw model_error(file.path().string(),
                    ": is an HDF5 file; shards are safetensors or PyTorch files");
}

Shard read_shard(const MappedFile& file) {
  const WeightFormat format = format_of_shard(file);
  FileTensors found = parse_shard(file, format);
  Shard shard{{}, std::move(found.entry), format != WeightFormat::safetensors};
  for (StoredTensor& tensor : found.tensors) {
    std::string name = tensor.stored_name;
    const auto [other, is_new] = shard.tensors.try_emplace(std::move(name), std::move(tensor));
    if (!is_new) {
      throw model_error(file.path().string(), ": holds two tensors ", in_quotes(other->first, 200));
    }
  }
  return shard;
}

}  // namespace

std::unique_ptr<WeightSource> open_shard_index(const std::filesystem::path& path,
                                               const TensorNames& names) {
  const std::string text = read_text_file(path, ExitCode::model);
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (auto error = parser.parse(text).get(root)) {
    throw model_error(path.string(), ": is not JSON: ", json_fault(error));
  }
  simdjson::dom::object weight_map;
  if (root["weight_map"].get(weight_map)) {
    throw model_error(path.string(), ": has no object \"weight_map\"");
  }
  std::vector<MappedFile> maps;
  std::vector<std::filesystem::path> files{path};
  std::unordered_map<std::string, Shard> shards;
  SeenFiles seen;
  std::vector<StoredTensor> tensors;
  std::string entry;
  bool has_torch = false;
  for (auto field : weight_map) {
    std::string_view shard_name;
    if (field.value.get(shard_name)) {
      throw model_error(path.string(), ": weight_map ", in_quotes(field.key),
                        " is not a file name");
    }
    auto [position, is_new] = shards.try_emplace(std::string(shard_name));
    Shard& shard = position->second;
    if (is_new) {
      check_shard_name(path, shard_name);
      std::filesystem::path file = path.parent_path() / shard_name;
      if (!path_exists(file, ExitCode::model)) {
        throw model_error(path.string(), ": shard ", in_quotes(shard_name),
                          " is missing: fetch it, all shards are needed");
      }
      if (!seen.add(file)) {
        throw model_error(path.string(), ": shard ", in_quotes(shard_name),
                          " is a file that it has under another name too");
      }
      maps.emplace_back(file, ExitCode::model);
      files.push_back(file);
      shard = read_shard(maps.back());
      has_torch |= shard.is_torch;
      if (entry.empty() && !shard.entry.empty()) entry = concat(shard.entry, " of ", shard_name);
    }
    auto tensor = shard.tensors.find(std::string(field.key));
    if (tensor == shard.tensors.end()) {
      throw model_error(path.string(), ": tensor ", in_quotes(field.key, 200), " is not in shard ",
                        in_quotes(shard_name), " (or named twice)");
    }
    tensors.push_back(std::move(tensor->second));
    shard.tensors.erase(tensor);
  }
  return std::make_unique<StoredWeights>(
      path, has_torch ? "pytorch (sharded)" : "safetensors (sharded)", std::move(files),
      std::move(maps), std::move(tensors), names, std::move(entry));
}

}  // namespace finetune
