// The prefix that a wrapper, as torch.compile, put before the names of a model's tensors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace finetune {

struct NamePrefix {
  std::string removed;  // to be left out of the names that begin with it: "module.", or empty
  // Where the names do not fit, and no prefix is left out: the names found and a way, as a sentence
  // for an error about a missing tensor. Empty where they fit.
  std::string advice;
};

// The name of a BERT's word embedding, behind `base_prefix` or without it, shows the prefix. It is
// left out if each of its parts is a wrapper's: _orig_mod, model, module, encoder, net, ... A file
// with several word embeddings, none of them without a prefix, holds several models: no prefix is
// left out. In a file without a word embedding, a part of a model, and with an empty `base_prefix`,
// only module and _orig_mod are left out.
NamePrefix find_name_prefix(const std::vector<std::string>& names, std::string_view base_prefix);

}  // namespace finetune
