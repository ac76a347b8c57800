// Writes attention's dropout mask as bits; one Philox block gives eight of them.
#include "ops/cuda/attention/attention.h"
#include "ops/cuda/attention/attention_mask.h"

namespace finetune::cuda {
namespace {

constexpr int64_t kElements = 256;  // per warp and step: two times the 128 of sixteen blocks

// Block x is a sequence, block y a head, block z a share of its elements.
__global__ void mask_kernel(AttentionShape shape, Dropout dropout, AttentionMask mask,
                            uint64_t* words) {
  dropout = dropout.taken();
  const int64_t b = blockIdx.x, head = blockIdx.y;
  const int64_t first_query = shape.queries.offsets[b];
  const int64_t queries = shape.queries.offsets[b + 1] - first_query;
  const int64_t keys = shape.keys.offsets[b + 1] - shape.keys.offsets[b];
  const int64_t elements = queries * keys;
  const uint32_t sample = shape.samples[b];
  auto* to = reinterpret_cast<uint16_t*>(words + (mask.of(head, first_query) - mask.words));
  for (int64_t piece = int64_t(blockIdx.z) * kAttentionWarps + warp(); piece * kElements < elements;
       piece += int64_t(gridDim.z) * kAttentionWarps) {
    const int64_t last = piece * kElements + kElements - 1;
    const int64_t first_row = piece * kElements / keys, last_row = last / keys;
    if (shape.window >= 0 && first_row == last_row &&
        (piece * kElements % keys > first_row + shape.window ||
         last % keys < first_row - shape.window)) {
      continue;  // keys outside of the query's window
    }
    const uint32_t block = (uint32_t(piece) * 2 + uint32_t(lane()) / 16) * 16 + lane() % 16;
    const PhiloxBlock bits =
        philox(dropout.key, {block, uint32_t(shape.first_head + head), sample, dropout.step});
    // Word w of sixteen lanes' blocks holds sixteen neighbouring elements.
    unsigned mine = 0;
    for (int w = 0; w < 8; ++w) {
      const uint32_t sixteen = (bits[w / 2] >> (16 * (w % 2))) & 0xFFFFu;
      const unsigned kept = __ballot_sync(kAllLanes, sixteen >= dropout.threshold);
      if (lane() % 8 == w) mine = lane() < 8 ? kept & 0xFFFFu : kept >> 16;
    }
    const int64_t place = piece * 16 + lane();
    if (lane() < 16 && place * 16 < elements) to[place] = uint16_t(mine);
  }
}

}  // namespace

AttentionMask attention_mask(Context& context, const AttentionShape& shape, const Dropout& dropout,
                             int64_t query_rows) {
  if (!dropout.on()) return {};
  AttentionMask mask = {nullptr, query_rows, shape.keys.max_length / 64 + 1};
  const int64_t words = shape.heads * query_rows * mask.row_words + 1;
  auto* memory =
      static_cast<uint64_t*>(context.scratch(Scratch::mask, size_t(words) * sizeof(uint64_t)));
  mask.words = memory;
  // A warp has eight pieces of the longest sequence.
  const int64_t elements = shape.queries.max_length * shape.keys.max_length;
  const int64_t shares =
      std::clamp<int64_t>(divide_up(elements, 8 * kAttentionWarps * kElements), 1, 65535);
  launch(context, dim3(unsigned(shape.queries.count), unsigned(shape.heads), unsigned(shares)),
         kAttentionThreads, mask_kernel, shape, dropout, mask, memory);
  return mask;
}

}  // namespace finetune::cuda
