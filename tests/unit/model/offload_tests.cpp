// Layer inputs offloaded to host memory: same bits, less device memory.
#include <doctest/doctest.h>

#include <cstdlib>
#include <vector>

#include "../contains.h"
#include "fixture.h"
#include "model/activations.h"
#include "op_case.h"

namespace finetune::test {
namespace {

constexpr int64_t kLayers = 4;

struct Setting {
  int64_t tensor_shards = 1, slots = 1, horizon = 0;
  int lowest_layer = 0;
};

// Micro-batches of different sizes: each goes forward in its own slot, as many as there are, then
// all go backward.
class Offloaded {
 public:
  Offloaded(Backend& backend, Head head, const Setting& setting)
      : backend_(backend),
        setting_(setting),
        config_(config_of()),
        part_(ModelPart::whole(config_, setting.tensor_shards)),
        table_(config_, head, part_),
        weights_(backend, random_weights(table_, 0.3)),
        gradients_(backend, table_.size()),
        encoder_(backend, config_, table_, part_) {
    const int64_t before = backend.device_memory().used;
    encoder_.reserve({kTokens, kSequences}, {}, true, setting.slots, setting.horizon);
    reserved_ = backend.device_memory().used - before;
    for (int64_t slot = 0; slot < setting.slots; ++slot) {
      batches_.emplace_back(backend, kTokens, kSequences);
    }
  }

  std::vector<float> gradients() {
    backend_.fill_zero(vector(gradients_.data(), table_.size()));
    const std::vector<std::vector<int>> lengths = {{7, 2, 5}, {5}, {4, 9, 2}, {16}};
    for (size_t i = 0; i < lengths.size(); i += batches_.size()) {
      for (size_t slot = 0; slot < batches_.size(); ++slot) forward(slot, lengths[i + slot]);
      for (size_t slot = 0; slot < batches_.size(); ++slot) backward(slot);
    }
    return gradients_.values();
  }
  int64_t reserved() const { return reserved_; }
  int64_t forecast() const {
    return encoder_.activation_bytes(kTokens, kSequences, true, true, setting_.slots,
                                     setting_.horizon);
  }
  int64_t ring_tensors() const {
    return InputRing::make(config_, table_.head(), part_, kTokens, 2, 1).tensors;
  }
  bool may_be_replayed() const { return encoder_.may_be_replayed(0); }

  static constexpr int64_t kTokens = 16, kSequences = 3;
  static EncoderConfig config_of() {
    EncoderConfig config = small_config(kLayers);
    config.hidden_size = 64;
    config.num_attention_heads = 2;
    config.intermediate_size = 96;
    return config;
  }

 private:
  void forward(size_t slot, const std::vector<int>& lengths) {
    batches_[slot].upload(pack(random_sequences(config_, lengths)));
    encoder_.forward({0, int64_t(slot)}, batches_[slot], weights_.data(), &kDropout);
  }
  // The logits serve as their own gradient.
  void backward(size_t slot) {
    const ChunkSlot at{0, int64_t(slot)};
    encoder_.backward(at, batches_[slot], weights_.data(), gradients_.data(),
                      encoder_.output_of(at, batches_[slot]), &kDropout, setting_.lowest_layer);
  }

  Backend& backend_;
  Setting setting_;
  EncoderConfig config_;
  ModelPart part_;
  ParameterTable table_;
  Arena weights_, gradients_;
  Encoder encoder_;
  std::vector<DeviceBatch> batches_;
  int64_t reserved_ = 0;
};

}  // namespace

TEST_CASE("inputs that wait in the host's memory give the same bits, whatever the horizon") {
  for (const BackendFactory& factory : backends_under_test()) {
    const auto backend = factory.make();
    if (!backend || backend->uses_host_memory()) continue;
    for (Head head : kHeads) {
      for (const Setting& setting : {Setting{1, 1}, Setting{1, 2}, Setting{2, 4},
                                     Setting{1, 2, 0, 3}, Setting{1, 1, 0, 5}}) {
        INFO(factory.name, ", ", text(head), ", ", setting.tensor_shards, " shards, ",
             setting.slots, " slots, layers from ", setting.lowest_layer);
        const std::vector<float> expected = Offloaded(*backend, head, setting).gradients();
        // Every horizon with one slot and all layers; else the smallest, a middle one and the
        // largest.
        const bool every = setting.slots == 1 && setting.lowest_layer == 0;
        for (int64_t horizon = 1; horizon <= kLayers + 1; horizon += every ? 1 : kLayers / 2) {
          Setting offloads = setting;
          offloads.horizon = horizon;
          Offloaded model(*backend, head, offloads);
          INFO("horizon ", horizon);
          CHECK(model.gradients() == expected);
        }
      }
    }
  }
}

TEST_CASE("the device has a horizon of inputs beside what a layer needs") {
  ::setenv("FINETUNE_CUDA_STREAMS", "1", 1);  // the second one's memory is no part of it
  for (const BackendFactory& factory : backends_under_test()) {
    const auto backend = factory.make();
    if (!backend || backend->uses_host_memory()) continue;
    const Offloaded first(*backend, kHeads[0], {1, 1});  // makes scratch memory, which stays
    for (Head head : kHeads) {
      for (int64_t slots : {1, 3}) {
        INFO(factory.name, ", ", text(head), ", ", slots, " slots");
        const Offloaded kept(*backend, head, {1, slots});
        CHECK(kept.reserved() == kept.forecast());
        CHECK(kept.may_be_replayed());
        const int64_t place = (Offloaded::kTokens * 64 + 15) / 16 * 64;  // bytes
        const int64_t tensors = kept.ring_tensors();
        CHECK(tensors == 1 + kLayers + (head.kind == HeadKind::token));
        for (int64_t horizon : {int64_t{1}, int64_t{3}, tensors - 1, tensors + 4}) {
          const Offloaded model(*backend, head, {1, slots, horizon});
          const int64_t places = std::min(horizon + 1, tensors);
          CHECK(model.reserved() == model.forecast());
          CHECK(kept.reserved() - model.reserved() == (slots * tensors - places) * place);
          CHECK(model.may_be_replayed() == (slots == 1 && places == tensors));
        }
      }
    }
  }
  ::unsetenv("FINETUNE_CUDA_STREAMS");
}

}  // namespace finetune::test
