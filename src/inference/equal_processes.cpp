// Compares program, options, configuration and weights of all processes by digest.
#include "inference/equal_processes.h"

#include <algorithm>
#include <cstring>

#include "comm/agreement.h"
#include "core/sha256.h"
#include "core/threads/parallel.h"

namespace finetune {
namespace {

constexpr int64_t kPiece = int64_t(1) << 18;  // values that one thread hashes

// The digest of all pieces' digests, so that threads can share the work.
std::string sum_of_weights(Engine& engine) {
  const auto weights = engine.weights_on_host();
  const int64_t count = engine.table().size();
  std::vector<std::string> sums(size_t((count + kPiece - 1) / kPiece));
  parallel_ranges(count, kPiece, [&](int64_t begin, int64_t end) {
    Sha256 sum;
    sum.update(weights.get() + begin, size_t(end - begin) * sizeof(float));
    sums[size_t(begin / kPiece)] = sum.hex();
  });
  Sha256 all;
  for (const std::string& sum : sums) all.update(sum);
  return all.hex();
}

Error other_weights(Communicator& comm, int rank) {
  return model_error("--model: ", comm.name(rank), " has read other weights than ", comm.name(0),
                     "; give all hosts the same files");
}

}  // namespace

std::vector<ProcessWord> told_by_all(Communicator& comm, std::string_view mine) {
  ProcessWord word{};
  std::memcpy(word.data(), mine.data(), std::min(mine.size(), word.size() - 1));
  std::vector<ProcessWord> all(size_t(comm.size()));
  comm.all_gather(word.data(), word.size(), all.data());
  return all;
}

int first_different(const std::vector<ProcessWord>& all) {
  auto other =
      std::find_if(all.begin(), all.end(), [&](const ProcessWord& word) { return word != all[0]; });
  return other == all.end() ? -1 : int(other - all.begin());
}

void refuse(Communicator& comm, const Error& error) {
  agree_on_errors(comm, [&] { throw error; });
  throw error;  // not reached: the agreement throws
}

void require_equal_processes(Communicator& comm, std::string_view given) {
  if (comm.size() == 1) return;
  const std::string program = sha256_of_file("/proc/self/exe");
  if (int rank = first_different(told_by_all(comm, program)); rank >= 0) {
    refuse(comm, usage_error(comm.name(rank), " runs another program (version or build) than ",
                             comm.name(0), "; install the same finetune on all hosts"));
  }
  if (int rank = first_different(told_by_all(comm, sha256_of(given))); rank >= 0) {
    refuse(comm,
           usage_error(comm.name(rank), " was started with other options than ", comm.name(0)));
  }
}

void require_equal_configs(Communicator& comm, const EncoderConfig& config) {
  if (comm.hosts() == 1) return;
  const int rank = first_different(told_by_all(comm, sha256_of(config.source_json)));
  if (rank < 0) return;
  refuse(comm, model_error("--model: ", comm.name(rank), " has read another config.json than ",
                           comm.name(0), "; give all hosts the same files"));
}

void require_equal_weight_files(const LayoutGroups& groups, const WeightSource* source) {
  Communicator& comm = groups.world();
  if (comm.hosts() == 1) return;
  std::string sum;
  agree_on_errors(comm, [&] {
    if (comm.local_rank() != 0 || source == nullptr) return;
    Sha256 all;
    for (const auto& file : source->files()) all.update(sha256_of_file(file));
    sum = all.hex();
  });
  const std::vector<ProcessWord> told = told_by_all(comm, sum);
  for (int host = 1; host < comm.hosts(); ++host) {
    const int rank = comm.first_rank(host);
    if (told[size_t(rank)] != told[0]) refuse(comm, other_weights(comm, rank));
  }
}

void require_equal_weights(Communicator& comm, Communicator& replicas, Engine& engine) {
  if (comm.hosts() == 1) return;
  const int rank = first_different(told_by_all(replicas, sum_of_weights(engine)));
  agree_on_errors(comm, [&] {
    if (rank >= 0) throw other_weights(replicas, rank);
  });
}

}  // namespace finetune
