// tf_model.h5, as Keras' save_weights writes it: the root has an attribute layer_names, each layer
// is a group with an attribute weight_names, and the datasets below it carry the weights' names as
// their paths. A whole saved model has all of this below model_weights.
//
// The attributes' strings are not read. They say nothing that the paths do not, come in several
// shapes (fixed or variable length, cut into chunks), and reading variable-length strings of a
// damaged file crashes HDF5 1.10 (H5HG_read copies an object of any size).
#include "core/error.h"
#include "weights/hdf5_file.h"
#include "weights/names.h"
#include "weights/stored_weights.h"

namespace finetune {
namespace {

// No compression of HDF5's standard filters shrinks more (deflate: 1032 to 1).
constexpr uint64_t kMostCompression = 1100;

Hdf5Handle weights_root(hid_t file) {
  bool nested =
      H5Aexists(file, "layer_names") <= 0 && H5Lexists(file, "model_weights", H5P_DEFAULT) > 0;
  return Hdf5Handle(H5Gopen2(file, nested ? "model_weights" : "/", H5P_DEFAULT), H5Gclose);
}

bool has_layer_names(hid_t root) {
  return H5Aexists(root, "layer_names") > 0 || H5Aexists(root, "layer_names0") > 0;
}

// (768, 12, 64) and (12, 64, 768): EinsumDense kernels of transformers 4.0 to 4.5, and their
// biases (12, 64). As matrices {in, out} and vectors.
void flatten_heads(const std::string& name, std::vector<int64_t>& shape) {
  bool in_attention = name.find(".attention.") != std::string::npos;
  if (!in_attention) return;
  if (shape.size() == 3 && name.ends_with(".weight")) {
    if (name.ends_with("attention.output.dense.weight")) {
      shape = {shape[0] * shape[1], shape[2]};
    } else {
      shape = {shape[0], shape[1] * shape[2]};
    }
  } else if (shape.size() == 2 && name.ends_with(".bias")) {
    shape = {shape[0] * shape[1]};
  }
}

class KerasWeights : public StoredWeights {
 public:
  KerasWeights(const std::filesystem::path& path, std::vector<StoredTensor> tensors)
      : StoredWeights(path, "tensorflow (h5)", {path}, {}, std::move(tensors)) {
    std::lock_guard lock(hdf5_mutex());
    file_ = open_hdf5(path);
  }
  ~KerasWeights() override {
    std::lock_guard lock(hdf5_mutex());
    file_ = Hdf5Handle();
  }

  void read(const WeightInfo& info, float* out) const override {
    StoredTensor tensor = stored(info);
    std::vector<float> values(size_t(element_count(tensor.shape).value_or(0)));
    {
      std::lock_guard lock(hdf5_mutex());
      Hdf5Handle dataset(H5Dopen2(file_, tensor.stored_name.c_str(), H5P_DEFAULT), H5Dclose);
      if (!dataset.valid() ||
          H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
        throw model_error(path().string(), ": tensor ", in_quotes(tensor.stored_name, 200),
                          " cannot be read: ", hdf5_reason());
      }
    }
    tensor.data = reinterpret_cast<const uint8_t*>(values.data());
    tensor.dtype = DType::f32;
    copy_as_float(tensor, out);
  }

