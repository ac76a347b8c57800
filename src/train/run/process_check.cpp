// Compares program, options, samples and weights of all processes by digest.
#include "train/run/process_check.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "comm/agreement.h"
#include "core/error.h"
#include "core/sha256.h"
#include "core/text/counted.h"
#include "core/threads/parallel.h"
#include "train/options/option_transfer.h"

namespace finetune {
namespace {

using Text = std::array<char, 65>;  // room for a sha256; ends with a zero

// What each process says of itself. Collective.
std::vector<Text> from_all(Communicator& comm, std::string_view mine) {
  Text text{};
  std::memcpy(text.data(), mine.data(), std::min(mine.size(), text.size() - 1));
  std::vector<Text> all(size_t(comm.size()));
  comm.all_gather(text.data(), text.size(), all.data());
  return all;
}

// The first process that says another thing than rank 0; -1: all say the same.
int first_different(const std::vector<Text>& all) {
  auto other = std::find_if(all.begin(), all.end(), [&](const Text& t) { return t != all[0]; });
  return other == all.end() ? -1 : int(other - all.begin());
}

// All processes have found the same: one of them tells it.
void refuse(Communicator& comm, const Error& error) {
  agree_on_errors(comm, [&] { throw error; });
}

template <typename T>
void add(Sha256& sum, std::span<const T> values) {
  sum.update(values.data(), values.size_bytes());
}

}  // namespace

void require_equal_processes(Communicator& comm, const TrainOptions& options) {
  if (comm.size() == 1) return;
  const std::string program = sha256_of_file("/proc/self/exe");
  if (int rank = first_different(from_all(comm, program)); rank >= 0) {
    refuse(comm, usage_error(comm.name(rank), " runs another program (version or build) than ",
                             comm.name(0), "; install the same finetune on all hosts"));
  }
  if (int rank = first_different(from_all(comm, sha256_of(options_to_text(options)))); rank >= 0) {
    refuse(comm,
           usage_error(comm.name(rank), " was started with other options than ", comm.name(0)));
  }
}

// One process of a host has read what the others share: they say nothing new, but their digests are
// those of the same memory.
void require_equal_content(Communicator& comm, Communicator& replicas, const TrainingArrays& arrays,
                           Engine& engine) {
  if (comm.hosts() == 1) return;
  Sha256 samples;
  add(samples, arrays.samples.ids);
  add(samples, arrays.samples.offsets);
  add(samples, arrays.samples.second);
  add(samples, arrays.labels);
  add(samples, arrays.ends);
  add(samples, arrays.targets);
  add(samples, arrays.set_offsets);
  add(samples, arrays.set_ids);
  add(samples, arrays.class_weights);
  if (int rank = first_different(from_all(comm, samples.hex())); rank >= 0) {
    refuse(comm, data_error("--train: ", comm.name(rank), " has read other samples than ",
                            comm.name(0), "; give all hosts the same files"));
  }
  Sha256 values;
  const auto weights = engine.weights_on_host();
  add(values, std::span<const float>(weights.get(), size_t(engine.table().size())));
  const int rank = first_different(from_all(replicas, values.hex()));
  agree_on_errors(comm, [&] {
    if (rank < 0) return;
    throw model_error("--model: ", replicas.name(rank), " has read other weights than ",
                      replicas.name(0), "; give all hosts the same files");
  });
}

void require_equal_code_paths(Communicator& comm, Communicator& tensor_ranks,
                              const std::string& code_path) {
  if (tensor_ranks.size() == 1) return;
  const std::vector<Text> all = from_all(tensor_ranks, code_path);
  const int rank = first_different(all);
  agree_on_errors(comm, [&] {
    if (rank < 0) return;
    throw usage_error("--tp ", tensor_ranks.size(), ": ", tensor_ranks.name(rank),
                      " computes with ", all[size_t(rank)].data(), ", ", tensor_ranks.name(0),
                      " with ", all[0].data(),
                      ": their copies of the model would differ; --precision fp32 makes them "
                      "equal");
  });
}

std::string code_path_warning(Communicator& comm, const std::string& code_path) {
  const std::vector<Text> all = from_all(comm, code_path);
  const int rank = first_different(all);
  if (rank < 0) return "";
  const char* const remedy =
      "; --precision fp32 makes them equal, or FINETUNE_ISA=avx2 (avx512, avx512_bf16: what all "
      "have)";
  return concat("warning: ", comm.name(rank), " computes with ", all[size_t(rank)].data(), ", ",
                comm.name(0), " with ", all[0].data(), ": the result depends on who computes what",
                code_path.starts_with("CPU") ? remedy : "");
}

std::vector<std::string> describe_processes(Communicator& comm, int64_t shards,
                                            std::string_view order) {
  std::vector<std::string> lines;
  if (comm.size() == 1 && shards == 1) return lines;
  lines.push_back(concat(counted(comm.size(), "process", "processes"), " on ",
                         counted(comm.hosts(), "host"), ", ", counted(threads(), "thread"),
                         " each; --virtual-shards ", shards, order));
  if (comm.size() > shards) {
    lines.push_back(concat("warning: ", comm.size() - shards, " of ", comm.size(),
                           comm.size() - shards == 1 ? " processes has" : " processes have",
                           " no shard of the batch to compute; --virtual-shards ", comm.size(),
                           " (another result) or fewer processes use all"));
  }
  return lines;
}

}  // namespace finetune
