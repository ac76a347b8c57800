// Layers cut into tensor shards: close to the uncut model, with the same bits for any placement.
#include <doctest/doctest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/numeric/subtrees.h"
#include "fixture.h"
#include "model/activations.h"
#include "model/tensor_sum.h"
#include "op_case.h"

namespace finetune::test {
namespace {

const std::vector<std::vector<int>> kCutMicroBatches = {{7, 1, 24}, {2}, {13, 9, 5, 1}};
constexpr int64_t kCutTokens = 32, kCutSequences = 4;

EncoderConfig cut_config(int64_t layers, int64_t head_size = 6) {
  EncoderConfig config = small_config(layers);
  config.num_attention_heads = 4;
  config.hidden_size = 4 * head_size;
  config.intermediate_size = 40;
  return config;
}

// Calls visit(element of the whole tensor's arena, element of the part's) for all elements of the
// part.
template <typename Visit>
void each_element(const ParameterTable& whole, const ParameterTable& of_part, Visit&& visit) {
  for (const Parameter& p : of_part.parameters()) {
    const Parameter* from = whole.find(p.name);
    REQUIRE(from != nullptr);
    const int64_t cols = from->whole_shape.back();
    for (int64_t i = 0; i < p.size(); ++i) {
      const int64_t row = p.slice.row + i / p.slice.cols, col = p.slice.col + i % p.slice.cols;
      visit(size_t(from->offset + row * cols + col), size_t(p.offset + i));
    }
  }
}

std::vector<float> cut(const ParameterTable& whole, const ParameterTable& of_part,
                       const std::vector<float>& arena) {
  std::vector<float> own(size_t(of_part.size()), 0.0f);
  each_element(whole, of_part, [&](size_t from, size_t to) { own[to] = arena[from]; });
  return own;
}

std::vector<float> joined(const ParameterTable& whole, const ParameterTable& of_part,
                          const std::vector<float>& own) {
  std::vector<float> arena(size_t(whole.size()), 0.0f);
  each_element(whole, of_part, [&](size_t to, size_t from) { arena[to] = own[from]; });
  return arena;
}

template <typename Body>
void for_each_backend(Body&& body) {
  {
    auto reference = make_reference_backend();
    INFO("reference");
    body(*reference);
  }
  for (const BackendFactory& factory : backends_under_test()) {
    auto backend = factory.make();
    if (!backend) continue;
    INFO(factory.name);
    body(*backend);
  }
}

struct Setting {
  Head head;
  int64_t layers = 2, shards = 2;
  bool recompute = false;
  int lowest = 0;
  bool dropout = true;
};

// Logits of all micro-batches, and the sums of gradients in the part's arena.
PassResult train(Backend& backend, const EncoderConfig& config, const ParameterTable& table,
                 const std::vector<float>& weights, const Setting& setting,
                 TensorSum* sum = nullptr) {
  Arena parameters(backend, weights), gradients(backend, table.size());
  Encoder encoder(backend, config, table, table.part(), sum);
  encoder.reserve(kCutTokens, kCutSequences, true, setting.recompute);
  DeviceBatch device(backend, kCutTokens, kCutSequences);
  const DropoutPlan* dropout = setting.dropout ? &kDropout : nullptr;
  PassResult result;
  for (size_t i = 0; i < kCutMicroBatches.size(); ++i) {
    const PackedBatch batch = pack(random_sequences(config, kCutMicroBatches[i]));
    device.upload(batch);
    Tensor logits = encoder.forward(device, parameters.data(), dropout, true);
    for (float value : download(backend, logits)) result.logits.push_back(value);
    Arena dlogits(backend, logit_coefficients(batch, setting.head));
    encoder.backward(device, parameters.data(), gradients.data(),
                     matrix(dlogits.data(), logits.rows, logits.cols), dropout, setting.lowest,
                     i > 0);
  }
  result.gradients = gradients.values();
  return result;
}

// The sum between threads, one of which runs at a time: from its creation until it waits here for
// the others. Partial sums go through host memory.
class SharedSum {
 public:
  SharedSum(int64_t shards, int ranks) : partials_(static_cast<size_t>(shards)), ranks_(ranks) {
    std::vector<Subtree> leaves;
    for (int64_t shard = 0; shard < shards; ++shard) leaves.push_back({shard, 0});
    order_ = combine_subtrees(leaves, true).additions;
  }

