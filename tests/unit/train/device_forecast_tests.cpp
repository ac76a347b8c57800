// Forecasts of GPU memory, and micro-batches chosen by them.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "../contains.h"
#include "data/packing.h"
#include "engine/engine.h"
#include "model/activations.h"
#include "train/plan/device_forecast.h"

namespace finetune {

using test::contains;
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// 64 samples of 10 to 73 tokens.
TokenizedSamples some_samples() {
  TokenizedSamples samples;
  for (int64_t i = 0; i < 64; ++i) {
    samples.ids.resize(samples.ids.size() + size_t(10 + i), 1);
    samples.offsets.push_back(int64_t(samples.ids.size()));
    samples.second.push_back(uint32_t(10 + i));
  }
  return samples;
}

struct Case {
  EncoderConfig config = named_shape("base");
  ParameterTable table{config, {HeadKind::sequence, 24}};
  TokenizedSamples samples = some_samples();
  DeviceRun run{config, table, samples, samples, 32};

  int64_t total(int64_t tokens, bool recompute = false) const {
    return forecast_device_memory(run, tokens, recompute).total();
  }
};

TEST_CASE("a GPU's memory: arenas by the table, activations by the micro-batch") {
  Case c;
  const DeviceForecast m = forecast_device_memory(c.run, 2048, false);
  const int64_t arena = c.table.size() * int64_t(sizeof(float));
  CHECK(m.weights == arena);
  CHECK(m.optimizer == 2 * arena);
  CHECK(m.gradients == arena + 4 * c.config.vocab_size * 4);
  CHECK(c.total(1024) < c.total(2048));
  CHECK(c.total(2048, true) < c.total(2048));
  // Each of four processes has a part of the moments and receives three others' subtrees of the
  // largest slice that it sums, and rows of words for gradients and weights: at most the batch's
  // tokens.
  c.run.processes = 4;
  c.run.virtual_shards = 4;
  const DeviceForecast quarter = forecast_device_memory(c.run, 2048, false);
  CHECK(quarter.optimizer > m.optimizer / 4);
  CHECK(quarter.optimizer < m.optimizer / 4 + m.optimizer / 16);
  const int64_t rows = 32 * 73 * c.config.hidden_size * 4, layer = int64_t{28} * 1024 * 1024;
  const int64_t slices = quarter.gradients - m.gradients - 2 * rows;
  CHECK(slices > 4 * std::max(layer / 4, rows));
  CHECK(slices < 4 * (layer / 4 + 2 * kMiB));
  // In bf16 there is room for four outgoing and four incoming slices of half the size.
  c.run.wire = DType::bf16;
  const int64_t wire = forecast_device_memory(c.run, 2048, false).gradients - quarter.gradients;
  CHECK(wire == slices);
  c.run.wire = DType::f32;
  // Only the head is trained: one small bucket.
  c.run.lowest_layer = 13;
  const int64_t least = forecast_device_memory(c.run, 2048, false).gradients - m.gradients;
  CHECK(least - 2 * rows == 4 * rows);
  c.run.lowest_layer = 0;
  c.run.processes = 1;
  // Shards have smaller micro-batches; their gradients are added in a tree.
  c.run.virtual_shards = 4;
  c.run.shards = {0, 4};
  const DeviceForecast sharded = forecast_device_memory(c.run, 2048, false);
  CHECK(sharded.gradients - m.gradients == 2 * arena);
  // In bf16 activations take less; the weights have rounded copies, some operands memory of theirs.
  c.run.compute = DType::bf16;
  const DeviceForecast rounded = forecast_device_memory(c.run, 2048, false);
  CHECK(double(rounded.activations) < 0.8 * double(sharded.activations));
  CHECK(rounded.activations > sharded.activations / 2);
  CHECK(rounded.weights > arena);
  CHECK(rounded.weights < arena + arena / 2);
  CHECK(rounded.scratch > sharded.scratch);
  CHECK(rounded.gradients == sharded.gradients);
}

TEST_CASE("a GPU's memory: a second stream has its own, except with tensor ranks or offloading") {
  Case c;
  c.run.evaluation.reset();
  c.run.compute = DType::bf16;
  const auto scratch = [&](bool second) {
    c.run.second_stream = second;
    return forecast_device_memory(c.run, 2048, true).scratch;
  };
  // Its workspace; two operands (T, H) in bf16; sums of 64 rows each of the widest bias.
  const int64_t tokens = 2048 + 128, h = 768;  // with what fills micro-batches up
  CHECK(scratch(true) - scratch(false) == 32 * kMiB + 2 * tokens * h * 2 + tokens / 64 * 4 * h * 4);
  c.run.horizon = 4;
  CHECK(scratch(true) == scratch(false));
  c.run.horizon = 0;
  ModelPart shared = ModelPart::whole(c.config, 2);
  shared.shards = {0, 1};
  c.run.part = shared;
  CHECK(scratch(true) == scratch(false));
}

TEST_CASE(
    "a GPU's memory: attention's masks with each layer's results, or once with recomputation") {
  Case c;
  c.run.evaluation.reset();
  c.run.compute = DType::bf16;
  const MicroBatchLimits limits =
      micro_batch_limits(c.samples, MicroBatching::of_tokens(2048), c.run.batch_size);
  const BatchShape most =
      largest_filled({limits.tokens, limits.sequences, c.run.training.longest()});
  for (bool recompute : {false, true}) {
    c.run.keeps_attention_masks = false;
    const DeviceForecast twice = forecast_device_memory(c.run, 2048, recompute);
    c.run.keeps_attention_masks = true;
    const DeviceForecast once = forecast_device_memory(c.run, 2048, recompute);
    // 12 heads, 512 / 64 + 1 words of 8 bytes; the last layer has first tokens' queries alone.
    const int64_t of_layer = 12 * 9 * 8 * most.tokens, layers = recompute ? 1 : 11;
    const int64_t more = once.activations - twice.activations - layers * of_layer;
    CHECK(more >= 0);
    CHECK(more < of_layer / 8);
    CHECK(twice.scratch - once.scratch == (12 * most.tokens * (most.max_length / 64 + 1) + 1) * 8);
  }
  // Heads of other sizes have no masks in memory.
  c.config.num_attention_heads = 16;
  const int64_t kept = forecast_device_memory(c.run, 2048, false).activations;
  c.run.keeps_attention_masks = false;
  CHECK(forecast_device_memory(c.run, 2048, false).activations == kept);
}

TEST_CASE("a GPU's memory: arenas of a part of the model, with words or without") {
  const Case whole;
  ModelPart first = ModelPart::whole(whole.config), last = first;
  first.chunks = {{0, 6}};
  first.head = false;
  last.chunks = {{6, 12}};
  last.embeddings = false;
  for (int64_t processes : {1, 2}) {
    int64_t weights = 0, optimizer = 0;
    for (const ModelPart& part : {first, last}) {
      const ParameterTable table(whole.config, {HeadKind::sequence, 24}, part);
      DeviceRun run{whole.config, table, whole.samples, whole.samples, 32};
      run.processes = run.virtual_shards = processes;
      const DeviceForecast m = forecast_device_memory(run, 2048, false);
      weights += m.weights;
      optimizer += m.optimizer;
      const int64_t arena = table.size() * kFloatBytes;
      CHECK(m.weights == arena);
      if (processes == 1) {
        CHECK(m.gradients == arena + (part.embeddings ? 16 * whole.config.vocab_size : 0));
      }
    }
    CHECK(weights == whole.table.size() * kFloatBytes);
    CHECK(optimizer >= 2 * weights / processes);
    CHECK(optimizer < 2 * weights / processes + 2 * kMiB);
  }
}

TEST_CASE("a GPU's memory: evaluation pads micro-batches as training does") {
  Case c;
  c.run.batch_size = 1;  // training needs less
  const MicroBatchLimits limits =
      micro_batch_limits(c.samples, MicroBatching::of_tokens(2048), Engine::kEvaluationSequences);
  const BatchShape most = largest_filled({limits.tokens, limits.sequences, 0});
  REQUIRE(most.tokens > limits.tokens);
  const int64_t floats =
      ActivationPlan::inference(c.config, c.table.head(), ModelChunk::whole(c.config), DType::f32,
                                most.tokens, most.sequences, false)
          .floats;
  const int64_t forecast = forecast_device_memory(c.run, 2048, false).activations;
  CHECK(forecast > floats * 4);
  CHECK(forecast < floats * 4 + kMiB);  // ids, types, ... and offsets
}

TEST_CASE("a GPU's memory: a number of micro-batches decides in place of their tokens") {
  Case c;
  c.run.evaluation.reset();
  const int64_t whole = c.total(1 << 20);
  c.run.micro_batches = 1;
  CHECK(c.total(64) == whole);  // one micro-batch of the batch's 32 longest samples
  c.run.micro_batches = 8;
  CHECK(c.total(1 << 20) < whole);
  CHECK(fitting_micro_batch_tokens(c.run, 2048, false, whole) == 0);  // the sizes do not decide
  const Error error = too_little_device_memory(c.run, 64, true, {kMiB, kMiB, 0}, {kMiB, kMiB, 0});
  CHECK(contains(error.what(), "more --micro-batches need less"));
}

TEST_CASE("a GPU's memory: results of the activation function where there is room") {
  constexpr int64_t kGiB = int64_t{1} << 30;
  Case c;
  c.run.evaluation.reset();
  auto activations = [&](int64_t device_bytes, bool recompute = false) {
    c.run.device_bytes = device_bytes;
    return forecast_device_memory(c.run, 2048, recompute).activations;
  };
  const int64_t least = activations(0), most = activations(80 * kGiB);
  // Of all tokens of the micro-batch, but in the last layer of its sequences alone.
  const MicroBatchLimits limits =
      micro_batch_limits(c.samples, MicroBatching::of_tokens(2048), c.run.batch_size);
  const BatchShape size = largest_filled({limits.tokens, limits.sequences, 73});
  CHECK(most - least == (11 * size.tokens + size.sequences) * c.config.intermediate_size * 4);
  CHECK(activations(80 * kGiB, true) == activations(0, true));
  // A quarter of the device, if weights, gradients and moments leave it.
  const int64_t weights = c.table.size() * kFloatBytes;
  CHECK(kept_activation_bytes(weights, 80 * kGiB) == 16 * kGiB);
  CHECK(kept_activation_bytes(weights, 12 * kGiB) == 2 * kGiB);
  CHECK(kept_activation_bytes(8 * weights, 16 * kGiB) < kGiB);
  CHECK(kept_activation_bytes(weights, kGiB) == 0);
  CHECK(activations(2 * kGiB) == least);
}

TEST_CASE("a GPU's memory: a horizon of inputs, the others are on the host") {
  Case c;
  c.run.evaluation.reset();
  const DeviceForecast kept = forecast_device_memory(c.run, 2048, true);
  CHECK(kept.offloaded == 0);
  c.run.horizon = 4;
  const DeviceForecast moved = forecast_device_memory(c.run, 2048, true);
  const int64_t tensors = 1 + c.config.num_hidden_layers, tensor = moved.offloaded / tensors;
  CHECK(tensor % (16 * c.config.hidden_size) == 0);  // of the largest micro-batch, in fp32
  CHECK(kept.activations - moved.activations == (tensors - 5) * tensor);
  CHECK(forecast_device_memory(c.run, 2048, false).offloaded == 0);
  c.run.horizon = tensors;
  CHECK(forecast_device_memory(c.run, 2048, true).activations == kept.activations);
}

TEST_CASE("micro-batches by default: from the model's shape and the size of the device's memory") {
  const EncoderConfig base = named_shape("base"), large = named_shape("large");
  constexpr int64_t kGiB = int64_t{1} << 30;
  CHECK(auto_micro_batch_tokens(base, 128, 0) == 832);
  CHECK(auto_micro_batch_tokens(large, 128, 0) == 256);
  CHECK(auto_micro_batch_tokens(large, 512, 0) == 512);
  CHECK(auto_micro_batch_tokens(base, 128, 79 * kGiB) == 16384);
  CHECK(auto_micro_batch_tokens(large, 128, 79 * kGiB) == 10176);
  CHECK(auto_micro_batch_tokens(large, 128, 139 * kGiB) == 10176);
  // GPUs of one kind that reserve slightly different amounts get the same value.
  CHECK(auto_micro_batch_tokens(base, 128, 22 * kGiB) == 6784);
  CHECK(auto_micro_batch_tokens(base, 128, 22 * kGiB + 12345) == 6784);
  CHECK(auto_micro_batch_tokens(base, 128, 31 * kGiB) == 6784);
  // What they take, beside weights and the rest, is there, of a smaller one as well.
  for (const EncoderConfig& config : {base, large}) {
    for (int64_t bytes : {12 * kGiB, 16 * kGiB, 24 * kGiB, 80 * kGiB}) {
      const ParameterTable table(config, {HeadKind::token, 2});
      TokenizedSamples samples;
      for (int64_t i = 0; i < 256; ++i) {
        samples.ids.resize(samples.ids.size() + 384, 1);
        samples.offsets.push_back(int64_t(samples.ids.size()));
        samples.second.push_back(384);
      }
      DeviceRun run{config, table, samples, samples, 256};
      run.device_bytes = bytes;
      const int64_t tokens = auto_micro_batch_tokens(config, 384, bytes);
      CHECK(forecast_device_memory(run, tokens, false).total() <= bytes);
    }
  }
}

TEST_CASE("the largest micro-batch that fits, and no larger one") {
  const Case c;
  for (int64_t bytes : {c.total(2048), c.total(700), c.total(128) + kMiB}) {
    const int64_t tokens = fitting_micro_batch_tokens(c.run, 16384, false, bytes);
    CHECK(tokens % 64 == 0);
    CHECK(c.total(tokens) <= bytes);
    CHECK(c.total(tokens + 64) > bytes);
  }
  CHECK(fitting_micro_batch_tokens(c.run, 1000, false, int64_t{1} << 40) == 960);
  CHECK(fitting_micro_batch_tokens(c.run, 73, false, int64_t{1} << 40) ==
        73);  // the longest sample
  CHECK(fitting_micro_batch_tokens(c.run, 16384, false, c.total(73) - 1) == 0);
}

TEST_CASE("the message if a GPU is too small") {
  const Case c;
  auto message = [&](int64_t bytes, bool recompute) {
    const DeviceMemory start{bytes, bytes, 0, 0};
    return std::string(too_little_device_memory(c.run, 2048, recompute, start, start).what());
  };
  const int64_t room = c.total(512) + c.total(512) / 255;  // a 256th is the driver's
  CHECK(contains(message(room, false), "--micro-batch-tokens 512 would fit"));
  CHECK(
      contains(message(room, false), concat("needs ", (c.total(2048) + kMiB - 1) / kMiB, " MiB")));
  CHECK(contains(message(c.total(2048, true) * 256 / 255 + 1, false), "--recompute would fit"));
  CHECK(!contains(message(c.total(1024, true) * 256 / 255, true), "--recompute"));
  CHECK(contains(message(c.total(73, true) * 256 / 255 + 1, false),
                 "--recompute --micro-batch-tokens"));
  CHECK(contains(message(c.total(73, true) / 2, false), "no --micro-batch-tokens"));
  // If the forecast was too low, the suggested size needs less than the failed one.
  const std::string failed = message(4 * c.total(2048), false);
  CHECK(contains(failed, "would fit"));
  CHECK(!contains(failed, "--micro-batch-tokens 2048"));
  CHECK(too_little_device_memory(c.run, 2048, false, {}, {}).code() == ExitCode::device);
}

}  // namespace
}  // namespace finetune
