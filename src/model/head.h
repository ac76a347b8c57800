// The kinds of heads on an encoder, one row each. passes/ends.cpp computes them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/architecture.h"

namespace finetune {

enum class HeadKind {
  sequence,  // pooler and classifier on the first token: logits (B, outputs)
  token,     // a linear layer on every token: logits (T, outputs)
  masked,    // transform and tied decoder on the scored tokens: logits (M, words)
};

struct HeadTraits {
  Role role;                // of the last layer, or of a module that only this head has
  std::string_view suffix;  // of Hugging Face's class: "Bert" + "ForSequenceClassification"
};

// In the order of HeadKind.
inline constexpr std::array<HeadTraits, 3> kHeads{{
    {Role::sequence_head, "ForSequenceClassification"},
    {Role::token_head, "ForQuestionAnswering"},
    {Role::masked_transform, "ForMaskedLM"},
}};

constexpr const HeadTraits& traits_of(HeadKind kind) {
  return kHeads[size_t(kind)];
}

struct Head {
  HeadKind kind = HeadKind::sequence;
  int64_t outputs = 2;
};

}  // namespace finetune