  void add(std::unique_lock<std::mutex>& turn, int64_t first, Backend& backend,
           std::span<const Tensor> partials) {
    for (size_t i = 0; i < partials.size(); ++i) {
      partials_[size_t(first) + i] = download(backend, partials[i]);
    }
    const int64_t round = round_;
    if (++arrived_ == ranks_) {
      for (TreeAddition addition : order_) {
        std::vector<float>& to = partials_[size_t(addition.to)];
        const std::vector<float>& from = partials_[size_t(addition.from)];
        REQUIRE(to.size() == from.size());
        for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
      }
      sum_ = partials_[0];
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    }
    changed_.wait(turn, [&] { return round_ != round; });
    backend.upload(partials[0].data, sum_.data(), sum_.size() * sizeof(float));
  }

  std::mutex turns;

 private:
  std::vector<std::vector<float>> partials_;
  std::vector<float> sum_;
  std::vector<TreeAddition> order_;
  std::condition_variable changed_;
  int ranks_, arrived_ = 0;
  int64_t round_ = 0;
};

class RankSum final : public TensorSum {
 public:
  RankSum(SharedSum& shared, int64_t first) : shared_(shared), first_(first), turn_(shared.turns) {}
  void add(Backend& backend, std::span<const Tensor> partials) override {
    shared_.add(turn_, first_, backend, partials);
  }

