// Checks that a model can distinguish two texts in one sequence.
#pragma once

#include <string_view>

#include "core/error.h"
#include "model/config.h"

namespace finetune {

// `what` names what needs pairs, for the message. Error(model) if the type embeddings have no row
// for the second text. A model without types for pairs sees the texts' order and the separators
// between them.
inline void require_pair_types(const EncoderConfig& config, std::string_view what) {
  if (config.type_vocab_size != 1 || !config.embeddings.pair_types) return;
  throw model_error("--model: type_vocab_size is ", config.type_vocab_size,
                    " in its config.json, but ", what,
                    " puts two texts into one sequence, which needs 2; choose another model");
}

}  // namespace finetune
