// A backend that computes with another one and keeps a record of every operation: calls, seconds,
// arithmetic and memory traffic by formula. The model runs on it unchanged.
//
// Arithmetic counts a multiply-add as 2: a product of (M, K) and (K, N) is 2MNK; attention is 4 per
// query, key and element of a head forward (two products) and 8 backward (four; the recomputed
// scores are not counted). Elementwise work counts as none. Traffic is the least there can be: each
// operand is read once and each result written once ("+=" does both).
//
// A device works asynchronously: to time an operation is to wait for it, so the steps of a profile
// are slower than those of a run. What a step takes is measured while nothing is recorded.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "core/clock.h"
#include "ops/backend.h"

namespace finetune {

// The phase follows from the calls: embed() opens a forward pass, the end of a loss the backward
// pass, block_square_sums() and adamw_catch_up() the update. What comes before any of them belongs
// to the forward pass.
enum class Phase { forward, backward, update };
const char* name_of(Phase phase);

struct OpKey {
  Phase phase = Phase::forward;
  std::string op;
  std::string detail;  // what tells calls of one op apart: "384 -> 1536", else empty

  bool operator<(const OpKey& other) const {
    return std::tie(phase, op, detail) < std::tie(other.phase, other.op, other.detail);
  }
};

struct OpRecord {
  int64_t calls = 0;
  double seconds = 0;
  double flops = 0;
  double bytes = 0;