 private:
  Hdf5Handle file_;
};

std::optional<DType> dtype_of(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  const size_t size = H5Tget_size(type);
  if (kind == H5T_FLOAT) {
    if (size == 4) return DType::f32;
    if (size == 8) return DType::f64;
    if (size == 2) return DType::f16;
  }
  if (kind == H5T_INTEGER) {
    if (size == 4) return DType::i32;
    if (size == 8) return DType::i64;
    if (size == 1) return DType::u8;
  }
  return std::nullopt;
}

StoredTensor describe(const std::string& file, uint64_t file_bytes, hid_t root,
                      const std::string& path, const std::string& weight_name) {
  Hdf5Handle dataset(H5Dopen2(root, path.c_str(), H5P_DEFAULT), H5Dclose);
  Hdf5Handle type(dataset.valid() ? H5Dget_type(dataset) : -1, H5Tclose);
  Hdf5Handle space(dataset.valid() ? H5Dget_space(dataset) : -1, H5Sclose);
  const int rank = space.valid() ? H5Sget_simple_extent_ndims(space) : -1;
  std::optional<DType> dtype;
  if (type.valid()) dtype = dtype_of(type);
  if (rank < 0 || rank > 8 || !dtype) {
    throw model_error(file, ": dataset ", in_quotes(path, 200),
                      dataset.valid() ? " is not an array of numbers" : " is missing: ",
                      dataset.valid() ? "" : hdf5_reason());
  }
  hsize_t dimensions[8] = {};
  H5Sget_simple_extent_dims(space, dimensions, nullptr);
  StoredTensor tensor;
  tensor.shape.assign(dimensions, dimensions + rank);
  std::optional<int64_t> count = element_count(tensor.shape);
  const uint64_t stored_bytes = H5Dget_storage_size(dataset);
  uint64_t bytes = 0;
  if (!count || __builtin_mul_overflow(uint64_t(*count), size_of(*dtype), &bytes) ||
      stored_bytes > file_bytes || bytes / kMostCompression > stored_bytes) {
    throw model_error(file, ": dataset ", in_quotes(path, 200), " of shape ",
                      shape_text(tensor.shape), " has only ", stored_bytes, " bytes of data");
  }
  TensorflowName name = from_keras_name(weight_name);
  tensor.name = name.name;
  tensor.dtype = *dtype;
  flatten_heads(tensor.name, tensor.shape);
  tensor.strides = row_major_strides(tensor.shape);
  if (name.transpose && tensor.shape.size() == 2) {
    std::swap(tensor.shape[0], tensor.shape[1]);
    std::swap(tensor.strides[0], tensor.strides[1]);
  }
  return tensor;
}

std::string path_of(hid_t object) {
  char name[1024] = {};
  H5Iget_name(object, name, sizeof name);
  std::string path = name;
  return path == "/" ? "" : path;
}

// Paths of all datasets below `root` by hard links; links into other files are not followed.
std::vector<std::string> dataset_paths(const std::string& file, hid_t root) {
  constexpr size_t kMostPaths = 100'000;
  std::vector<std::string> paths;
  auto collect = [](hid_t group, const char* name, const H5L_info_t* link, void* out) -> herr_t {
    if (link->type != H5L_TYPE_HARD) return 0;
    Hdf5Handle object(H5Oopen(group, name, H5P_DEFAULT), H5Oclose);
    auto& found = *static_cast<std::vector<std::string>*>(out);
    if (!object.valid() || found.size() == kMostPaths) return -1;
    if (H5Iget_type(object) == H5I_DATASET) found.emplace_back(name);
    return 0;
  };
  if (H5Lvisit(root, H5_INDEX_NAME, H5_ITER_INC, collect, &paths) < 0) {
    throw model_error(file, ": its groups cannot be listed: ", hdf5_reason());
  }
  return paths;
}

bool is_layer(hid_t root, const std::string& group) {
  for (const char* attribute : {"weight_names", "weight_names0"}) {
    if (H5Aexists_by_name(root, group.c_str(), attribute, H5P_DEFAULT) > 0) return true;
  }
  return false;
}

// The part of a dataset's path behind its layer's group: the weight's name. Empty: not a weight.
std::string weight_name(hid_t root, const std::string& path) {
  for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
    if (is_layer(root, path.substr(0, slash))) return path.substr(slash + 1);
  }
  return "";
}

std::vector<StoredTensor> list_tensors(const std::filesystem::path& path) {
  std::lock_guard lock(hdf5_mutex());
  const std::string file = path.string();
  Hdf5Handle handle = open_hdf5(path);
  Hdf5Handle root = weights_root(handle);
  if (!root.valid()) throw model_error(file, ": has no root group: ", hdf5_reason());
  if (!has_layer_names(root)) {
    throw model_error(file,
                      ": is an HDF5 file, but not weights of a Keras model (it has no attribute "
                      "layer_names)");
  }
  std::vector<StoredTensor> tensors;
  const uint64_t file_bytes = std::filesystem::file_size(path);
  for (const std::string& dataset : dataset_paths(file, root)) {
    std::string weight = weight_name(root, dataset);
    if (weight.empty()) continue;
    tensors.push_back(describe(file, file_bytes, root, dataset, weight));
    tensors.back().stored_name = concat(path_of(root), "/", dataset);
  }
  return tensors;
}

}  // namespace

bool is_keras_file(const std::filesystem::path& path) {
  std::lock_guard lock(hdf5_mutex());
  try {
    Hdf5Handle file = open_hdf5(path);
    Hdf5Handle root = weights_root(file);
    return root.valid() && has_layer_names(root);
  } catch (const Error&) {
    return false;
  }
}

std::unique_ptr<WeightSource> open_keras(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) throw model_error(path.string(), ": no such file");
  if (std::filesystem::is_directory(path)) {
    throw model_error(path.string(), ": is a directory, a file is needed");
  }
  return std::make_unique<KerasWeights>(path, list_tensors(path));
}

}  // namespace finetune
