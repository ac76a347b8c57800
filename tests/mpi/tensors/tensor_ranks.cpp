// One process of a run that holds a part of a model, for tensors_test.py: `SCENARIO DIR`.
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>

#include "comm/agreement.h"
#include "core/files/files.h"
#include "core/log.h"
#include "core/numeric/philox.h"
#include "core/process_stats.h"
#include "distributed/tensors/whole_tensors.h"
#include "distributed/zero_partition.h"
#include "model_parts.h"
#include "ops/cpu/cpu_backend.h"
#include "small_encoder.h"
#include "train/checkpoint/checkpoint.h"

namespace {

using namespace finetune;

constexpr int64_t kLayers = 4, kShards = 4;  // tensor shards
constexpr Arena kArenas[] = {Arena::weights, Arena::m, Arena::v};

void require(bool condition, std::string_view what) {
  if (!condition) throw internal_error("not so: ", what);
}

EncoderConfig config_of(int64_t words) {
  return test::encoder_of(
      {.words = words, .hidden = 16, .layers = kLayers, .heads = 4, .inner = 32, .positions = 8});
}

// A device whose memory is reachable only by upload and download.
class Device final : public CpuBackend {
 public:
  Device() : CpuBackend(DType::f32) {}
  bool uses_host_memory() const override { return false; }
};

// Arbitrary bits including NaN, so that hardly any two elements of the three arenas are equal.
float value_of(Arena arena, int64_t tensor, int64_t element) {
  const uint32_t bits =
      philox({7, uint32_t(arena)}, {uint32_t(element), uint32_t(tensor), 0, 0})[0];
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// How a world is divided: replicas x stages x tensor ranks; tensor ranks vary fastest.
struct Division {
  int replicas, stages, tensor_ranks;
  std::string name() const { return concat(replicas, "x", stages, "x", tensor_ranks); }
};
std::vector<Division> divisions_of(int world) {
  std::vector<Division> out;
  for (int t : {1, 2, 4}) {
    for (int s = 1; s <= 4; ++s) {
      if (world % (s * t) == 0) out.push_back({world / (s * t), s, t});
    }
  }
  return out;
}

// One process's part of the model, in its own arenas.
struct Local {
  ParameterTable table;
  std::vector<HeldSlice> slices = held_slices(table);
  std::vector<float> arenas[3];

  explicit Local(const ParameterTable& t) : table(t) {
    for (auto& arena : arenas) arena.assign(size_t(table.size()), -1.0f);
  }
};

// visit(place in the local arena, tensor, element of the whole tensor)
void each_element(const ParameterTable& whole, const Local& local,
                  const std::function<void(size_t, int64_t, int64_t)>& visit) {
  for (const HeldSlice& slice : local.slices) {
    const Parameter* tensor = whole.find(slice.name);
    const int64_t cols = tensor->slice.cols;
    for (int64_t k = 0; k < slice.rows * slice.cols; ++k) {
      const int64_t row = slice.row + k / slice.cols, col = slice.col + k % slice.cols;
      visit(size_t(slice.offset + k), tensor - whole.parameters().data(), row * cols + col);
    }
  }
}

// All weights; for the moments, the replica's own part.
std::vector<HeldRun> runs_of(Local& local, const Division& division, int rank) {
  const int replica = rank / (division.tensor_ranks * division.stages);
  const ZeroPartition partition(local.table, 1, division.replicas);
  const IndexRange rows = partition.rows(replica);
  const int64_t words = partition.dense_elements(), cols = partition.cols();
  std::vector<HeldRun> runs{{Arena::weights, {0, local.table.size()}, local.arenas[0].data()}};
  for (Arena arena : {Arena::m, Arena::v}) {
    float* data = local.arenas[size_t(arena)].data();
    for (IndexRange own : {partition.dense(replica),
                           IndexRange{words + rows.begin * cols, words + rows.end * cols}}) {
      if (own.size() > 0) runs.push_back({arena, own, data + own.begin});
    }
  }
  return runs;
}

class Ranks {
 public:
  Ranks(Communicator& comm, fs::path directory, int64_t words, bool device = false)
      : config_(config_of(words)),
        backend_(device ? std::make_unique<Device>() : make_cpu_backend(DType::f32)),
        comm_(comm),
        directory_(std::move(directory)),
        whole_(config_, Head{HeadKind::sequence, 3}) {
    state_.step = 11;
    state_.options = "lr = 1\n";
  }

  // The files of one whole arena; only rank 0 writes them.
  void write_reference() {
    if (comm_.rank() != 0) return;
    std::vector<float> arenas[3];
    for (Arena arena : kArenas) {
      auto& values = arenas[size_t(arena)];
      values.assign(size_t(whole_.size()), 0.0f);
      for (size_t i = 0; i < whole_.parameters().size(); ++i) {
        const Parameter& parameter = whole_.parameters()[i];
        for (int64_t k = 0; k < parameter.size(); ++k) {
          values[size_t(parameter.offset + k)] = value_of(arena, int64_t(i), k);
        }
      }
    }
    ArenaTensors tensors(whole_, arenas[0].data(), arenas[1].data(), arenas[2].data());
    write_files("whole", tensors);
  }

  // Written from one division, read into another.
  void check(const Division& from, const Division& to) {
    const std::string what = from.name() + " to " + to.name();
    Local local = local_of(from);
    for (Arena arena : kArenas) {
      each_element(whole_, local, [&](size_t at, int64_t tensor, int64_t element) {
        local.arenas[size_t(arena)][at] = value_of(arena, tensor, element);
      });
    }
    with(local, runs_of(local, from, comm_.rank()), [&](ModelTensors& tensors) {
      write_files("parts", tensors);
      require_equal(what);
    });
    for (bool moments : {true, false}) check_reading(to, moments, what);
  }

  void check_reading(const Division& to, bool moments, const std::string& what) {
    Local local = local_of(to);
    std::vector<HeldRun> runs = runs_of(local, to, comm_.rank());
    if (!moments) runs.resize(1);
    with(local, runs, [&](ModelTensors& tensors) {
      require(tensors.has(Arena::m) == moments, "moments are had as they are told");
      require(read_checkpoint(directory_ / "parts.h5", tensors).step == 11, "the state is read");
    });
    std::vector<float> expected[3];
    for (auto& arena : expected) arena.assign(size_t(local.table.size()), -1.0f);
    for (const HeldRun& run : runs) {
      each_element(whole_, local, [&](size_t at, int64_t tensor, int64_t element) {
        if (!run.elements.contains(int64_t(at))) return;
        expected[size_t(run.arena)][at] = value_of(run.arena, tensor, element);
      });
    }
    for (Arena arena : kArenas) {
      require(std::memcmp(expected[size_t(arena)].data(), local.arenas[size_t(arena)].data(),
                          size_t(local.table.size()) * sizeof(float)) == 0,
              concat("what was read, arena ", int(arena), ", ", what));
    }
  }

  Local local_of(const Division& division) const {
    const int stages = division.stages, ranks = division.tensor_ranks;
    const auto parts = test::parts_of(config_, {stages, 1, ranks, kShards});
    const ModelPart& part = parts[size_t(comm_.rank() % (stages * ranks))];
    return Local(ParameterTable(config_, whole_.head(), part));
  }
  void with(Local& local, const std::vector<HeldRun>& runs,
            const std::function<void(ModelTensors&)>& action) {
    with_whole_tensors(comm_, *backend_, whole_, held_parts(whole_, local.slices, runs), action);
  }
  const ParameterTable& whole() const { return whole_; }
  const fs::path& directory() const { return directory_; }
  const CheckpointState& state() const { return state_; }

 private:
  void write_files(const std::string& name, ModelTensors& tensors) {
    write_checkpoint(directory_ / (name + ".h5"), state_, tensors);
    for (DType dtype : {DType::f32, DType::bf16}) {
      write_weights(directory_ / concat(name, ".", name_of(dtype)), tensors, dtype);
    }
    write_file(directory_ / (name + ".sum"), weights_sha256(tensors));
  }
  void require_equal(const std::string& what) {
    for (const std::string& end : {std::string("h5"), std::string(name_of(DType::f32)),
                                   std::string(name_of(DType::bf16)), std::string("sum")}) {
      require(read_text_file(directory_ / ("parts." + end)) ==
                  read_text_file(directory_ / ("whole." + end)),
              concat("equal files, ", end, ", ", what));
    }
  }

  EncoderConfig config_;
  std::unique_ptr<Backend> backend_;
  Communicator& comm_;
  fs::path directory_;
  ParameterTable whole_;
  CheckpointState state_;
};

// Every division of this world, each resumed on the next one.
void check_divisions(Communicator& comm, const fs::path& directory, bool device) {
  Ranks ranks(comm, directory, 50, device);
  ranks.write_reference();
  const std::vector<Division> divisions = divisions_of(comm.size());
  for (size_t i = 0; i < divisions.size(); ++i) {
    ranks.check(divisions[i], divisions[(i + 1) % divisions.size()]);
  }
  if (comm.rank() == 0) std::printf("%zu divisions\n", divisions.size());
}

// Several replicas hold all moments in different slices: each element is taken once.
void check_overlaps(Communicator& comm, const fs::path& directory) {
  Ranks ranks(comm, directory, 50);
  const Division division{comm.size(), 1, 1};
  Local local = ranks.local_of(division);
  for (Arena arena : kArenas) {
    each_element(ranks.whole(), local, [&](size_t at, int64_t tensor, int64_t element) {
      local.arenas[size_t(arena)][at] = value_of(arena, tensor, element);
    });
  }
  std::vector<HeldRun> runs = runs_of(local, division, comm.rank());
  for (HeldRun& run : runs) {  // some more than this process's own
    const int64_t more = std::min<int64_t>(run.elements.begin, 37);
    run.elements.begin -= more;
    run.data -= more;
  }
  ranks.with(local, runs, [&](ModelTensors& tensors) {
    for (Arena arena : kArenas) {
      for (size_t i = 0; i < ranks.whole().parameters().size(); ++i) {
        const Parameter& parameter = ranks.whole().parameters()[i];
        const TensorPiece piece{arena, int64_t(i), {0, parameter.size()}};
        const float* data = tensors.contents(piece);
        for (int64_t k = 0; k < parameter.size(); ++k) {
          const float value = value_of(arena, int64_t(i), k);
          require(std::bit_cast<uint32_t>(data[k]) == std::bit_cast<uint32_t>(value),
                  parameter.name);
        }
      }
    }
  });
}

// Rank 0 has no part of a model whose word embedding exceeds rank 0's memory limit.
void check_memory(Communicator& comm) {
  constexpr double kMost = 64, kWords = 1'500'000;  // MiB; rows of 64 bytes are 92 MiB
  const ParameterTable whole(config_of(int64_t(kWords)), Head{HeadKind::sequence, 3});
  const int last = comm.size() - 1;
  std::vector<float> arena(comm.rank() == last ? size_t(whole.size()) : 0);
  for (size_t i = 0; i < arena.size(); ++i) arena[i] = float(i % 9973);
  std::vector<HeldPart> parts;
  std::string sums[2] = {std::string(64, '-'), std::string(64, '-')};  // of the owner, of rank 0
  if (comm.rank() == last) {
    ArenaTensors tensors(whole, arena.data());
    sums[0] = weights_sha256(tensors);
    const HeldRun all{Arena::weights, {0, whole.size()}, arena.data()};
    parts = held_parts(whole, held_slices(whole), {all});
  }
  const auto backend = make_cpu_backend(DType::f32);
  const double before = peak_memory_mb();
  with_whole_tensors(comm, *backend, whole, parts,
                     [&](ModelTensors& tensors) { sums[1] = weights_sha256(tensors); });
  const double more = peak_memory_mb() - before;
  comm.broadcast(sums[0].data(), 64, last);
  comm.broadcast(sums[1].data(), 64, 0);
  require(sums[0] == sums[1], "equal sums");
  require(comm.rank() > 0 || more < kMost, concat("rank 0 needed ", more, " MiB"));
}

// A failure of one process ends the command on all: before, between and after pieces.
void fail(Communicator& comm, const fs::path& directory, const std::string& how) {
  Ranks ranks(comm, directory, 50);
  const Division division{1, comm.size(), 1};
  Local local = ranks.local_of(division);
  if (how == "hole" && comm.rank() == comm.size() - 1) local.slices.pop_back();
  if (how == "overlap" && comm.rank() == 0) local.slices.back().rows -= 1;
  ranks.with(local, runs_of(local, division, comm.rank()), [&](ModelTensors& tensors) {
    if (how == "action") throw model_error("the file is not there");
    if (how == "writing") {
      const rlimit small{200'000, 200'000};
      ::setrlimit(RLIMIT_FSIZE, &small);
    }
    write_checkpoint(directory / "failed.h5", ranks.state(), tensors);
  });
  throw internal_error("no error");
}

void run(Communicator& comm, const std::string& scenario, const fs::path& directory) {
  comm.set_timeout(100);
  if (scenario == "divisions") {
    check_divisions(comm, directory, false);
    check_overlaps(comm, directory);
  } else if (scenario == "devices") {
    check_divisions(comm, directory, true);
  } else if (scenario == "slabs") {
    Ranks ranks(comm, directory, 270'000);  // rows of 16: a slab and a part
    ranks.write_reference();
    ranks.check({1, 2, 1}, {2, 1, 1});
  } else if (scenario == "memory") {
    check_memory(comm);
  } else {
    fail(comm, directory, scenario);
  }
}

}  // namespace

int main(int, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    const auto comm = make_communicator();
    int code = 0;
    try {
      run(*comm, argv[1], argv[2]);
    } catch (const PeerFailed& peer) {
      code = int(peer.code);
    } catch (const AgreedError& error) {
      std::fprintf(stderr, "finetune: error: %s\n", error.what());
      code = int(error.code());
    } catch (const Error& error) {  // only this process knows of it
      std::fprintf(stderr, "finetune: error: %s\n", error.what());
      comm->abort(int(error.code()));
    }
    comm->finish();
    return code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "finetune: error: %s\n", error.what());
    return 1;
  }
}
