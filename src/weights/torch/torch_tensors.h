// From the unpickled object of a PyTorch file to tensors; both containers (zip, legacy) share it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/stored_tensor.h"
#include "weights/torch/pickle.h"

namespace finetune {

// The bytes of a storage by its key and dtype; throws Error(model) if there is none.
using StorageBytes = std::function<std::string_view(const PickleValue& storage)>;

// A dictionary from names to tensors.
struct StateDict {
  const PickleValue* dict = nullptr;
  std::string entry;  // where the root has it: "['model']['state_dict']"; empty: the root itself
};
// The root itself, or the dictionary in its entry state_dict, model_state_dict, model or module,
// where optimizers and counts may lie beside it. Error(model) that names the entries found if there
// is none, or if two are possible.
StateDict find_state_dict(const std::string& file, const PickleValue& root);

// The tensors of a state dict; other values in it are left out. Checks sizes, strides and extent of
// every tensor against its storage.
std::vector<StoredTensor> torch_tensors(const std::string& file, const PickleValue& dict,
                                        const StorageBytes& storage_bytes);

}  // namespace finetune
