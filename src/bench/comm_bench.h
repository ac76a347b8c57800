// bench comm: measures communication between the processes of a run, as a table and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "comm/bandwidth.h"

namespace finetune {

// Collective. Error(usage) with a single process.
Bandwidth bench_comm(Communicator& communicator, int64_t megabytes);

nlohmann::ordered_json to_json(const Bandwidth& result);
std::string to_text(const Bandwidth& result);

}  // namespace finetune
