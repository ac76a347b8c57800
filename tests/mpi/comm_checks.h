// What holds of any communicator, checked by all of its processes together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace finetune {

// Error(internal) unless it is so.
void require(bool condition, std::string_view what);

// What rank r says: no two ranks or sizes say the same.
std::vector<uint8_t> saying(int rank, size_t bytes);

// Each is collective. runs_rank: a rank's number in the run; most: bytes of a message.
void check_numbers(Communicator& c, const std::function<int(int)>& runs_rank);
void check_collectives(Communicator& c, size_t most);
void check_memory(Communicator& c);
void check_exchange(Communicator& c, size_t most);

}  // namespace finetune
