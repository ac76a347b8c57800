// Weights' gradients on a GPU's second stream: the same bits as on one, whatever runs first.
#include <cublasLt.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "../shared.h"
#include "core/files/text_file.h"
#include "fixture.h"
#include "host_streams.h"
#include "model/activations.h"
#include "op_case.h"

namespace finetune::test {
namespace {

constexpr int64_t kTokens = 128, kSequences = 16;

struct Shape {
  std::string name;
  EncoderConfig config;
  int64_t tensor_shards = 1;
  bool recompute = false, timed = false;  // products
};

// Whose micro-batches have more rows than a sum's piece, and heads for tensor cores.
EncoderConfig bert() {
  EncoderConfig config = small_config(3);
  config.hidden_size = 64;
  config.num_attention_heads = 2;
  config.intermediate_size = 96;
  return config;
}

EncoderConfig of_family(const std::string& name) {
  const auto path = shared_path("golden/family/" + name + "/classification/config.json");
  EncoderConfig config = parse_config(read_text_file(path), path);
  config.hidden_size = 64;
  config.num_attention_heads = 2;
  return config;
}

std::vector<Shape> shapes() {
  std::vector<Shape> all = {{"BERT", bert()},
                            {"BERT, recomputed", bert(), 1, true},
                            {"BERT in two shards", bert(), 2},
                            {"BERT, timed", bert(), 1, false, true}};

  for (const char* name : {"albert", "deberta-v3", "modernbert", "mpnet"}) {
    all.push_back({name, of_family(name)});
  }
  return all;
}

struct Outcome {
  std::vector<float> gradients;
  int called;  // passes that were not replayed
};

// The gradients of the last of so many equal steps of two micro-batches each.
Outcome gradients_of(const Shape& shape, const BackendFactory& factory, Head head,
                     const DropoutPlan* dropout, const char* streams, int64_t steps) {
  ::setenv("FINETUNE_CUDA_STREAMS", streams, 1);
  ::setenv("FINETUNE_CUDA_ALGORITHMS", shape.timed ? "timed" : "", 1);
  const auto backend = factory.make();
  const ModelPart part = ModelPart::whole(shape.config, shape.tensor_shards);
  const ParameterTable table(shape.config, head, part);
  const Arena weights(*backend, random_weights(table, 0.3)), gradients(*backend, table.size());
  Encoder encoder(*backend, shape.config, table, part);
  const int64_t before = backend->device_memory().used;
  encoder.reserve(kTokens, kSequences, true, shape.recompute);
  int64_t reserved = encoder.activation_bytes(kTokens, kSequences, true, shape.recompute);
  ScratchSizes scratch = scratch_sizes(shape.config, backend->compute_type(), kTokens, kTokens);
  if (*streams == '2') {
    const SecondStreamLimits most = second_stream_limits(shape.config, kTokens);
    reserved += SecondStreamMemory(most, backend->compute_type() == DType::bf16).total();
    scratch.right = 0;
  }
  reserved += scratch.total();
  CHECK(backend->device_memory().used - before == reserved);
  DeviceBatch batch(*backend, kTokens, kSequences);
  const std::vector<int> lengths[] = {{24, 7, 2, 13, 24, 24, 9}, {5, 24, 24}};
  const bool replays = encoder.may_be_replayed(0);
  int called = 0;
  for (int64_t step = 0; step < steps; ++step) {
    backend->fill_zero(vector(gradients.data(), table.size()));
    for (int64_t micro = 0; micro < 2; ++micro) {
      batch.upload(pack(random_sequences(shape.config, lengths[micro])));
      const int64_t key[] = {batch.tokens(), batch.sequences(), micro};
      const auto work = [&] {
        ++called;
        const Tensor logits = encoder.forward(batch, weights.data(), dropout, true);
        encoder.backward(batch, weights.data(), gradients.data(), logits, dropout, 0, micro > 0);
      };
      replays ? backend->replay(key, work) : work();
    }
  }
  return {gradients.values(), called};
}

bool streams_run(const std::string& mode) {
  const char* wanted = std::getenv("HOST_CUDA_STREAMS");
  return wanted && wanted == mode;
}

// Streams that have work left.
int busy_streams() {
  int count = 0;
  for (const host_cuda::Stream* stream : host_cuda::streams) count += stream->begun < stream->put;
  return count;
}

}  // namespace

TEST_CASE("weights' gradients on a second stream of the GPU have the bits of one stream") {
  const int slowest = std::exchange(host_cuda::slowest_algorithm, 500);  // no choice changes bits
  for (const BackendFactory& factory : backends_under_test()) {
    for (const Shape& shape : shapes()) {
      const bool all = shape.name == "BERT";
      // Where all work runs at once, models differ in nothing.
      if (!all && streams_run("early")) continue;
      for (Head head : kHeads) {
        for (const DropoutPlan* dropout : {&kDropout, static_cast<const DropoutPlan*>(nullptr)}) {
          const bool sequence = head.kind == HeadKind::sequence;
          if (!all && sequence != (dropout != nullptr)) continue;
          INFO(std::string(factory.name), ", ", shape.name, ", ", text(head), ", ",
               dropout != nullptr);
          const auto one = gradients_of(shape, factory, head, dropout, "1", 1);
          // Both passes of the last step are replayed.
          const auto two = gradients_of(shape, factory, head, dropout, "2", 4);
          const std::vector<float>& values = one.gradients;
          CHECK(std::count(values.begin(), values.end(), 0.0f) < int64_t(values.size()) * 3 / 4);
          CHECK(values == two.gradients);
          CHECK(two.called <= 6);
        }
      }
    }
  }
  ::unsetenv("FINETUNE_CUDA_STREAMS");
  ::unsetenv("FINETUNE_CUDA_ALGORITHMS");
  host_cuda::slowest_algorithm = slowest;
}

TEST_CASE("0 and 1 mean no second stream of the GPU") {
  const auto backend = backends_under_test().front().make();
  for (const char* streams : {"0", "1", "", "2"}) {
    ::setenv("FINETUNE_CUDA_STREAMS", streams, 1);
    INFO(std::string(streams));
    CHECK(backend->has_second_stream() == (*streams == '2' || *streams == 0));
  }
  ::unsetenv("FINETUNE_CUDA_STREAMS");
}

TEST_CASE("the second stream of the GPU: what it does waits, and what touches its memory for it") {
  ::unsetenv("FINETUNE_CUDA_STREAMS");
  const bool late = streams_run("late");
  for (const BackendFactory& factory : backends_under_test()) {
    INFO(std::string(factory.name));
    const auto backend = factory.make();
    REQUIRE(backend->has_second_stream());
    const int64_t rows = 70, cols = 8, before = backend->device_memory().used;
    const SecondStreamLimits most{rows, cols, cols};
    backend->reserve_second_stream(most);
    const bool bf16 = backend->compute_type() == DType::bf16;
    CHECK(backend->device_memory().used - before == SecondStreamMemory(most, bf16).total());
    Arena dy(*backend, std::vector<float>(rows * cols, 1)), more(*backend, 16 * cols * rows);
    Arena x(*backend, std::vector<float>(rows * cols, 2)), dw(*backend, cols * cols);
    Arena dbias(*backend, cols);
    const auto of = [&](const Arena& a, int64_t r) { return matrix(a.data(), r, cols); };
    backend->synchronize();
    backend->linear_backward_weight(of(dy, rows), of(x, rows), of(dw, cols), of(dbias, 1), false);
    if (late) CHECK(busy_streams() == 1);    // the first has nothing to do
    backend->add(of(more, 1), of(more, 1));  // beside it
    if (late) CHECK(busy_streams() == 2);
    // What it reads and writes may be overwritten behind it.
    backend->add(of(dy, rows), of(dy, rows));
    backend->add(of(dw, cols), of(dw, cols));
    CHECK(dw.values() == std::vector<float>(cols * cols, 4.0f * rows));
    CHECK(dbias.values() == std::vector<float>(cols, float(rows)));
    CHECK(dy.values()[0] == 2);
    CHECK(busy_streams() == 0);
    // With more rows or columns than there is memory for, it computes nothing.
    backend->synchronize();
    backend->linear_backward_weight(of(more, 2 * rows), of(more, 2 * rows), of(dw, cols),
                                    of(dbias, 1), false);
    if (late) CHECK(busy_streams() == 1);
    CHECK(dw.values() == std::vector<float>(cols * cols, 0.0f));
    // More pieces than it keeps apart.
    for (int i = 0; i < 40; ++i) {
      backend->linear_backward_weight(of(x, rows), of(x, rows), of(dw, cols), {}, i > 0);
    }
    CHECK(dw.values() == std::vector<float>(cols * cols, 160.0f * rows));
    // Its memory comes and goes with what is reserved.
    const SecondStreamLimits twice{2 * rows, cols, cols};
    const int64_t used = backend->device_memory().used;
    backend->reserve_second_stream(twice);
    CHECK(backend->device_memory().used - used ==
          SecondStreamMemory(twice, bf16).total() - SecondStreamMemory(most, bf16).total());
  }
}

}  // namespace finetune::test
