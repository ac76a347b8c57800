// Refuses processes whose program, options, configuration or weights differ from those of rank 0.
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

// Returns the word `mine` of each process, by rank. Collective.
std::vector<ProcessWord> told_by_all(Communicator& comm, std::string_view mine);
// The first process whose word differs from that of rank 0; -1: all are equal.
int first_different(const std::vector<ProcessWord>& all);
// Throws `error` on all processes; one of them reports it. Collective, with the same error on all.
[[noreturn]] void refuse(Communicator& comm, const Error& error);

// Collective. Error(usage) naming the first process whose program, version or options are not those
// of rank 0. `given`: the command and all its options, as text.
void require_equal_processes(Communicator& comm, std::string_view given);
// Collective. Error(model) naming the first process whose config.json is not that of rank 0. It is
// called before processes exchange data whose size depends on the config.
void require_equal_configs(Communicator& comm, const EncoderConfig& config);
// Collective over comm. Error(model) if another host has other weights. `replicas`: the processes
// with this process's part of the model. Those of one host share memory or read the same file.
void require_equal_weights(Communicator& comm, Communicator& replicas, Engine& engine);

// The same by the files that one process of each host reads, since a process's memory may hold only
// a part of the model, rounded. `source`: null on processes that read no file.
void require_equal_weight_files(const LayoutGroups& groups, const WeightSource* source);

}  // namespace finetune
