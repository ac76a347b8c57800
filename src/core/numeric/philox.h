// Philox4x32-10: a pure function from (key, counter) to 128 random bits. (Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", SC 2011.) There is no generator state, so a random number
// depends only on its use, never on packing, threads, processes or resuming. GPU kernels call the
// constexpr functions too.
#pragma once

#include <array>
#include <cstdint>

namespace finetune {

using PhiloxBlock = std::array<uint32_t, 4>;

struct PhiloxKey {
  uint32_t low = 0;
  uint32_t high = 0;
  friend bool operator==(const PhiloxKey&, const PhiloxKey&) = default;
};

constexpr PhiloxBlock philox(PhiloxKey key, PhiloxBlock c) {
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t{0xD2511F53u} * c[0];
    uint64_t b = uint64_t{0xCD9E8D57u} * c[2];
    c = {uint32_t(b >> 32) ^ c[1] ^ key.low, uint32_t(b), uint32_t(a >> 32) ^ c[3] ^ key.high,
         uint32_t(a)};
    key.low += 0x9E3779B9u;
    key.high += 0xBB67AE85u;
  }
  return c;
}

// The uses of random numbers. Dropout sites of layer l use layer_site(l, ...).
enum class RandomUse : uint32_t {
  shuffle = 1,
  initial_weights = 2,
  hold_out = 3,
  embedding_dropout = 4,
  head_dropout = 5,
  sweep_draw = 6,
  masking = 7,
  head_input_dropout = 8,
  convolution_dropout = 9,
  attention_dropout = 16,         // + 4 * layer
  attention_output_dropout = 17,  // + 4 * layer
  output_dropout = 18,            // + 4 * layer
  relative_dropout = 19,          // + 4 * layer
};

constexpr uint32_t layer_use(RandomUse base, int layer) {
  return uint32_t(base) + 4u * uint32_t(layer);
}

// The key of one use under one seed.
constexpr PhiloxKey derive_key(uint64_t seed, uint32_t use) {
  PhiloxBlock out =
      philox({uint32_t(seed), uint32_t(seed >> 32)}, {use, 0x66696E65u, 0x74756E65u, 0});
  return {out[0], out[1]};
}

// Identifies the random numbers of one use in one step, except for the row.
struct DropoutStream {
  PhiloxKey key;
  uint32_t step = 0;
};

// Dropout. Each element of a row uses 16 random bits and is kept if they are >= threshold. A row is
// identified by (row, sample, step); `sample` is the sample's place in the global batch. Element e
// of a row uses Philox block 16*(e/128) + e%16 and, of its eight 16-bit words (low half of word 0,
// high half of word 0, low half of word 1, ...), number (e%128)/16. So sixteen neighbours are in
// sixteen blocks, and vector code needs no transpose.
struct Dropout {
  PhiloxKey key;
  uint32_t step = 0;
  uint32_t threshold = 0;  // 0: dropout is off
  float scale = 1.0f;      // 1 / (1 - threshold / 65536)
  // If not null, points to memory of the computing device, from which the operation reads key and
  // step when it runs.
  const DropoutStream* stream = nullptr;

  static Dropout make(double probability, PhiloxKey key, uint32_t step) {
    uint32_t threshold = uint32_t(probability * 65536.0 + 0.5);
    return {key, step, threshold, float(1.0 / (1.0 - double(threshold) / 65536.0)), nullptr};
  }
  // Returns a copy with the stream's key and step. Call it only where `stream` can be read.
  constexpr Dropout taken() const {
    return stream ? Dropout{stream->key, stream->step, threshold, scale, nullptr} : *this;
  }
  constexpr bool on() const { return threshold != 0; }
};

constexpr uint32_t dropout_bits(PhiloxKey key, uint32_t row, uint32_t sample, uint32_t step,
                                uint32_t element) {
  uint32_t word = (element % 128) / 16;
  PhiloxBlock out = philox(key, {(element / 128) * 16 + element % 16, row, sample, step});
  return (out[word / 2] >> (16 * (word % 2))) & 0xFFFFu;
}

// Uniform in (0, 1), 32 bits, for shuffles and initial weights.
constexpr double unit_interval(uint32_t bits) {
  return (double(bits) + 0.5) * 0x1p-32;
}

}  // namespace finetune
