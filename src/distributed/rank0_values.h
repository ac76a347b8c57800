// Broadcasts and agreements of values that rank 0, or each process, has found.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "comm/communicator.h"
#include "ops/backend.h"
#include "tasks/objective.h"

namespace finetune {

std::string broadcast_from_rank0(Communicator& comm, const std::string& text);  // collective
bool all_true(Communicator& comm, bool value);  // collective: true on all
// --device: of `auto` "cuda" where all processes can use a GPU, else "cpu". `remark`: a line
// for the log where a GPU seems to be there and is not used, else empty. Collective.
std::string agreed_device(Communicator& comm, std::string_view device, std::string& remark);
// --precision: of `auto` bf16 where all multiply it fast, else fp32. `device`: resolved.
// Collective.
std::string agreed_precision(Communicator& comm, std::string_view device, std::string precision);
// Of all processes' devices the smallest memory in bytes, used or not; 0: not of their own.
// Collective.
int64_t least_device_bytes(Communicator& comm, const Backend& backend);

// Training arrays in memory of all processes of the host: copied there from `own`, which the first
// process of each host, which has read them, passes. `arrays` are the views of the copy. Where a
// process is alone on its host nothing is copied, and the result is null. Collective.
std::shared_ptr<void> share_with_host(Communicator& comm, const TrainingArrays* own,
                                      TrainingArrays& arrays);

}  // namespace finetune