 private:
  SharedSum& shared_;
  int64_t first_;
  std::unique_lock<std::mutex> turn_;
};

ModelPart part_of_rank(const EncoderConfig& config, int64_t shards, int ranks, int rank) {
  ModelPart held = ModelPart::whole(config, shards);
  held.shards = part(shards, ranks, rank);
  return held;
}

}  // namespace

TEST_CASE("tensor shards have the logits and gradients of the uncut model, with dropout") {
  for_each_backend([](Backend& backend) {
    // Rounded operands differ slightly when sums are added in another order.
    const bool rounds = backend.compute_type() == DType::bf16;
    for (Head head : kHeads) {
      for (int64_t layers : {1, 2}) {
        for (int64_t head_size : {6, 32}) {
          const EncoderConfig config = cut_config(layers, head_size);
          const ParameterTable uncut(config, head);
          const std::vector<float> weights = random_weights(uncut, 0.1);
          const PassResult expected = train(backend, config, uncut, weights, {head, layers, 1});
          for (int64_t shards : {2, 4}) {
            INFO(text(head), " head, ", layers, " layers, heads of ", head_size, ", V ", shards);
            const ParameterTable table(config, head, ModelPart::whole(config, shards));
            const PassResult got =
                train(backend, config, table, cut(uncut, table, weights), {head, layers, shards});
            CHECK(relative_error(got.logits, expected.logits) <= (rounds ? 0.02 : kSameSum));
            CHECK(relative_error(joined(uncut, table, got.gradients), expected.gradients) <=
                  (rounds ? 0.03 : kSameSum));
          }
        }
      }
    }
  });
}

TEST_CASE("tensor shards: recomputed activations give the same bits, frozen layers no gradient") {
  for_each_backend([](Backend& backend) {
    for (Head head : kHeads) {
      const int64_t layers = 2, shards = 4;
      const EncoderConfig config = cut_config(layers);
      const ParameterTable table(config, head, ModelPart::whole(config, shards));
      const std::vector<float> weights = random_weights(table, 0.3);
      const Setting all{head, layers, shards};
      const PassResult whole = train(backend, config, table, weights, all);
      for (int lowest : {0, 1, 2, 3}) {
        Setting setting = all;
        setting.recompute = true;
        setting.lowest = lowest;
        INFO(text(head), " head, lowest ", lowest);
        const PassResult got = train(backend, config, table, weights, setting);
        CHECK(got.logits == whole.logits);
        for (const Parameter& p : table.parameters()) {
          const auto begin = got.gradients.begin() + p.offset;
          INFO(p.name);
          if (p.layer < lowest) {
            CHECK(std::all_of(begin, begin + p.size(), [](float g) { return g == 0; }));
          } else {
            CHECK(std::equal(begin, begin + p.size(), whole.gradients.begin() + p.offset));
          }
        }
      }
    }
  });
}

TEST_CASE("tensor shards at inference have the logits that training has without dropout") {
  for_each_backend([](Backend& backend) {
    for (Head head : kHeads) {
      const EncoderConfig config = cut_config(2);
      const ParameterTable table(config, head, ModelPart::whole(config, 2));
      const std::vector<float> weights = random_weights(table, 0.3);
      Setting setting{head};
      setting.dropout = false;
      const PassResult kept = train(backend, config, table, weights, setting);
      Arena parameters(backend, weights);
      Encoder encoder(backend, config, table);
      encoder.reserve(kCutTokens, kCutSequences, false);
      DeviceBatch device(backend, kCutTokens, kCutSequences);
      std::vector<float> logits;
      for (const std::vector<int>& lengths : kCutMicroBatches) {
        device.upload(pack(random_sequences(config, lengths)));
        const Tensor out = encoder.forward(device, parameters.data(), nullptr, false);
        for (float value : download(backend, out)) logits.push_back(value);
      }
      INFO(text(head), " head");
      CHECK(logits == kept.logits);
    }
  });
}

TEST_CASE("tensor ranks have the bits of one process with the same shards") {
  for_each_backend([](Backend& backend) {
    for (Head head : kHeads) {
      for (const auto& numbers : {std::pair(2, 2), std::pair(4, 2), std::pair(4, 4)}) {
        const int shards = numbers.first, ranks = numbers.second;
        for (bool recompute : {false, true}) {
          INFO(text(head), " head, V ", shards, ", ", ranks, " ranks, recompute ", recompute);
          const EncoderConfig config = cut_config(2);
          const Setting setting{head, 2, shards, recompute};
          const ParameterTable uncut(config, head);
          const ParameterTable all(config, head, ModelPart::whole(config, shards));
          const std::vector<float> weights = random_weights(uncut, 0.3);
          const PassResult expected =
              train(backend, config, all, cut(uncut, all, weights), setting);
          const std::vector<float> whole = joined(uncut, all, expected.gradients);
          SharedSum sum(shards, ranks);
          std::vector<PassResult> got(static_cast<size_t>(ranks));
          std::vector<ParameterTable> tables;
          for (int rank = 0; rank < ranks; ++rank) {
            tables.emplace_back(config, head, part_of_rank(config, shards, ranks, rank));
          }
          std::vector<std::thread> threads;
          for (size_t rank = 0; rank < tables.size(); ++rank) {
            threads.emplace_back([&, rank] {
              const ParameterTable& table = tables[rank];
              RankSum of_rank(sum, table.part().shards.begin);
              got[rank] =
                  train(backend, config, table, cut(uncut, table, weights), setting, &of_rank);
            });
          }
          for (std::thread& thread : threads) thread.join();
          for (size_t rank = 0; rank < tables.size(); ++rank) {
            CHECK(got[rank].logits == expected.logits);
            CHECK(got[rank].gradients == cut(uncut, tables[rank], whole));
          }
        }
      }
    }
  });
}

// Bytes of a token in a layer, of `held` of V shards: kept 16 H + held (4 (4 H + I) / V + 4 heads /
// V) + 16; working 4 (H + H / V + max(I, 3 H) / V) + 4 H, 4 H of what goes on, and a partial a
// shard.
TEST_CASE("a tensor rank has the memory of the formula") {
  EncoderConfig config = small_config(4);
  config.hidden_size = 64;
  config.num_attention_heads = 4;
  config.intermediate_size = 256;
  const int64_t t = 1024, b = 16, h = 64, inner = 256, layers = 2, v = 4;
  for (int64_t held : {1, 2, 4}) {
    for (bool recompute : {false, true}) {
      INFO(held, " shards, recompute ", recompute);
      const ModelChunk middle{{1, 1 + layers}, false, false, v, held};
      const ActivationPlan plan =
          ActivationPlan::training(config, kHeads[0], middle, DType::f32, t, b, recompute);
      const int64_t results = 16 * h + held * (4 * (4 * h + inner) + 4 * 4) / v + 16;
      const int64_t working = 4 * h + 4 * (h + h / v + inner / v) + 4 * h + held * 4 * h;
      CHECK(plan.kept * 4 == t * layers * (recompute ? 4 * h : results));
      CHECK(plan.working * 4 == t * (working + (recompute ? results - 4 * h : 0)));
    }
  }
}

}  // namespace finetune::test
