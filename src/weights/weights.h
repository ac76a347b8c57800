// Pretrained weights of any file format. There is one reader per format; each gives Hugging Face's
// names and row-major shapes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/numeric/dtype.h"
#include "core/text/tensor_names.h"

namespace finetune {

struct WeightInfo {
  std::string name;            // canonical: base prefix, LayerNorm.weight/bias, no "module."
  std::string stored_name;     // as in the file
  std::vector<int64_t> shape;  // of the canonical tensor (Linear weights are {out, in})
  DType dtype = DType::f32;    // in the file
};

// An opened set of weights. Opening checks the whole structure (Error(model) names the file and the
// fault). Nothing in a file is ever executed.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  const std::vector<WeightInfo>& tensors() const { return tensors_; }
  const WeightInfo* find(std::string_view canonical_name) const;
  // Tensors in the file that fine-tuning never uses: pre-training heads, buffers, optimizer slots.
  // Only stored_name, shape and dtype are set.
  const std::vector<WeightInfo>& ignored() const { return ignored_; }
  // Error(model) if these tensors (of tensors()), which will all be read, have more bytes than the
  // file holds for them, that is, if they share bytes. Call before allocating memory for them.
  virtual void require_own_bytes(const std::vector<const WeightInfo*>& wanted) const = 0;
  // Converts tensor `info` (one of tensors()) to float into `out`, which has room for all its
  // elements.
  virtual void read(const WeightInfo& info, float* out) const = 0;
  const std::filesystem::path& path() const { return path_; }
  std::string_view format() const { return format_; }  // "safetensors", "pytorch (zip)", ...
  // A sentence for the log if the tensors were found in an unusual place: in a dictionary entry, or
  // behind a wrapper's prefix. Else "".
  std::string remark() const;
  // Why the file's tensor names do not fit the model (name_prefix.h), for an error about a missing
  // tensor. "" if they fit.
  const std::string& name_advice() const { return name_advice_; }
  // The files of the weights, for fingerprints.
  const std::vector<std::filesystem::path>& files() const { return files_; }

 protected:
  std::vector<WeightInfo> tensors_;
  std::unordered_map<std::string_view, size_t> by_name_;  // indices of tensors_ by canonical name
  std::vector<WeightInfo> ignored_;
  std::filesystem::path path_;
  std::string format_;
  std::vector<std::filesystem::path> files_;
  std::string entry_;                // the dictionary entry that holds the tensors: "['model']"
  std::string removed_prefix_;       // the prefix removed from all names: "module."
  bool has_inner_wrappers_ = false;  // whether names in the file contain FSDP's wrapper modules
  std::string name_advice_;
};

// A weight file of any format, or a directory: the first found of model.safetensors,
// model.safetensors.index.json, pytorch_model.bin, pytorch_model.bin.index.json, tf_model.h5, a TF1
// checkpoint (*.ckpt.index).
// A TF1 checkpoint may also be named by its prefix ("bert_model.ckpt"). `names`: the tensor names
// of the model's architecture; if it has no base prefix, tensors keep the file's names.
std::unique_ptr<WeightSource> open_weights(const std::filesystem::path& path,
                                           const TensorNames& names = {});

// Error(model) if a weight holds integers.
void require_floating(const WeightSource& source, const WeightInfo& info);
// Returns the tensor of that canonical name. Error(model) if it is missing, has another shape or is
// not floating-point.
const WeightInfo& checked_tensor(const WeightSource& source, std::string_view name,
                                 const std::vector<int64_t>& shape);
// Reads the tensor into `out`. Error(model) as above, and if it holds NaN or infinity.
void read_tensor(const WeightSource& source, std::string_view name,
                 const std::vector<int64_t>& shape, float* out);

// A tensor to write.
struct WeightView {
  std::string name;
  std::vector<int64_t> shape;
  const float* data = nullptr;
};
// Writes a safetensors file (metadata {"format":"pt"}) atomically. The bytes depend only on names
// and values.
void write_safetensors(const std::filesystem::path& path, const std::vector<WeightView>& tensors,
                       DType dtype);
// The sha256 of the file that write_safetensors() would write, without writing it.
std::string safetensors_sha256(const std::vector<WeightView>& tensors, DType dtype);

// The same for tensors that are not in memory as a whole: `rows(i, first, count)` returns these
// rows of tensor i (stored_tensor.h), valid until the next call. Rows are requested in the file's
// order.
struct WeightShape {
  std::string name;
  std::vector<int64_t> shape;
};
using WeightRows = std::function<const float*(size_t tensor, int64_t first, int64_t count)>;
void write_safetensors(const std::filesystem::path& path, const std::vector<WeightShape>& tensors,
                       const WeightRows& rows, DType dtype);
std::string safetensors_sha256(const std::vector<WeightShape>& tensors, const WeightRows& rows,
                               DType dtype);

}  // namespace finetune
