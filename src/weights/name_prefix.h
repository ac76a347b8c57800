// The prefix that a wrapper, as torch.compile, put before the names of a model's tensors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/text/tensor_names.h"

namespace finetune {

struct NamePrefix {
  std::string removed;  // to be left out of the names that begin with it: "module.", or empty
  // Where the names do not fit, and no prefix is left out: the names found and a way, as a sentence
  // for an error about a missing tensor. Empty where they fit.
  std::string advice;
};

// The word embedding's name, with the base prefix or without it, shows the wrapper's prefix. It is
// removed if each of its parts is a name that wrappers use: _orig_mod, model, module, encoder, net,
// ... A file with several word embeddings, each behind a prefix, holds several models: nothing is
// removed. Only module and _orig_mod are removed if the file has no word embedding, as a part of a
// model, or if the base prefix is empty.
NamePrefix find_name_prefix(const std::vector<std::string>& stored, const TensorNames& names);

}  // namespace finetune
