// How launched processes find each other: once, over MPI.
#include <mpi.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>

#include "comm/agreement.h"
#include "comm/communicator.h"
#include "comm/host/control_block.h"
#include "comm/host/shared_memory.h"
#include "comm/mpi/mpi_transfers.h"
#include "comm/parallel_communicator.h"
#include "core/error.h"
#include "core/failure.h"
#include "core/process_stats.h"
#include "core/switches.h"

namespace finetune {
namespace {

// What each process tells the others.
struct Introduction {
  char host[512];
  char node[72];
  int32_t pid;
  int64_t groups;  // FINETUNE_HOSTS, or 0
};

struct Invitation {
  int32_t descriptor;  // the descriptor of the host's control block, or -1
};

struct Start {
  int32_t failed;
};

template <typename T>
std::vector<T> gather_from_all(const T& mine, int size) {
  std::vector<T> all(static_cast<size_t>(size));
  check_mpi(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE,
                          MPI_COMM_WORLD),
            "MPI_Allgather");
  return all;
}

// Open MPI maps some 220 MiB at start. With less it crashes, or its processes wait forever.
constexpr double kMpiAddressSpaceMb = 256;

// Another process reports the error and exits; then the launcher ends this one. If this one exited
// first, the launcher could end the other before it reports.
void let_another_speak() {
  unsigned left = 5;
  while (left > 0) left = ::sleep(left);
}

// A problem of one process may affect all: the first one reports it.
void let_first_speak() {
  if (launched_rank().value_or(0) != 0) let_another_speak();
}

void require_address_space() {
  const double left = address_space_left_mb();
  if (left >= kMpiAddressSpaceMb) return;
  const auto rank = launched_rank();
  let_first_speak();
  throw device_error(rank ? concat("rank ", *rank, ": ") : "", int64_t(std::max(left, 0.0)),
                     " MiB of address space are left (ulimit -v), MPI needs ",
                     int64_t(kMpiAddressSpaceMb));
}

std::optional<int64_t> number_above_zero(const Switch& given) {
  const char* const words = given.value();
  if (!words) return std::nullopt;
  const auto number = parse_int(words);
  if (number && *number > 0) return number;
  let_first_speak();
  throw usage_error(given.name, "=", words, " is not a whole number above 0");
}

// Ends a process that waits in vain for the others, by SIGALRM: Liveness does not watch yet.
class StartLimit {
 public:
  StartLimit(int launcher_rank, std::optional<int64_t> given) {
    const int64_t seconds = std::min<int64_t>(given.value_or(kSeconds), 1 << 20);
    const std::string line = concat("finetune: error: rank ", launcher_rank,
                                    ": the other processes have not been found within ", seconds,
                                    " s (FINETUNE_START_LIMIT)\n");
    size_ = line.copy(line_, sizeof line_);
    std::signal(SIGALRM, [](int) {
      const ssize_t written = ::write(2, line_, size_);
      ::_exit(written < 0 ? 1 : int(ExitCode::device));
    });
    ::alarm(unsigned(seconds + (launcher_rank > 0 ? kLater : 0)));  // one line only
  }
  ~StartLimit() {
    ::alarm(0);
    std::signal(SIGALRM, SIG_DFL);
  }
  StartLimit(const StartLimit&) = delete;
  StartLimit& operator=(const StartLimit&) = delete;

 private:
  static constexpr int64_t kSeconds = 120, kLater = 5;
  static inline char line_[200];
  static inline size_t size_ = 0;
};

void start_mpi() {
  // Silences Open MPI's warnings about unused components, unless the user has set them.
  ::setenv("OMPI_MCA_btl_base_warn_component_unused", "0", 0);
  ::setenv("OMPI_MCA_mpi_warn_on_fork", "0", 0);
  ::setenv("OMPI_MCA_opal_warn_on_missing_libcuda", "0", 0);
  // If processes outnumber cores, Open MPI yields the core at every check, which costs milliseconds
  // on a busy machine. Waits here sleep soon enough (comm/mpi/mpi_transfers.cpp).
  ::setenv("OMPI_MCA_mpi_yield_when_idle", "0", 0);
  // The other mechanisms copy by process_vm_readv, which containers forbid.
  ::setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
  // The default, named so that Open MPI does not look for alternatives: that creates a file in
  // /dev/shm for a moment, and a kill in that moment would leave it there.
  ::setenv("OMPI_MCA_shmem", "mmap", 0);
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  if (provided < MPI_THREAD_FUNNELED) throw device_error("this MPI allows no threads");
}

Introduction introduce(int64_t groups) {
  Introduction mine{};
  mine.groups = groups;
  utsname names{};
  ::uname(&names);
  std::strncpy(mine.host, host_key().c_str(), sizeof mine.host - 1);
  std::strncpy(mine.node, names.nodename, sizeof mine.node - 1);
  mine.pid = ::getpid();
  return mine;
}

// Processes that divide the host differently would search for each other in vain. The first one
// reports.
void require_equal_groups(const std::vector<Introduction>& everybody, int launcher_rank) {
  auto shown = [&](size_t rank) {
    const int64_t groups = everybody[rank].groups;
    return concat(groups > 0 ? concat(groups) : std::string("not set"), " for rank ", rank, " on ",
                  everybody[rank].node);
  };
  for (size_t i = 1; i < everybody.size(); ++i) {
    if (everybody[i].groups == everybody[0].groups) continue;
    MPI_Finalize();
    if (launcher_rank != 0) {
      let_another_speak();
      throw PeerFailed{ExitCode::usage};
    }
    throw usage_error(kHostsSwitch.name, " is ", shown(0), " and ", shown(i),
                      "; give all processes the same value (mpirun -x ", kHostsSwitch.name, ")");
  }
}

// If a process failed, all fail, and the failed process of lowest rank reports. `have`, the memory
// that this process holds, is released before.
template <typename Have>
void fail_together(const std::optional<Error>& error, const std::vector<Introduction>& everybody,
                   int launcher_rank, Have& have) {
  const auto outcomes = gather_from_all(Start{error ? 1 : 0}, int(everybody.size()));
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i].failed) continue;
    have.reset();
    MPI_Finalize();
    if (int(i) != launcher_rank) {
      let_another_speak();
      throw PeerFailed{ExitCode::device};
    }
    throw device_error("rank ", i, " on ", everybody[i].node, ": ", error->what());
  }
}

