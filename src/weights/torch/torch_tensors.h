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

// Calls `visit(name, tensor)` for the tensors of a state dict: the root itself, or its entry
// "state_dict". Entries that are not tensors are passed over. Error(model) if there are none.
void for_each_tensor(const std::string& file, const PickleValue& root,
                     const std::function<void(std::string_view, const PickleValue&)>& visit);

// Checks sizes, strides and extent of every tensor against its storage.
std::vector<StoredTensor> torch_tensors(const std::string& file, const PickleValue& root,
                                        const StorageBytes& storage_bytes);

}  // namespace finetune
