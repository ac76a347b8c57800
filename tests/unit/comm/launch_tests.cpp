// Which launcher environments make a run parallel.
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "comm/communicator.h"

using namespace finetune;

namespace {

constexpr const char* kVariables[] = {
    "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK", "SLURM_NTASKS",
    "SLURM_STEP_NUM_TASKS"};

bool launched_with(const std::map<std::string, std::string>& environment) {
  for (const char* name : kVariables) ::unsetenv(name);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  const bool launched = launched_in_parallel();
  for (const char* name : kVariables) ::unsetenv(name);
  return launched;
}

}  // namespace

TEST_CASE("only a launcher of several processes makes a run parallel") {
  CHECK(!launched_with({}));
  CHECK(launched_with({{"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_RANK", "1"}}));
  CHECK(!launched_with({{"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_RANK", "0"}}));
  CHECK(launched_with({{"PMI_SIZE", "4"}, {"PMI_RANK", "0"}}));
  CHECK(!launched_with({{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}}));
  CHECK(launched_with({{"PMIX_RANK", "0"}, {"SLURM_NTASKS", "8"}}));
  CHECK(!launched_with({{"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_NTASKS", "8"}}));
  CHECK(!launched_with({{"SLURM_NTASKS", "8"}}));  // a batch script's shell
  CHECK(launched_with({{"PMIX_RANK", "0"}}));
  CHECK(!launched_with({{"OMPI_COMM_WORLD_SIZE", "two"}}));
}

TEST_CASE("without a launcher a process is alone") {
  for (const char* name : kVariables) ::unsetenv(name);
  CHECK(make_communicator()->size() == 1);
}
