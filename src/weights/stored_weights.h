// The common base of all readers: tensors in mapped files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/files/files.h"
#include "weights/stored_tensor.h"
#include "weights/weights.h"

namespace finetune {

class StoredWeights : public WeightSource {
 public:
  // Gives every tensor its canonical name (names.h). Error(model) if two tensors get the same name,
  // or there are more than any model has. Owns `maps`, which contain the tensors; `files` lists all
  // files of the weights. `entry`: the entry of the file that holds the tensors
  // (WeightSource::remark).
  StoredWeights(std::filesystem::path path, std::string format,
                std::vector<std::filesystem::path> files, std::vector<MappedFile> maps,
                std::vector<StoredTensor> tensors, const TensorNames& names,
                std::string entry = {});
  void require_own_bytes(const std::vector<const WeightInfo*>& wanted) const override;
  void read(const WeightInfo& info, float* out) const override;

 protected:
  const StoredTensor& stored(const WeightInfo& info) const;

 private:
  void copy(const StoredTensor& tensor, float* out) const;

  std::vector<MappedFile> maps_;
  std::vector<StoredTensor> stored_;  // parallel to tensors()
};

// One reader per format; each checks the whole structure of its file.
std::unique_ptr<WeightSource> open_safetensors(const std::filesystem::path& path,
                                               const TensorNames& names);
std::unique_ptr<WeightSource> open_shard_index(const std::filesystem::path& path,
                                               const TensorNames& names);
std::unique_ptr<WeightSource> open_torch_zip(const std::filesystem::path& path,
                                             const TensorNames& names);
std::unique_ptr<WeightSource> open_torch_legacy(const std::filesystem::path& path,
                                                const TensorNames& names);
std::unique_ptr<WeightSource> open_keras(const std::filesystem::path& path,
                                         const TensorNames& names);
std::unique_ptr<WeightSource> open_checkpoint(const std::filesystem::path& index,
                                              const TensorNames& names);

// The tensors of one file, which lie in its mapping (see the readers for the formats).
struct FileTensors {
  std::vector<StoredTensor> tensors;
  std::string entry;  // the entry of the file that holds them (WeightSource::remark)
};
std::vector<StoredTensor> parse_safetensors(const MappedFile& file);
FileTensors parse_torch_zip(const MappedFile& file);
FileTensors parse_torch_legacy(const MappedFile& file);

}  // namespace finetune
