// Detects from the environment whether a launcher started this process as one of several.
#include <cstdlib>
#include <optional>

#include "comm/communicator.h"
#include "core/text/text.h"

namespace finetune {
namespace {

std::optional<int64_t> number_of_variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? parse_int(text) : std::nullopt;
}

}  // namespace

bool launched_in_parallel() {
  if (auto size = number_of_variable("OMPI_COMM_WORLD_SIZE")) return *size > 1;
  if (auto size = number_of_variable("PMI_SIZE")) return *size > 1;
  // Slurm's variables alone prove nothing: the shell of a batch script has them too.
  if (!std::getenv("PMIX_RANK") && !std::getenv("PMI_RANK")) return false;
  if (auto size = number_of_variable("SLURM_STEP_NUM_TASKS")) return *size > 1;
  if (auto size = number_of_variable("SLURM_NTASKS")) return *size > 1;
  return true;
}

std::optional<int64_t> launched_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (const auto rank = number_of_variable(name)) return rank;
  }
  return std::nullopt;
}

}  // namespace finetune
