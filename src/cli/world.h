// The processes that the launcher started with this one, or this one alone.
#pragma once

#include "comm/communicator.h"

namespace finetune {

// Made by the first call, which main makes. Error(device).
Communicator& world();

}  // namespace finetune
