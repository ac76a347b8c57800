// Divides a host's cores by affinity masks, and gives advice on the launcher's binding.
#include "comm/placement.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "core/text/text.h"
#include "core/threads/parallel.h"

namespace finetune {
namespace {

cpu_set_t own_mask() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) CPU_SET(0, &mask);
  return mask;
}

// The affinity masks of this host's processes, in order.
std::vector<cpu_set_t> masks_of_host(Communicator& communicator) {
  const cpu_set_t mine = own_mask();
  std::vector<cpu_set_t> all(static_cast<size_t>(communicator.size()));
  communicator.all_gather(&mine, sizeof mine, all.data());
  const int host = communicator.host();
  return {all.begin() + communicator.first_rank(host),
          all.begin() + communicator.first_rank(host + 1)};
}

const char* option_against_binding() {
  if (std::getenv("OMPI_COMM_WORLD_SIZE")) return "mpirun --bind-to none";
  if (std::getenv("SLURM_STEP_ID") && std::getenv("SLURM_PROCID")) return "srun --cpu-bind=none";
  if (launched_in_parallel()) return "the launcher's option against binding";
  return nullptr;
}

}  // namespace

int host_cores() {
  // Asks for all cores; the kernel reduces the set to the cpuset. A separate thread asks, so that
  // this thread's affinity stays.
  int allowed = 0;
  std::thread([&allowed] {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (int i = 0; i < CPU_SETSIZE; ++i) CPU_SET(i, &mask);
    ::sched_setaffinity(0, sizeof mask, &mask);
    mask = own_mask();
    allowed = CPU_COUNT(&mask);
  }).join();
  return std::max(1, std::min(allowed, quota_cores()));
}

int share_of_cores(const std::vector<cpu_set_t>& masks, size_t own) {
  double share = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &masks[own])) continue;
    int users = 0;
    for (const cpu_set_t& mask : masks) users += CPU_ISSET(core, &mask) ? 1 : 0;
    share += 1.0 / users;
  }
  return std::max(1, int(share + 1e-6));  // so that three thirds make one
}

int cores_for_process(Communicator& communicator) {
  const std::vector<cpu_set_t> masks = masks_of_host(communicator);
  const int by_affinity = share_of_cores(masks, size_t(communicator.local_rank()));
  return std::max(1, std::min(by_affinity, quota_cores() / communicator.local_size()));
}

std::string binding_advice(Communicator& communicator) {
  cpu_set_t together;
  CPU_ZERO(&together);
  for (const cpu_set_t& mask : masks_of_host(communicator)) CPU_OR(&together, &together, &mask);
  const int bound_to = CPU_COUNT(&together), usable = host_cores();
  const char* option = option_against_binding();
  if (!option || bound_to >= usable) return {};
  const int processes = communicator.local_size();
  return concat("the launcher has bound ", processes, processes == 1 ? " process" : " processes",
                " to ", bound_to, " of this host's ", usable, " cores; ", option,
                " lets them use all");
}

}  // namespace finetune
