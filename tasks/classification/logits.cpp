// Computes logits of a sample set micro-batch by micro-batch.
#include "tasks/classification/logits.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "core/error.h"
#include "data/packing.h"
#include "data/plan.h"

namespace finetune {

void compute_logits(Backend& backend, Bert& bert, float* weights, DeviceBatch& device,
                    const SampleView& samples, int64_t max_tokens, int64_t max_sequences,
                    std::vector<float>& logits) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < samples.size(); ++i) lengths.push_back(samples.length(i));
  std::vector<uint32_t> indices(lengths.size());
  std::iota(indices.begin(), indices.end(), 0u);
  PackedBatch batch;
  logits.clear();
  for (IndexRange range : micro_batches(lengths, max_tokens)) {
    for (int64_t begin = range.begin; begin < range.end; begin += max_sequences) {
      int64_t count = std::min(max_sequences, range.end - begin);
      pack(samples, std::span(indices).subspan(size_t(begin), size_t(count)), {}, batch);
      device.upload(batch);
      Tensor result = bert.forward(device, weights, nullptr, false);
      FINETUNE_CHECK(result.rows == count && result.contiguous());
      size_t done = logits.size();
      logits.resize(done + size_t(result.size()));
      backend.download(logits.data() + done, result.data, size_t(result.size()) * sizeof(float));
    }
  }
}

}  // namespace finetune
