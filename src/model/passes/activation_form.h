// What a backend does with activations: their type, kept masks, and reads on a second stream.
#pragma once

#include <algorithm>

#include "core/numeric/dtype.h"
#include "model/config.h"
#include "ops/attention_masks.h"
#include "ops/backend.h"

namespace finetune {

// An upper bound on the length of a sequence in a micro-batch of at most `tokens` tokens. The
// sequence is a text or a filler, and its length is rounded up (data/packing.h), possibly beyond
// the longest text that the model takes.
inline int64_t longest_sequence(const EncoderConfig& config, int64_t tokens) {
  const int64_t longest = std::max({config.max_length(), int64_t{128}, tokens / 64});
  return std::clamp<int64_t>(tokens, 1, (longest + 63) / 64 * 64);
}

// If made from a type alone: no masks are kept, and there is one stream.
struct ActivationForm {
  static constexpr int64_t kLongestMasked = 1024;

  DType type = DType::f32;
  bool keeps_masks = false;    // Backend::keeps_attention_masks
  bool second_stream = false;  // Backend::has_second_stream

  ActivationForm(DType of, bool keeps = false, bool second = false)
      : type(of), keeps_masks(keeps), second_stream(second) {}
  ActivationForm(const Backend& backend)
      : ActivationForm(backend.activation_type(), backend.keeps_attention_masks(),
                       backend.has_second_stream()) {}

  // Floats of attention's masks for `rows` queries of a tensor shard. 0 for other head sizes and
  // with a bias, since those kernels keep no masks (ops/cuda/attention/attention_tiles.h), and in
  // models for long texts, which would need room for the longest text.
  int64_t mask_floats(const EncoderConfig& config, int64_t shards, int64_t rows,
                      int64_t tokens) const {
    const int64_t size = config.head_size();
    if (!keeps_masks || config.attention_probs_dropout_prob == 0 || config.layer.position_bias ||
        config.relative.on() || (size != 32 && size != 64 && size != 128) ||
        config.max_length() > kLongestMasked) {
      return 0;
    }
    const int64_t heads = config.num_attention_heads / shards;
    return attention_mask_floats(heads, rows, longest_sequence(config, tokens));
  }
};

}  // namespace finetune
