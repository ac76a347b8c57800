// Whether a launcher started this process as one of several: what its environment says.
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

bool has_rank() {
  return std::getenv("PMIX_RANK") || std::getenv("PMI_RANK");
}

}  // namespace

bool launched_in_parallel() {
  if (const auto size = launched_size()) return *size > 1;
  return has_rank();
}

std::optional<int64_t> launched_size() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const auto size = number_of_variable(name)) return size;
  }
  // Slurm's variables alone say nothing: a batch script's shell has them too.
  if (!has_rank()) return std::nullopt;
  for (const char* name : {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}) {
    if (const auto size = number_of_variable(name)) return size;
  }
  return std::nullopt;
}

std::optional<int64_t> launched_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (const auto rank = number_of_variable(name)) return rank;
  }
  return std::nullopt;
}

}  // namespace finetune
