// Cuts the dense gradient into buckets of whole layers, from the head down.
#include "distributed/buckets.h"

#include <algorithm>

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

std::vector<IndexRange> elements_of_chunks(const ParameterTable& table) {
  const std::vector<IndexRange>& layers = table.part().chunks;
  std::vector<IndexRange> elements(layers.size());
  const Parameter* words = word_embeddings(table);
  int64_t end = words ? words->offset : table.size();
  // From the bottom up: encoder layer i is region i + 1 of the table.
  const std::vector<Region>& regions = table.regions();
  size_t region = regions.size();
  for (size_t chunk = 0; chunk < layers.size(); ++chunk) {
    const bool last = chunk + 1 == layers.size();
    int64_t begin = end;
    while (region > 0 && (last || regions[region - 1].layer <= layers[chunk].end)) {
      begin = std::min(begin, regions[--region].elements.begin);
    }
    elements[chunk] = {begin, end};
    end = begin;
  }
  return elements;
}

}  // namespace finetune
