// Runs passes of a two-layer model until the process's memory stops growing.
#include "train/plan/memory_probe.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/process_stats.h"
#include "data/packing.h"
#include "data/plan.h"

namespace finetune {
namespace {

constexpr int kMostPasses = 10;
constexpr int kStillPasses = 2;                     // in which nothing grew
constexpr int64_t kMostBytes = int64_t{256} << 20;  // of activations

PackedBatch batch_of(const MicroBatchLimits& size) {
  TokenizedSamples samples;
  samples.ids.assign(size_t(size.tokens), 0);
  for (int64_t i = 0; i < size.sequences; ++i) {
    samples.offsets.push_back(part(size.tokens, size.sequences, i).end);
    samples.second.push_back(uint32_t(samples.length(i)));
  }
  std::vector<uint32_t> all(size_t(size.sequences));
  std::iota(all.begin(), all.end(), 0u);
  PackedBatch batch;
  pack(samples, all, {}, batch);
  return batch;
}

}  // namespace

void probe_memory(Backend& backend, EncoderConfig config, Head head, int64_t tensor_shards,
                  const Workload& work, bool recompute) {
  config.num_hidden_layers = std::min<int64_t>(config.num_hidden_layers, 2);
  config.vocab_size = std::min<int64_t>(config.vocab_size, 1000);
  if (head.kind == HeadKind::masked) head.outputs = config.vocab_size;
  const ParameterTable table(config, head, ModelPart::whole(config, tensor_shards));
  const size_t bytes = size_t(table.size()) * sizeof(float);
  const auto weights = backend.allocate(bytes), gradients = backend.allocate(bytes);
  auto* w = static_cast<float*>(weights.get());
  Encoder encoder(backend, config, table);
  auto pass = [&](MicroBatchLimits size, bool training) {
    if (size.tokens == 0) return;
    while (size.sequences > 1 && encoder.activation_bytes(size.tokens, size.sequences, training,
                                                          recompute) > kMostBytes) {
      size = {size.tokens / 2, size.sequences / 2};
    }
    DeviceBatch batch(backend, size.tokens, size.sequences);
    batch.upload(batch_of(size));
    encoder.reserve(size.tokens, size.sequences, training, recompute);
    const Tensor logits = encoder.forward(batch, w, nullptr, training);
    if (!training) return;
    encoder.backward(batch, w, static_cast<float*>(gradients.get()), logits, nullptr, 0, false);
  };
  // Until every thread has come by its largest piece: of a small model one may take them all.
  double resident = 0;
  for (int i = 0, still = 0; i < kMostPasses && still < kStillPasses; ++i) {
    pass(work.training, true);
    pass(work.evaluation, false);
    const double now = resident_memory_mb();
    still = now > resident + 1 ? 0 : still + 1;
    resident = std::max(resident, now);
  }
}

}  // namespace finetune
