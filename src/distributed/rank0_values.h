// Broadcasts values of rank 0, and agrees on values that each process has found.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "comm/communicator.h"
#include "ops/backend.h"
#include "tasks/objective.h"

namespace finetune {

std::string broadcast_from_rank0(Communicator& comm, const std::string& text);  // collective
bool all_true(Communicator& comm, bool value);  // collective: true if true on all
// Resolves --device. `auto` becomes "cuda" if all processes can use a GPU, else "cpu". `remark` is
// set to a log line if a GPU was found but is not used, else to "". Collective.
std::string agreed_device(Communicator& comm, std::string_view device, std::string& remark);
// Resolves --precision. `auto` becomes bf16 if all processes multiply bf16 fast, else fp32.
// `device` must be resolved. Collective.
std::string agreed_precision(Communicator& comm, std::string_view device, std::string precision);
// The smallest device memory of all processes in bytes, used or free; 0 if they have no devices.
// Collective.
int64_t least_device_bytes(Communicator& comm, const Backend& backend);

// Copies training arrays into memory shared by the processes of the host. The first process of each
// host passes the arrays it has read as `own`. `arrays` becomes the views of the copy. If the
// process is alone on its host, nothing is copied and the result is null. Collective.
std::shared_ptr<void> share_with_host(Communicator& comm, const TrainingArrays* own,
                                      TrainingArrays& arrays);

}  // namespace finetune
