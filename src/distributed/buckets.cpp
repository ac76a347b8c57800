// Cuts the dense gradient into buckets of whole layers, from the head down.
#include "distributed/buckets.h"

#include "distributed/zero_partition.h"

namespace finetune {

std::vector<Bucket> backward_buckets(const ParameterTable& table, int lowest_layer,
                                     int64_t least_bytes) {
  const Parameter* words = word_embeddings(table);
  const int64_t dense = words ? words->offset : table.size();
  std::vector<Bucket> buckets;
  int64_t begin = 0;
  const std::vector<Region>& regions = table.regions();
  for (size_t i = 0; i < regions.size() && regions[i].elements.begin < dense; ++i) {
    const int layer = regions[i].layer;
    if (layer < lowest_layer) break;
    const int64_t end = regions[i].elements.end;
    const bool dense_ends = end == dense;
    const int next = dense_ends ? -1 : regions[i + 1].layer;
    if (next == layer) continue;
    const bool last = next < lowest_layer;
    if (!last && (end - begin) * kFloatBytes < least_bytes) continue;
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
