// Converts the unpickled object of a PyTorch file (zip or legacy) to tensors.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/stored_tensor.h"
#include "weights/torch/pickle.h"

namespace finetune {

// Returns the bytes of a storage by its key and dtype; throws Error(model) if there is none.
using StorageBytes = std::function<std::string_view(const PickleValue& storage)>;

// A dictionary from names to tensors.
struct StateDict {
  const PickleValue* dict = nullptr;
  std::string entry;  // its path from the root, "['model']['state_dict']"; "" for the root itself
};
// Returns the root, or the dictionary in its entry state_dict, model_state_dict, model or module
// (training scripts put optimizers and counters beside it). Error(model) names the entries found if
// there is none, or two.
StateDict find_state_dict(const std::string& file, const PickleValue& root);

// Returns the tensors of a state dict and skips its other values. Checks sizes, strides and extent
// of every tensor against its storage.
std::vector<StoredTensor> torch_tensors(const std::string& file, const PickleValue& dict,
                                        const StorageBytes& storage_bytes);

}  // namespace finetune