// Shares the memory of the host's control block and the run's group; its first process creates it.
std::shared_ptr<void> share_control(const Topology& topology,
                                    const std::vector<Introduction>& everybody, int launcher_rank) {
  const int size = topology.size();
  const int maker = topology.launcher_rank[size_t(topology.first_rank[size_t(topology.host)])];
  const size_t bytes =
      Control::bytes(topology.local_size()) + GroupMemory::bytes(topology.local_size());
  std::optional<Error> error;
  std::optional<Descriptor> descriptor;
  try {
    if (launcher_rank == maker) descriptor.emplace(create_memory(bytes));
  } catch (const Error& e) {
    error = e;
  }
  const auto invitations =
      gather_from_all(Invitation{descriptor ? descriptor->number() : -1}, size);
  const int invitation = invitations[size_t(maker)].descriptor;
  std::shared_ptr<void> memory;
  if (invitation >= 0) {
    try {
      if (!descriptor) descriptor.emplace(open_memory(everybody[size_t(maker)].pid, invitation));
      memory = map_memory(*descriptor, bytes);
    } catch (const Error& e) {
      error = e;
    }
  }
  fail_together(error, everybody, launcher_rank, memory);
  return memory;
}

ParallelCommunicator::Parts whole_run(Topology topology, std::vector<std::string> names,
                                      Control control, const std::shared_ptr<void>& memory) {
  const auto first = names.begin() + topology.first_rank[size_t(topology.host)];
  const int processes = topology.local_size(), own = topology.local_rank;
  std::vector<int> slots(static_cast<size_t>(processes));
  std::iota(slots.begin(), slots.end(), 0);
  auto process = std::make_shared<OwnProcess>(std::move(control), own, topology.host,
                                              std::vector(first, first + processes));
  GroupMemory group(std::shared_ptr<void>(
      memory, static_cast<std::byte*>(memory.get()) + Control::bytes(processes)));
  HostGroup host_group(std::move(process), std::move(group), std::move(slots), own, 0);
  return {std::move(topology), std::move(names), std::move(host_group), nullptr};
}

}  // namespace

std::unique_ptr<Communicator> make_communicator() {
  if (!launched_in_parallel()) return make_solo_communicator();
  require_address_space();
  const auto groups = number_above_zero(kHostsSwitch),
             seconds = number_above_zero(kStartLimitSwitch);
  const StartLimit limit(int(launched_rank().value_or(0)), seconds);
  start_mpi();
  int size = 0, launcher_rank = 0;
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &launcher_rank), "MPI_Comm_rank");
  const auto everybody = gather_from_all(introduce(groups.value_or(0)), size);
  require_equal_groups(everybody, launcher_rank);
  std::vector<std::string> hosts;
  for (const Introduction& each : everybody) hosts.emplace_back(each.host);
  if (groups) {
    hosts = cut_hosts(std::move(hosts), int(std::min<int64_t>(*groups, size)));
  }
  Topology topology = number_processes(hosts, launcher_rank);
  std::vector<std::string> names;
  for (int rank : topology.launcher_rank) {
    names.push_back(concat("rank ", rank, " on ", everybody[size_t(rank)].node));
  }
  const std::shared_ptr<void> memory = share_control(topology, everybody, launcher_rank);
  Control control(memory, topology.local_size());
  ProcessSlot& slot = control.slot(topology.local_rank);
  slot.start_time = process_status(::getpid()).start_time;
  slot.pid = ::getpid();
  write_phase(slot, "the start", -1);
  // Watching starts when all slots are filled.
  check_mpi(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
  const bool one_host = topology.hosts() == 1;
  std::optional<ParallelCommunicator::Parts> parts;
  std::optional<Error> error;
  try {  // no thread may be available for watching
    parts.emplace(whole_run(std::move(topology), std::move(names), std::move(control), memory));
  } catch (const std::exception& failure) {
    error = error_of(failure);
  }
  fail_together(error, everybody, launcher_rank, parts);
  return one_host ? make_shared_communicator(std::move(*parts))
                  : make_mpi_communicator(std::move(*parts));
}

}  // namespace finetune
