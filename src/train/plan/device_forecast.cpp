// Sums GPU buffers by formula, and finds micro-batches that fit.
#include "train/plan/device_forecast.h"

#include <algorithm>

#include "data/packing.h"
#include "distributed/device/device_exchange.h"
#include "distributed/reduce/local_reduce.h"
#include "distributed/reduce/tensor_sums.h"
#include "distributed/zero_partition.h"
#include "engine/engine.h"
#include "model/activations.h"
#include "model/device_batch.h"
#include "model/passes/rotary_tables.h"
#include "ops/attention_masks.h"
#include "ops/device_sums.h"
#include "ops/library_attention.h"

namespace finetune {
namespace {

constexpr int64_t kMissedSteps = 512 * 48, kPart = 80;  // bytes, ops/cuda/kernels/optimizer.cu
constexpr int64_t kStep = 64;                           // divides a suggested --micro-batch-tokens

// The largest micro-batches that session.cpp reserves buffers for.
struct Sizes {
  BatchShape training;
  BatchShape evaluation;
};

BatchShape filled(const MicroBatchLimits& limits, const SampleView& samples) {
  return largest_filled({limits.tokens, limits.sequences, samples.longest()});
}

Sizes largest_micro_batches(const DeviceRun& run, int64_t micro_batch_tokens) {
  const int64_t shard = part(run.batch_size, run.virtual_shards, 0).size();
  const auto by_tokens = MicroBatching::of_tokens(micro_batch_tokens);
  const auto cut = run.micro_batches > 0 ? MicroBatching::into(run.micro_batches) : by_tokens;
  Sizes sizes{filled(micro_batch_limits(run.training, cut, shard), run.training), {}};
  if (run.evaluation) {
    sizes.evaluation =
        filled(micro_batch_limits(*run.evaluation, by_tokens, Engine::kEvaluationSequences),
               *run.evaluation);
  } else if (const BatchSize limits = run.evaluation_limits; limits.tokens > 0) {
    const int64_t tokens = std::min(limits.tokens, micro_batch_tokens);
    sizes.evaluation = largest_filled({tokens, std::min(limits.sequences, tokens), 0});
  }
  return sizes;
}

ActivationForm form_of(const DeviceRun& run) {
  return {run.compute, run.keeps_attention_masks, run.second_stream};
}

int64_t activation_bytes(const DeviceRun& run, const Sizes& sizes, bool recompute) {
  const Head head = run.table.head();
  const ModelPart part = run.part ? *run.part : ModelPart::whole(run.config);
  const bool activated = ActivationPlan::keeps_activated(
      run.config, head, part, form_of(run), sizes.training.tokens, sizes.training.sequences,
      recompute, run.slots,
      kept_activation_bytes(run.table.size() * kFloatBytes, run.device_bytes));
  const int64_t training = ActivationPlan::training_floats(
      run.config, head, part, form_of(run), sizes.training.tokens, sizes.training.sequences,
      recompute, run.slots, recompute ? run.horizon : 0, activated);
  const int64_t evaluation =
      ActivationPlan::inference_floats(run.config, head, part, run.compute, sizes.evaluation.tokens,
                                       sizes.evaluation.sequences, false);
  // Micro-batches, targets and losses.
  int64_t batches =
      DeviceBatch::words(std::max(sizes.training.tokens, sizes.evaluation.tokens),
                         std::max(sizes.training.sequences, sizes.evaluation.sequences));
  batches += (run.slots - 1) * DeviceBatch::words(sizes.training.tokens, sizes.training.sequences) +
             sizes.training.sequences * (head.outputs + 2);
  const int64_t tables =
      RotaryTables::floats(run.config, std::max(sizes.training.tokens, sizes.evaluation.tokens));
  return (std::max(training, evaluation) + batches + tables) * kFloatBytes;
}

int64_t message_bytes(const DeviceRun& run, const Sizes& sizes) {
  const int64_t h = run.config.hidden_size;
  const int64_t training = sizes.training.tokens * h, evaluation = sizes.evaluation.tokens * h;
  int64_t floats = run.outboxes * training + run.evaluation_outboxes * evaluation;
  if (run.tensor_ranks > 1) {
    floats += device_tensor_sum_floats(run.tensor_rank, run.tensor_ranks, run.part->tensor_shards,
                                       std::max(training, evaluation));
  }
  return floats * kFloatBytes;
}

// Memory of cuDNN's attention and its gradients (ops/cuda/attention/fused.cu): the gradients of all
// scores, and a few numbers for each row. Its plans round up the number of sequences and the
// length.
int64_t library_attention_bytes(const DeviceRun& run, const Sizes& sizes) {
  using namespace library_attention;
  constexpr int64_t kRest = int64_t{128} << 10, kOfSequence = 384;  // descriptors of tiles
  const int64_t heads = run.config.num_attention_heads;
  int64_t most = 0;
  auto count = [&](const BatchShape& size, bool gradients) {
    if (!run.library_attention || size.max_length <= kOwnLength) return;
    const int64_t planned = planned_sequences(size.sequences);
    const int64_t length = planned_length(size.max_length);
    int64_t bytes = kRest + kOfSequence * planned + heads * size.tokens * kFloatBytes +
                    7 * (planned + 64) * kFloatBytes;
    if (gradients) bytes += heads * planned * length * (2 * length + kFloatBytes);
    most = std::max(most, bytes);
  };
  count(sizes.training, true);
  count(sizes.evaluation, false);
  return most;
}

// The memory that ops/cuda keeps between kernels (Scratch in context.h), for the largest shapes.
int64_t scratch_bytes(const DeviceRun& run, const Sizes& sizes, bool offloads) {
  const bool shares_layers = run.part && run.part->shares_layers();
  const int64_t t = sizes.training.tokens, any = std::max(t, sizes.evaluation.tokens);
  int64_t bytes = library_attention_bytes(run, sizes);
  bytes += scratch_sizes(run.config, run.compute, t, any).total();
  if (run.second_stream && !shares_layers && !offloads) {
    const SecondStreamLimits most = second_stream_limits(run.config, t);
    bytes += SecondStreamMemory(most, run.compute == DType::bf16).total();
  }
  // Dropout bits of attention that are not kept with a layer's results
  // (ops/cuda/attention/attention_mask.h).
  if (run.compute == DType::bf16 && form_of(run).mask_floats(run.config, 1, t, t) == 0) {
    bytes += attention_mask_floats(run.config.num_attention_heads, t, sizes.training.max_length) *
             kFloatBytes;
  }
  // For the gradient norm: block sums as gathered from processes, their order, ordered sums.
  constexpr int64_t kOfSum = 2 * sizeof(double) + sizeof(int32_t);
  bytes += run.table.size() / kNormBlock * kOfSum;
  bytes += kMissedSteps + int64_t(run.table.parameters().size()) * kPart;  // for updates
  return bytes;
}

// What a process owns of the moments, and its buffers for the exchange between processes.
struct Shared {
  int64_t moments = 0, exchange = 0;  // floats
};

Shared shared_memory(const DeviceRun& run) {
  if (run.processes == 1) return {2 * run.table.size(), 0};
  DeviceExchangeOptions exchange;
  exchange.wire = run.wire;
  exchange.buckets = backward_buckets(run.table, run.lowest_layer, run.bucket_bytes);
  const ZeroPartition partition(run.table, 1, int(run.processes), ends_of(exchange.buckets));
  exchange.most_rows = most_rows(partition, run.training, run.batch_size);
  const DeviceExchangeMemory memory = device_exchange_memory(
      partition, int(run.processes), run.virtual_shards, run.shards, exchange);
  Shared shared;
  shared.exchange = memory.packed_gradients + memory.packed_weights + memory.incoming + memory.wire;
  for (int owner = 0; owner < partition.owners(); ++owner) {
    int64_t owned = partition.rows(owner).size() * partition.cols();
    for (int bucket = 0; bucket < partition.buckets(); ++bucket) {
      owned += partition.dense(owner, bucket).size();
    }
    shared.moments = std::max(shared.moments, 2 * owned);
  }
  return shared;
}

std::string megabytes(int64_t bytes) {
  return concat((bytes + (1 << 20) - 1) >> 20, " MiB");
}

}  // namespace

// The bf16 weights that matrix products read, and the biases of products with bf16 outputs
// (ops/cuda/kernels/rounded.h).
int64_t rounded_weight_bytes(const ParameterTable& table, DType compute) {
  if (compute != DType::bf16) return 0;
  int64_t elements = 0;
  for (const Parameter& p : table.parameters()) {
    const bool is_product = p.layer > 0 || p.role == Role::embedding_projection;
    if (p.shape.size() == 2 && is_product) elements += p.shape[0] * ((p.shape[1] + 7) / 8 * 8);
    const bool leaves_bf16 = p.role == Role::query || p.role == Role::key ||
                             p.role == Role::value || p.role == Role::inner || p.role == Role::gate;
    if (p.part == ParameterPart::bias && leaves_bf16) elements += p.size();
  }
  return elements * int64_t(size_of(DType::bf16));
}

DeviceForecast forecast_device_memory(const DeviceRun& run, int64_t micro_batch_tokens,
                                      bool recompute) {
  const Sizes sizes = largest_micro_batches(run, micro_batch_tokens);
  const int64_t arena = run.table.size() * kFloatBytes;
  const Parameter* words = word_embeddings(run.table);
  const int64_t word_lists = words ? 4 * words->shape[0] * int64_t(sizeof(int32_t)) : 0;
  DeviceForecast m;
  m.weights = arena + rounded_weight_bytes(run.table, run.compute);
  const Shared shared = shared_memory(run);
  // A process without shards still has an arena for sums.
  m.gradients = std::max<int64_t>(1, LocalReduce::arenas_needed(run.shards)) * arena + word_lists +
                shared.exchange * kFloatBytes;
  m.optimizer = shared.moments * kFloatBytes;
  m.activations = activation_bytes(run, sizes, recompute) + message_bytes(run, sizes);
  const ModelPart part = run.part ? *run.part : ModelPart::whole(run.config);
  m.offloaded = InputRing::make(run.config, run.table.head(), part, sizes.training.tokens,
                                run.slots, recompute ? run.horizon : 0)
                    .host_floats(run.slots) *
                kFloatBytes;
  m.scratch = scratch_bytes(run, sizes, m.offloaded > 0);
  return m;
}

int64_t usable_device_memory(const DeviceMemory& at_start) {
  return at_start.free - at_start.total / 256;
}

int64_t fitting_micro_batch_tokens(const DeviceRun& run, int64_t most, bool recompute,
                                   int64_t bytes) {
  if (run.micro_batches > 0) return 0;
  auto fits = [&](int64_t tokens) {
    return forecast_device_memory(run, tokens, recompute).total() <= bytes;
  };
  const int64_t longest = std::max<int64_t>(
      {1, run.training.longest(), run.evaluation ? run.evaluation->longest() : 0});
  int64_t low = longest, high = std::max(most, longest);
  if (!fits(low)) return 0;
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  // A smaller one may need more, since it keeps results of activations (kept_activation_bytes).
  const int64_t whole = low / kStep * kStep;
  return whole >= longest && fits(whole) ? whole : low;
}

Error too_little_device_memory(const DeviceRun& run, int64_t micro_batch_tokens, bool recompute,
                               const DeviceMemory& at_start, const DeviceMemory& now) {
  const int64_t needed = forecast_device_memory(run, micro_batch_tokens, recompute).total();
  // Memory that other programs took after the run began is not available to it.
  const int64_t free = std::min(at_start.free, now.free + now.used - at_start.used);
  // The run failed. If the forecast says that it fits, the forecast is too low: subtract an eighth.
  const int64_t most = std::min(usable_device_memory({free, at_start.total}), needed - needed / 8);
  const int64_t fitting = fitting_micro_batch_tokens(run, micro_batch_tokens, recompute, most);
  const int64_t recomputed = fitting_micro_batch_tokens(run, micro_batch_tokens, true, most);
  std::string advice;
  if (!recompute && forecast_device_memory(run, micro_batch_tokens, true).total() <= most) {
    advice = "--recompute would fit, with the same result; ";
  }
  if (fitting > 0) {
    advice += concat("--micro-batch-tokens ", fitting, " would fit");
  } else if (recomputed > 0) {
    advice += concat("--recompute --micro-batch-tokens ", recomputed, " would fit");
  } else if (run.micro_batches > 0) {
    advice += "more --micro-batches need less";
  } else {
    advice =
        "no --micro-batch-tokens is small enough: use a smaller model, a larger GPU or "
        "--device cpu";
  }
  return device_error("the GPU has too little memory: this run needs ", megabytes(needed), ", ",
                      megabytes(free), " are free; ", advice);
}

}  // namespace finetune
