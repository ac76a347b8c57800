#include "train/process_check.h"

#include <array>
#include <cstring>

#include "core/error.h"
#include "core/parallel.h"
#include "core/sha256.h"
#include "train/option_transfer.h"

namespace finetune {
namespace {

using Digest = std::array<char, 64>;

Digest digest(std::string_view text) {
  const std::string hex = sha256_of(text);
  Digest out{};
  std::memcpy(out.data(), hex.data(), std::min(hex.size(), out.size()));
  return out;
}

// The first process whose digest is not rank 0's; -1: all are equal. Collective.
int first_different(Communicator& comm, const Digest& mine) {
  std::vector<Digest> all(size_t(comm.size()));
  comm.all_gather(mine.data(), mine.size(), all.data());
  for (int rank = 1; rank < comm.size(); ++rank) {
    if (all[size_t(rank)] != all[0]) return rank;
  }
  return -1;
}

template <typename T>
void add(Sha256& sum, std::span<const T> values) {
  sum.update(values.data(), values.size_bytes());
}

}  // namespace

void require_equal_processes(Communicator& comm, const TrainOptions& options) {
  if (comm.size() == 1) return;
  const std::string program = sha256_of_file("/proc/self/exe");
  if (int rank = first_different(comm, digest(program)); rank >= 0) {
    throw usage_error(comm.name(rank), " runs another program (version or build) than ",
                      comm.name(0), "; install the same finetune on all hosts");
  }
  if (int rank = first_different(comm, digest(options_to_text(options))); rank >= 0) {
    throw usage_error(comm.name(rank), " was started with other options than ", comm.name(0));
  }
}

// One process of a host has read what the others share: they say nothing new, but their digests are
// those of the same memory.
void require_equal_content(Communicator& comm, const TrainingArrays& arrays,
                           std::span<const float> weights) {
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
  if (int rank = first_different(comm, digest(samples.hex())); rank >= 0) {
    throw data_error("--train: ", comm.name(rank), " has read other samples than ", comm.name(0),
                     "; give all hosts the same files");
  }
  Sha256 values;
  add(values, weights);
  if (int rank = first_different(comm, digest(values.hex())); rank >= 0) {
    throw model_error("--model: ", comm.name(rank), " has read other weights than ", comm.name(0),
                      "; give all hosts the same files");
  }
}

std::string code_path_warning(Communicator& comm, const std::string& code_path) {
  Digest mine{};
  std::memcpy(mine.data(), code_path.data(), std::min(code_path.size(), mine.size() - 1));
  std::vector<Digest> all(size_t(comm.size()));
  comm.all_gather(mine.data(), mine.size(), all.data());
  for (int rank = 1; rank < comm.size(); ++rank) {
    if (all[size_t(rank)] == all[0]) continue;
    return concat("warning: ", comm.name(rank), " computes with ", all[size_t(rank)].data(), ", ",
                  comm.name(0), " with ", all[0].data(),
                  ": the result depends on who computes what; FINETUNE_ISA=avx2 (or avx512) on all "
                  "hosts makes them equal");
  }
  return "";
}

std::vector<std::string> describe_processes(Communicator& comm, int64_t shards) {
  std::vector<std::string> lines;
  if (comm.size() == 1 && shards == 1) return lines;
  lines.push_back(concat(comm.size(), comm.size() == 1 ? " process" : " processes", " on ",
                         comm.hosts(), comm.hosts() == 1 ? " host" : " hosts", ", ", threads(),
                         threads() == 1 ? " thread" : " threads", " each; --virtual-shards ",
                         shards, ": the same bits on any number of processes"));
  if (comm.size() > shards) {
    lines.push_back(concat("warning: ", comm.size() - shards, " of ", comm.size(),
                           " processes have no shard of the batch to compute; --virtual-shards ",
                           comm.size(), " (another result) or fewer processes use all"));
  }
  return lines;
}

}  // namespace finetune
