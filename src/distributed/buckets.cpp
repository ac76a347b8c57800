// Cuts the dense gradient into buckets of whole layers, from the head down.
#include "distributed/buckets.h"

#include <algorithm>

#include "distributed/zero_partition.h"
#include "ops/backend.h"

namespace finetune {

std::vector<Bucket> backward_buckets(const ParameterTable& table, int lowest_layer,
                                     int64_t least_bytes) {
  const std::vector<Parameter>& all = table.parameters();
  const int64_t dense = word_embeddings(table).offset;
  const int64_t least = std::max<int64_t>(1, least_bytes / int64_t(sizeof(float)));
  std::vector<Bucket> buckets;
  int64_t begin = 0;
  for (size_t i = 0; i + 1 < all.size(); ++i) {  // all but the word embedding
    const int layer = all[i].layer, next = all[i + 1].layer;
    if (layer < lowest_layer) break;
    const bool last_of_dense = i + 2 == all.size();
    if (next == layer && !last_of_dense) continue;
    const bool last = last_of_dense || next < lowest_layer;
    // A block that two layers share goes with the later one; below the last one are zeros.
    const int64_t blocks = (all[i + 1].offset + (last ? kNormBlock - 1 : 0)) / kNormBlock;
    const int64_t end = std::min(dense, blocks * kNormBlock);
    if (end == begin || (end - begin < least && !last)) continue;
    buckets.push_back({{begin, end}, layer});
    begin = end;
  }
  return buckets;
}

std::vector<int64_t> ends_of(const std::vector<Bucket>& buckets) {
  std::vector<int64_t> ends;
  for (const Bucket& bucket : buckets) ends.push_back(bucket.elements.end);
  return ends;
}

}  // namespace finetune
