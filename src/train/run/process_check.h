// Refuses, before the first step, processes that would not train the same model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "distributed/layout/layout_groups.h"
#include "engine/engine.h"
#include "tasks/objective.h"
#include "train/options/options.h"
#include "weights/weights.h"

namespace finetune {

// Error(usage) naming the first process whose program, version or options differ from rank 0's.
// Collective.
void require_equal_processes(Communicator& comm, const TrainOptions& options);
// Compares what the hosts have read: Error(data) if samples differ, Error(model) if weights differ.
// Compares the weights in memory and, if processes have parts of the model, the files of `source`.
// Collective.
void require_equal_content(const LayoutGroups& groups, const TrainingArrays& arrays, Engine& engine,
                           const WeightSource* source);

// Returns a warning for the log if some processes use other instructions than rank 0 (`code_path`:
// "CPU, AVX2, bf16"), else "". Collective.
std::string code_path_warning(Communicator& comm, const std::string& code_path);

// Error(usage) if ranks of a tensor group use different instructions: values that each of them
// computes would then differ. `tensor_ranks`: this process's group. Collective over `comm`.
void require_equal_code_paths(Communicator& comm, Communicator& tensor_ranks,
                              const std::string& code_path);

// Returns lines for rank 0's log: the processes, what does not depend on their number, and a
// warning if some have nothing to do. No lines for one process. `order`: TrainingStep::order().
std::vector<std::string> describe_processes(Communicator& comm, int64_t virtual_shards,
                                            std::string_view order);

}  // namespace finetune
