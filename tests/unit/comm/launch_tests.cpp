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
    "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_SIZE", "PMI_RANK", "PMIX_RANK",
    "SLURM_NTASKS",         "SLURM_STEP_NUM_TASKS"};

using Environment = std::map<std::string, std::string>;

// The result of `ask` in this environment.
template <typename Ask>
auto with(const Environment& environment, Ask&& ask) {
  for (const char* name : kVariables) ::unsetenv(name);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  const auto answer = ask();
  for (const char* name : kVariables) ::unsetenv(name);
  return answer;
}

bool launched_with(const Environment& environment) {
  return with(environment, launched_in_parallel);
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

TEST_CASE("a launcher says which process this one is") {
  const auto rank = [](const Environment& environment) { return with(environment, launched_rank); };
  CHECK(rank({{"OMPI_COMM_WORLD_RANK", "1"}, {"PMIX_RANK", "2"}}) == 1);
  CHECK(rank({{"PMIX_RANK", "2"}}) == 2);
  CHECK(rank({{"PMI_RANK", "3"}}) == 3);
  CHECK(!rank({{"SLURM_NTASKS", "8"}}));
}

TEST_CASE("without a launcher a process is alone") {
  for (const char* name : kVariables) ::unsetenv(name);
  CHECK(make_communicator()->size() == 1);
}
