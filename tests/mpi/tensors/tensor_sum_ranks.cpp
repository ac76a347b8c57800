// One tensor rank of a run, for tensor_sum_test.py: `V SUMS`. Sums and a model's steps have the
// bits of one process with all V shards.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "comm/agreement.h"
#include "core/numeric/philox.h"
#include "core/threads/parallel.h"
#include "distributed/reduce/tensor_sums.h"
#include "model/encoder.h"
#include "model/fixture.h"
#include "ops/cpu/cpu_backend.h"

namespace {

using namespace finetune;
using test::Arena;

constexpr int64_t kMost = 3000;  // floats of a partial

void require(bool condition, std::string_view what) {
  if (!condition) throw internal_error("not so: ", what);
}

bool equal_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// A device whose memory is reachable only by upload and download.
class Device final : public CpuBackend {
 public:
  Device() : CpuBackend(DType::f32) {}
  bool uses_host_memory() const override { return false; }
};

// Sizes vary widely, so that another order gives other bits.
std::vector<float> partial_of(int64_t shard, int64_t turn, int64_t count) {
  std::vector<float> values(size_t(count), 0.0f);
  for (int64_t i = 0; i < count; ++i) {
    const PhiloxBlock bits = philox({7, uint32_t(turn)}, {uint32_t(i), uint32_t(shard), 0, 0});
    const double scale = double(1 << (bits[1] % 20));
    values[size_t(i)] = float((2 * unit_interval(bits[0]) - 1) * scale);
  }
  return values;
}

std::vector<float> sum_of(Backend& backend, TensorSum& sum, IndexRange shards, int64_t turn,
                          int64_t count) {
  std::vector<std::unique_ptr<Arena>> arenas;
  std::vector<Tensor> partials;
  for (int64_t shard = shards.begin; shard < shards.end; ++shard) {
    arenas.push_back(std::make_unique<Arena>(backend, partial_of(shard, turn, count)));
    partials.push_back(vector(arenas.back()->data(), count));
  }
  sum.add(backend, partials);
  return arenas[0]->values();
}

void check_sums(Communicator& comm, Backend& backend, int64_t shards, int64_t turns) {
  const auto sum = make_host_tensor_sum(comm, shards, kMost);
  const auto solo = make_solo_tensor_sum(shards);
  int64_t sent = comm.bytes_sent(), counts = 0;
  for (int64_t turn = 0; turn < turns; ++turn) {
    const int64_t count = turn % 7 == 0 ? kMost : turn % 5 == 0 ? 1 : 1 + turn * 37 % kMost;
    counts += count;
    const auto expected = sum_of(backend, *solo, {0, shards}, turn, count);
    const auto got = sum_of(backend, *sum, part(shards, comm.size(), comm.rank()), turn, count);
    require(equal_bits(got, expected), concat("sum ", turn));
  }
  sent = comm.bytes_sent() - sent;
  std::vector<int64_t> all(size_t(comm.size()));
  comm.all_gather(&sent, sizeof sent, all.data());
  int64_t total = 0;
  for (int64_t bytes : all) total += bytes;
  // If each rank and each host has one subtree: 2 (t - 1) messages per sum over all ranks.
  auto one_subtree = [&](int first, int last) {
    const int64_t begin = part(shards, comm.size(), first).begin;
    return subtrees_of({begin, part(shards, comm.size(), last).end}).size() == 1;
  };
  bool counted = one_subtree(comm.rank(), comm.rank());
  for (int host = 0; host < comm.hosts(); ++host) {
    counted = counted && one_subtree(comm.first_rank(host), comm.first_rank(host + 1) - 1);
  }
  if (counted) require(total == 2 * (comm.size() - 1) * counts * 4, concat(total, " bytes sent"));
}

struct Steps {
  std::vector<float> logits, gradients;
};

Steps steps_of(Backend& backend, const EncoderConfig& config, const ParameterTable& table,
               TensorSum* sum, bool recompute) {
  Arena weights(backend, table.size()), gradients(backend, table.size());
  std::vector<float> initial(size_t(table.size()), 0.0f);
  initialize(table, 0.3, 5, initial.data());
  backend.upload(weights.data(), initial.data(), initial.size() * sizeof(float));
  Encoder encoder(backend, config, table, table.part(), sum);
  encoder.reserve(32, 4, true, recompute);
  DeviceBatch device(backend, 32, 4);
  Steps out;
  bool accumulate = false;
  for (const std::vector<int>& lengths :
       {std::vector<int>{7, 1, 24}, std::vector<int>{2}, std::vector<int>{13, 9, 5, 1}}) {
    const PackedBatch batch = test::pack(test::random_sequences(config, lengths));
    device.upload(batch);
    const Tensor logits = encoder.forward(device, weights.data(), &test::kDropout, true);
    for (float value : test::download(backend, logits)) out.logits.push_back(value);
    Arena dlogits(backend, test::logit_coefficients(batch, table.head()));
    encoder.backward(device, weights.data(), gradients.data(),
                     matrix(dlogits.data(), logits.rows, logits.cols), &test::kDropout, 0,
                     accumulate);
    accumulate = true;
  }
  out.gradients = gradients.values();
  return out;
}

// Compares each slice of this rank with the same slice of the whole model.
void check_model(Communicator& comm, Backend& backend, int64_t shards, bool recompute) {
  EncoderConfig config = test::small_config(2);
  config.num_attention_heads = shards;
  config.hidden_size = 6 * shards;
  config.intermediate_size = 10 * shards;
  ModelPart held = ModelPart::whole(config, shards);
  const auto sum = make_host_tensor_sum(comm, shards, 32 * config.hidden_size);
  for (Head head : test::kHeads) {
    const ParameterTable all(config, head, held);
    const Steps expected = steps_of(backend, config, all, nullptr, recompute);
    ModelPart own = held;
    own.shards = part(shards, comm.size(), comm.rank());
    const ParameterTable table(config, head, own);
    const Steps got = steps_of(backend, config, table, sum.get(), recompute);
    require(equal_bits(got.logits, expected.logits), "logits");
    size_t compared = 0;
    for (const Parameter& p : table.parameters()) {
      for (const Parameter& q : all.parameters()) {
        if (q.name != p.name || q.shard != p.shard) continue;
        require(q.size() == p.size(), p.name);
        require(std::memcmp(&got.gradients[size_t(p.offset)], &expected.gradients[size_t(q.offset)],
                            size_t(p.size()) * sizeof(float)) == 0,
                concat("gradient of ", p.name));
        ++compared;
      }
    }
    require(compared == table.parameters().size(), "all slices");
  }
}

void check(Communicator& comm, int64_t shards, int64_t turns) {
  comm.set_timeout(100);
  set_threads(1);
  const auto cpu = make_cpu_backend(DType::f32), rounding = make_cpu_backend(DType::bf16);
  Device device;
  for (Backend* backend : {cpu.get(), static_cast<Backend*>(&device)}) {
    check_sums(comm, *backend, shards, turns);
  }
  for (bool recompute : {false, true}) {
    for (Backend* backend : {cpu.get(), rounding.get(), static_cast<Backend*>(&device)}) {
      check_model(comm, *backend, shards, recompute);
    }
  }
}

}  // namespace

int main(int, char** argv) {
  try {
    const auto comm = make_communicator();
    int code = 0;
    try {
      check(*comm, std::atoi(argv[1]), std::atoi(argv[2]));
    } catch (const PeerFailed& peer) {
      code = int(peer.code);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "finetune: error: %s: %s\n", comm->name(comm->rank()).c_str(),
                   error.what());
      comm->abort(1);
    }
    comm->finish();
    return code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "finetune: error: %s\n", error.what());
    return 1;
  }
}
