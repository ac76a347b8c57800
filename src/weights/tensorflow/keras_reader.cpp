// Reads tf_model.h5, as Keras' save_weights writes it. The root has an attribute layer_names, each
// layer is a group with an attribute weight_names, and the paths of the datasets below it are the
// weights' names. A whole saved model has all of this below model_weights.
//
// The attributes' strings are not read: the paths have the same names, and the strings come in
// several encodings (fixed or variable length, cut into chunks).
#include <algorithm>

#include "core/error.h"
#include "core/files/file_kind.h"
#include "weights/hdf5/reader.h"
#include "weights/hdf5/types.h"
#include "weights/names.h"
#include "weights/stored_weights.h"

namespace finetune {
namespace {

using hdf5::Dataset;
using hdf5::Reader;

// A weight and the place of its values.
struct KerasTensor {
  StoredTensor tensor;
  Dataset dataset;
};

bool has_attribute(Reader& file, const std::string& group, const char* name) {
  const std::vector<std::string> names = file.attribute_names(group);
  const std::string first_part = concat(name, "0");  // Keras splits long lists
  return std::any_of(names.begin(), names.end(), [&](const std::string& found) {
    return found == name || found == first_part;
  });
}

std::string weights_root(Reader& file) {
  const std::vector<std::string> names = file.names("/");
  const bool nested = !has_attribute(file, "/", "layer_names") &&
                      std::find(names.begin(), names.end(), "model_weights") != names.end();
  return nested ? "/model_weights" : "/";
}

// transformers 4.0 to 4.5 have EinsumDense kernels of shapes (768, 12, 64) and (12, 64, 768) and
// biases (12, 64): turns them into matrices {in, out} and vectors.
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
  KerasWeights(Reader file, std::vector<KerasTensor> tensors, const TensorNames& names)
      : StoredWeights(file.path(), "tensorflow (h5)", {file.path()}, {}, descriptions(tensors),
                      names),
        file_(std::move(file)) {
    for (KerasTensor& tensor : tensors) {
      std::string name = tensor.tensor.stored_name;
      datasets_.emplace(std::move(name), std::move(tensor.dataset));
    }
  }

  void read(const WeightInfo& info, float* out) const override {
    StoredTensor tensor = stored(info);
    std::vector<float> values(size_t(element_count(tensor.shape).value_or(0)));
    file_.read_floats(datasets_.at(tensor.stored_name), values.data());
    tensor.data = reinterpret_cast<const uint8_t*>(values.data());
    tensor.dtype = DType::f32;
    copy_as_float(tensor, out);
  }

 private:
  static std::vector<StoredTensor> descriptions(const std::vector<KerasTensor>& tensors) {
    std::vector<StoredTensor> all;
    for (const KerasTensor& tensor : tensors) all.push_back(tensor.tensor);
    return all;
  }

  Reader file_;
  std::map<std::string, Dataset> datasets_;  // by path
};

std::optional<DType> dtype_of(const hdf5::Type& type) {
  if (!hdf5::is_number(type)) return std::nullopt;
  if (type.kind == hdf5::Type::Kind::brain) return DType::bf16;
  const bool real = type.kind == hdf5::Type::Kind::real;
  if (type.size == 8) return real ? DType::f64 : DType::i64;
  if (type.size == 4) return real ? DType::f32 : DType::i32;
  if (type.size == 2 && real) return DType::f16;
  if (type.size == 1) return DType::u8;
  return std::nullopt;
}

KerasTensor describe(Reader& file, const std::string& path, const std::string& weight_name) {
  constexpr size_t kMostDimensions = 8;
  KerasTensor described{{}, file.dataset(path)};
  const Dataset& dataset = described.dataset;
  const std::optional<DType> dtype = dtype_of(dataset.type);
  if (!dtype || dataset.shape.size() > kMostDimensions) {
    throw model_error(file.path().string(), ": dataset ", in_quotes(path, 200),
                      " is not an array of numbers (", dataset.type.name, " of ", dataset.type.size,
                      " bytes, ", dataset.shape.size(), " dimensions)");
  }
  StoredTensor& tensor = described.tensor;
  const TensorflowName name = from_keras_name(weight_name);
  tensor.name = name.name;
  tensor.stored_name = path;
  tensor.dtype = *dtype;
  tensor.shape = dataset.shape;
  flatten_heads(tensor.name, tensor.shape);
  tensor.strides = row_major_strides(tensor.shape);
  if (name.transpose && tensor.shape.size() == 2) {
    std::swap(tensor.shape[0], tensor.shape[1]);
    std::swap(tensor.strides[0], tensor.strides[1]);
  }
  return described;
}

// Collects the weights below `group` in order of path. A weight's name is its path relative to
// `layer`, the outermost group with an attribute weight_names; datasets outside of such groups are
// not weights.
void collect(Reader& file, const std::string& group, const std::string& layer,
             std::vector<KerasTensor>& tensors) {
  const std::string prefix = group == "/" ? group : group + "/";
  for (const std::string& name : file.names(group)) {
    const std::string path = prefix + name;
    if (file.is_group(path)) {
      const bool begins = layer.empty() && has_attribute(file, path, "weight_names");
      collect(file, path, begins ? path + "/" : layer, tensors);
    } else if (!layer.empty()) {
      tensors.push_back(describe(file, path, path.substr(layer.size())));
    }
  }
}

}  // namespace

std::unique_ptr<WeightSource> open_keras(const std::filesystem::path& path,
                                         const TensorNames& names) {
  require_file(path, ExitCode::model);
  Reader file(path);
  const std::string root = weights_root(file);
  if (!has_attribute(file, root, "layer_names")) {
    throw model_error(path.string(),
                      ": is an HDF5 file, but not weights of a Keras model (it has no attribute "
                      "layer_names)");
  }
  std::vector<KerasTensor> tensors;
  collect(file, root, "", tensors);
  return std::make_unique<KerasWeights>(std::move(file), std::move(tensors), names);
}

}  // namespace finetune
