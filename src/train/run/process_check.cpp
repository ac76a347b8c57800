// Compares options, samples, weights and instructions of all processes.
#include "train/run/process_check.h"

#include "comm/agreement.h"
#include "core/error.h"
#include "core/text/counted.h"
#include "core/threads/parallel.h"
#include "inference/equal_processes.h"
#include "train/options/option_values.h"

namespace finetune {

void require_equal_processes(Communicator& comm, const TrainOptions& options) {
  if (comm.size() > 1) require_equal_processes(comm, options_to_text(options));
}

// On each host one process has read what the others share. All processes send a digest, although
// those of one host are digests of the same memory.
void require_equal_content(const LayoutGroups& groups, const TrainingArrays& arrays, Engine& engine,
                           const WeightSource* source) {
  Communicator& comm = groups.world();
  if (comm.hosts() == 1) return;
  if (int rank = first_different(told_by_all(comm, digest_of(arrays))); rank >= 0) {
    refuse(comm, data_error("--train: ", comm.name(rank), " has read other samples than ",
                            comm.name(0), "; give all hosts the same files"));
  }
  require_equal_weights(comm, groups.data(), engine);
  if (groups.layout().dp() != groups.layout().world()) require_equal_weight_files(groups, source);
}

void require_equal_code_paths(Communicator& comm, Communicator& tensor_ranks,
                              const std::string& code_path) {
  if (tensor_ranks.size() == 1) return;
  const std::vector<ProcessWord> all = told_by_all(tensor_ranks, code_path);
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
  const std::vector<ProcessWord> all = told_by_all(comm, code_path);
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
