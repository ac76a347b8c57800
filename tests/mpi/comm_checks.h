// Checks of a communicator that all of its processes do together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace finetune {

// Throws Error(internal) unless the condition holds.
void require(bool condition, std::string_view what);

// Rank r's data; ranks and sizes all differ.
std::vector<uint8_t> saying(int rank, size_t bytes);

// Each is collective. runs_rank: converts a rank to the run's; most: bytes of a message.
void check_numbers(Communicator& c, const std::function<int(int)>& runs_rank);
void check_collectives(Communicator& c, size_t most);
void check_memory(Communicator& c);
void check_exchange(Communicator& c, size_t most);

}  // namespace finetune
