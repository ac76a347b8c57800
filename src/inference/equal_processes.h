// What processes have read and were started with, compared by digest: one that differs is refused.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "core/error.h"
#include "distributed/layout/layout_groups.h"
#include "engine/engine.h"
#include "weights/weights.h"

namespace finetune {

using ProcessWord = std::array<char, 65>;  // room for a sha256; ends with a zero

// What each process says of itself. Collective.
std::vector<ProcessWord> told_by_all(Communicator& comm, std::string_view mine);
// The first process that says another thing than rank 0; -1: all say the same.
int first_different(const std::vector<ProcessWord>& all);
// Collective, all have found the same: one of them tells it.
[[noreturn]] void refuse(Communicator& comm, const Error& error);

// Collective. Error(usage) naming the first process whose program, version or options (`given`:
// the command and whatever it was given, as text) are not those of rank 0.
void require_equal_processes(Communicator& comm, std::string_view given);
// Collective. Error(model) naming the first process whose config.json is not that of rank 0: layers
// of other sizes could not even exchange anything.
void require_equal_configs(Communicator& comm, const EncoderConfig& config);
// Collective over comm. Error(model) for other weights on another host; `replicas` are those with
// this process's part of the model. Processes of one host share a memory or read the same file.
void require_equal_weights(Communicator& comm, Communicator& replicas, Engine& engine);

// The same by the files that one process of each host reads: memory says nothing of other parts of
// the model, nor of what was rounded in it. `source`: null on processes that read none.
void require_equal_weight_files(const LayoutGroups& groups, const WeightSource* source);

}  // namespace finetune
