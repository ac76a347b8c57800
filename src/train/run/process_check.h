// Before the first step: processes that would not train the same model are refused, by name.
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

// Collective. Error(usage) naming the first process whose program, version or options are not those
// of rank 0.
void require_equal_processes(Communicator& comm, const TrainOptions& options);
// Collective. The same of what the hosts have read: Error(data) for other samples, Error(model) for
// other weights, by their memory and, where a process has a part of them, by the files of `source`.
void require_equal_content(const LayoutGroups& groups, const TrainingArrays& arrays, Engine& engine,
                           const WeightSource* source);

// Collective. A line for the log if some compute with other instructions than rank 0 (`code_path`:
// "CPU, AVX2, bf16"), else empty.
std::string code_path_warning(Communicator& comm, const std::string& code_path);

// Collective over comm: Error(usage) where ranks of a group compute with other instructions, who
// would not have the same values of what all of them compute (`tensor_ranks`: this process's
// group).
void require_equal_code_paths(Communicator& comm, Communicator& tensor_ranks,
                              const std::string& code_path);

// Lines for rank 0's log: processes, and what does not depend on their number; a warning if some
// have nothing to do. Nothing for one process. `order`: what holds of sums (TrainingStep::order).
std::vector<std::string> describe_processes(Communicator& comm, int64_t virtual_shards,
                                            std::string_view order);

}  // namespace finetune
