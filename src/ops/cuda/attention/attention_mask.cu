// Writes attention's dropout mask as bits; one Philox block gives eight of them.
#include "ops/cuda/attention/attention.h"
#include "ops/cuda/attention/attention_mask.h"

namespace finetune::cuda {
namespace {

constexpr int64_t kElements = 256;  // per warp and step: two times the 128 of sixteen blocks

// Block x is a sequence, block y a group of heads with `warps` warps each, block z a share of their
// elements.
__global__ void mask_kernel(AttentionShape shape, Dropout dropout, AttentionMask mask,
                            uint64_t* words, int warps) {
  wait_for_earlier_kernels();
  dropout = dropout.taken();
  const int64_t b = blockIdx.x;
  const int64_t head = int64_t(blockIdx.y) * (kAttentionWarps / warps) + warp() / warps;
  if (head >= shape.heads) return;
  const int64_t first_query = shape.queries.offsets[b];
  const int64_t queries = shape.queries.offsets[b + 1] - first_query;
  const int64_t keys = shape.keys.offsets[b + 1] - shape.keys.offsets[b];
  const int64_t elements = queries * keys;
  const uint32_t sample = shape.samples[b];
  auto* to = reinterpret_cast<uint16_t*>(words + (mask.of(head, first_query) - mask.words));
  for (int64_t piece = int64_t(blockIdx.z) * warps + warp() % warps; piece * kElements < elements;
       piece += int64_t(gridDim.z) * warps) {
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
                             int64_t query_rows, Matrix memory) {
  if (!dropout.on()) return {};
  if (!memory.data) {
    const int64_t floats = attention_mask_floats(shape.heads, query_rows, shape.keys.max_length);
    memory.data = context.scratch_floats(Scratch::mask, floats);
  }
  const AttentionMask mask = kept_attention_mask(shape, dropout, query_rows, memory);
  // A warp has eight pieces of the longest sequence.
  const int64_t elements = shape.queries.max_length * shape.keys.max_length;
  const int together = heads_of_a_block(shape), warps = kAttentionWarps / together;
  const int64_t shares = std::clamp<int64_t>(divide_up(elements, 8 * warps * kElements), 1, 65535);
  launch(context,
         dim3(unsigned(shape.queries.count), unsigned(divide_up(shape.heads, together)),
              unsigned(shares)),
         kAttentionThreads, mask_kernel, shape, dropout, mask,
         reinterpret_cast<uint64_t*>(memory.data), warps);
  return mask;
}

AttentionMask kept_attention_mask(const AttentionShape& shape, const Dropout& dropout,
                                  int64_t query_rows, Matrix memory) {
  if (!dropout.on()) return {};
  return {reinterpret_cast<const uint64_t*>(memory.data), query_rows,
          attention_mask_words(shape.keys.max_length)};
}

}  // namespace finetune::cuda
