// The prefix that a wrapper such as torch.compile added to the names of a model's tensors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/text/tensor_names.h"

namespace finetune {

struct NamePrefix {
  std::string removed;  // prefix to remove from names that begin with it: "module.", or ""
  // If the names do not fit a model and no prefix is removed: a sentence with the names found and a
  // solution, for an error about a missing tensor. Else "".
  std::string advice;
};

// Finds the wrapper's prefix: the text before the word embedding's name, with or without the base
// prefix. It is removed if each of its parts is a name that wrappers use (_orig_mod, model, module,
// encoder, net, ...), or if all names begin with it and it is not the name of another encoder. A
// file with several prefixes of word embeddings holds several models: nothing is removed. If there
// is no word embedding (the file holds a part of a model) or the base prefix is empty, only module
// and _orig_mod are removed.
NamePrefix find_name_prefix(const std::vector<std::string>& stored, const TensorNames& names);

// Removes the modules that FSDP and activation checkpointing put around others, wherever they are
// in the name: _fsdp_wrapped_module and _checkpoint_wrapped_module.
std::string without_inner_wrappers(std::string name);

}  // namespace finetune