  OpRecord& operator+=(const OpRecord& other) {
    calls += other.calls;
    seconds += other.seconds;
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

using Profile = std::map<OpKey, OpRecord>;

class ProfilingBackend : public Backend {
 public:
  explicit ProfilingBackend(std::unique_ptr<Backend> inner, Clock clock = Clock::wall)
      : inner_(std::move(inner)), clock_(clock) {}

  const Profile& profile() const { return profile_; }
  void clear() { profile_.clear(); }
  // Whether operations are recorded, and waited for: true at first.
  void set_recording(bool recording) {
    inner_->synchronize();
    recording_ = recording;
  }

  std::string description() const override { return inner_->description(); }
  std::string code_path() const override { return inner_->code_path(); }
  DType compute_type() const override { return inner_->compute_type(); }
  DType activation_type() const override { return inner_->activation_type(); }
  bool uses_host_memory() const override { return inner_->uses_host_memory(); }
  std::shared_ptr<void> allocate(size_t bytes) override { return inner_->allocate(bytes); }
  void upload(void* to, const void* host, size_t bytes) override;
  void download(void* host, const void* from, size_t bytes) override;
  void post(const void* from, size_t bytes) override { inner_->post(from, bytes); }
  void collect(void* host, size_t bytes) override { inner_->collect(host, bytes); }
  // While it records, every operation is called, on the samples alone.
  void replay(std::span<const int64_t> key, const std::function<void()>& work) override {
    recording_ ? work() : inner_->replay(key, work);
  }
  bool replays() const override { return !recording_ && inner_->replays(); }
  void fill_zero(Tensor x) override;
  void forget_packed() override { inner_->forget_packed(); }
  void synchronize() override { inner_->synchronize(); }
  DeviceMemory device_memory() const override { return inner_->device_memory(); }
  std::string device_id() const override { return inner_->device_id(); }
  PeerId make_peer_id() override { return inner_->make_peer_id(); }
  std::unique_ptr<DevicePeers> connect_peers(const PeerId& id, int rank, int size,
                                             double seconds) override {
    return inner_->connect_peers(id, rank, size, seconds);
  }
  bool library_attention() const override { return inner_->library_attention(); }

  void linear(Tensor x, Tensor w, Tensor bias, Tensor y) override;
  void linear_backward_input(Tensor dy, Tensor w, Tensor dx, bool accumulate) override;
  void linear_backward_weight(Tensor dy, Tensor x, Tensor dw, Tensor dbias,
                              bool accumulate) override;

  void activation(Activation f, Tensor x, Tensor y) override;
  void activation_backward(Activation f, Tensor x, Tensor dy, Tensor dx, Tensor y) override;
  void dropout(Tensor x, Dropout dropout, RowNames names, Tensor y) override;
  void add(Tensor x, Tensor y) override;
  void gather_rows(Tensor x, const int32_t* index, Tensor y) override;
  void scatter_rows_add(Tensor dy, const int32_t* index, Tensor x) override;
  void scatter_rows(Tensor x, const int32_t* index, Tensor y) override;

  void embed(const int32_t* ids, const uint32_t* positions, const int32_t* types, Tensor word,
             Tensor position, Tensor type, Tensor y) override;
  void embed_backward(Tensor dy, const int32_t* ids, const uint32_t* positions,
                      const int32_t* types, const int32_t* order, Tensor dword, Tensor dposition,
                      Tensor dtype) override;

  void add_layer_norm(Tensor x, Tensor residual, Dropout dropout, RowNames names, Tensor gamma,
                      Tensor beta, float epsilon, Tensor s, Tensor stats, Tensor y,
                      Tensor rounded) override;
  void add_layer_norm_backward(Tensor dy, Tensor s, Tensor stats, Tensor gamma, Dropout dropout,
                               RowNames names, Tensor ds, Tensor dx, Tensor dgamma, Tensor dbeta,
                               bool accumulate) override;

  void attention(const AttentionShape& shape, Dropout dropout, Tensor q, Tensor k, Tensor v,
                 Tensor out, Tensor lse) override;
  void attention_backward(const AttentionShape& shape, Dropout dropout, Tensor q, Tensor k,
                          Tensor v, Tensor out, Tensor lse, Tensor dout, Tensor dq, Tensor dk,
                          Tensor dv) override;

  bool has_layer(const LayerShape& shape) const override { return inner_->has_layer(shape); }
  void self_attention(const AttentionShape& shape, Tensor x, Tensor first, Tensor weight,
                      Tensor bias, Tensor context) override;
  void layer_output(const LayerOutput& layer, Tensor context, Tensor residual, Tensor y) override;

  void cross_entropy(Tensor logits, const int32_t* labels, Tensor weights, float smoothing,
                     LossScale scale, Tensor losses, Tensor dlogits) override;
  void binary_cross_entropy(Tensor logits, Tensor targets, Tensor weights, LossScale scale,
                            Tensor losses, Tensor dlogits) override;
  void squared_error(Tensor logits, Tensor targets, LossScale scale, Tensor losses,
                     Tensor dlogits) override;
  void span_cross_entropy(Tensor logits, Segments segments, const int32_t* starts,
                          const int32_t* ends, LossScale scale, Tensor losses,
                          Tensor dlogits) override;

  void merge(std::span<const Addition> additions, int64_t count) override;
  void merge_rows(std::span<const Addition> additions, RowList rows, int64_t cols) override;
  void block_square_sums(Tensor x, int64_t block, const SparseRows& sparse, double* sums) override;
  void add_losses(Tensor losses, bool accumulate, double* sum) override;
  void step_outcome(const StepSums& sums, StepOutcome* outcome) override;
  void adamw(const AdamW& options, Tensor parameter, Tensor gradient, Tensor m, Tensor v) override;
  void adamw_parts(std::span<const AdamWPart> parts, Tensor parameter, Tensor gradient, Tensor m,
                   Tensor v) override;
  void adamw_rows(const AdamW& options, RowList rows, Tensor parameter, Tensor gradient, Tensor m,
                  Tensor v) override;
  void adamw_catch_up(std::span<const AdamW> steps, RowList rows, const int32_t* missed,
                      Tensor parameter, Tensor m, Tensor v) override;

 private:
  struct Work {
    double flops = 0;
    double bytes = 0;
    const char* arrow = nullptr;  // between the sizes that tell calls of one op apart
    int64_t left = 0, right = 0;
  };
  template <typename Call>
  void record(const char* op, const Work& work, Call&& call);
  double scores(const AttentionShape& shape);

  std::unique_ptr<Backend> inner_;
  Clock clock_;
  Profile profile_;
  Phase phase_ = Phase::forward;
  bool recording_ = true;
};

}  // namespace finetune
