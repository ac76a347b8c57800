// The names of one architecture's tensors in weight files. The defaults are BERT's.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace finetune {

inline constexpr std::array<std::string_view, 3> kBertBeginnings{"embeddings.", "encoder.",
                                                                 "pooler."};
inline constexpr std::array<std::string_view, 2> kBertUnused{"cls.predictions.decoder.",
                                                             "cls.seq_relationship."};

struct TensorNames {
  // The prefix of the encoder's names, such as "bert."; a bare encoder's file lacks it. Empty: the
  // names in the file are used unchanged.
  std::string_view base_prefix;
  // The word embedding's name without the base prefix. It shows where a wrapper's prefix ends.
  std::string_view word_embedding = "embeddings.word_embeddings.weight";
  // In a file that lacks the base prefix, the encoder's names begin with one of these.
  std::span<const std::string_view> bare_beginnings = kBertBeginnings;
  // Tensors whose names begin with one of these are never read: the tied decoder of masked words,
  // heads of pre-training.
  std::span<const std::string_view> unused = kBertUnused;
  // The bias of the masked head's decoder, and the name that some files have in its place. Empty:
  // there is one name only.
  std::string_view decoder_bias = "cls.predictions.bias";
  std::string_view other_decoder_bias = "cls.predictions.decoder.bias";
};

}  // namespace finetune
