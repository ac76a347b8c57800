// A backend that computes with another one and records every operation. It records calls, seconds,
// arithmetic and memory traffic by formula. The model runs on it unchanged.
//
// Arithmetic counts a multiply-add as 2: a product of (M, K) and (K, N) is 2MNK; attention is 4 per
// query, key and head element forward (two products) and 8 backward (four; recomputed scores are
// not counted). Elementwise work counts as 0. Traffic is the minimum: each operand is read once and
// each result written once ("+=" does both). An operation without a formula in
// profiling_backend.cpp has no arithmetic, and each of its tensors counts once.
//
// Timing an operation on an asynchronous device means waiting for it, so steps are slower during a
// profile. Measure the time of a whole step with recording off.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "core/clock.h"
#include "ops/backend.h"

namespace finetune {

// The phase follows from the calls: embed() begins a forward pass, the end of a loss the backward
// pass, block_square_sums() and adamw_catch_up() the update. Calls before any of them belong to the
// forward pass.
enum class Phase { forward, backward, update };
const char* name_of(Phase phase);

struct OpKey {
  Phase phase = Phase::forward;
  std::string op;
  std::string detail;  // distinguishes calls of one operation, "384 -> 1536"; or ""

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
  // Whether operations are recorded and waited for; initially true.
  void set_recording(bool recording) {
    inner_->synchronize();
    recording_ = recording;
  }

  std::string description() const override { return inner_->description(); }
  std::string code_path() const override { return inner_->code_path(); }
  DType compute_type() const override { return inner_->compute_type(); }
  DType activation_type() const override { return inner_->activation_type(); }
  DType weight_type() const override { return inner_->weight_type(); }
  bool uses_host_memory() const override { return inner_->uses_host_memory(); }
  std::shared_ptr<void> allocate(size_t bytes) override { return inner_->allocate(bytes); }
  std::shared_ptr<void> allocate_on_host(size_t bytes) override {
    return inner_->allocate_on_host(bytes);
  }
  std::unique_ptr<HostCopies> make_host_copies(int numbers) override {
    return inner_->make_host_copies(numbers);
  }
  void upload(void* to, const void* host, size_t bytes) override;
  void download(void* host, const void* from, size_t bytes) override;
  void start_download(const void* from, size_t bytes) override {
    inner_->start_download(from, bytes);
  }
  void finish_download(void* host, size_t bytes) override { inner_->finish_download(host, bytes); }
  // Calls the work directly while recording, so that every operation is seen.
  void replay(std::span<const int64_t> key, const std::function<void()>& work) override {
    recording_ ? work() : inner_->replay(key, work);
  }
  bool replays() const override { return !recording_ && inner_->replays(); }
  bool has_second_stream() const override { return !recording_ && inner_->has_second_stream(); }
  void reserve_second_stream(const SecondStreamLimits& most) override {
    inner_->reserve_second_stream(most);
  }
  void reserve_scratch(const ScratchSizes& sizes) override { inner_->reserve_scratch(sizes); }
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
  bool keeps_attention_masks() const override { return inner_->keeps_attention_masks(); }
  bool sums_columns() const override { return inner_->sums_columns(); }
  bool has_layer(const LayerShape& shape) const override { return inner_->has_layer(shape); }

  // All operations of ops/operations.inc.
#define OPERATION(name, parameters, arguments) void name parameters override;
#define LAYER_OPERATION OPERATION
#include "ops/operations.inc"

 private:
  struct Work;            // of a call, by formula
  struct EachTensorOnce;  // the formula of an operation that has none of its own
  struct Formulas;
  template <typename Call>
  void record(const char* op, const Work& work, Call&& call);

  std::unique_ptr<Backend> inner_;
  Clock clock_;
  Profile profile_;
  Phase phase_ = Phase::forward;
  bool recording_ = true;
};

}  // namespace finetune
