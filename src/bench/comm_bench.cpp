// bench comm: times barriers, gathers, sums and exchanges; the results as a table and as JSON.
#include "bench/comm_bench.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "core/text/counted.h"

namespace finetune {
namespace {

constexpr int kRounds = 5;  // the median is reported
constexpr int kCalls = 200;

double slowest(Communicator& communicator, double seconds) {
  std::vector<double> all(static_cast<size_t>(communicator.size()));
  communicator.all_gather(&seconds, sizeof seconds, all.data());
  return *std::max_element(all.begin(), all.end());
}

// Seconds per call; all processes make the calls.
double time_of(Communicator& communicator, int calls, const std::function<void()>& call) {
  std::vector<double> rounds;
  call();
  for (int round = 0; round < kRounds; ++round) {
    communicator.barrier();
    const double start = seconds_now();
    for (int i = 0; i < calls; ++i) call();
    rounds.push_back(slowest(communicator, seconds_now() - start) / calls);
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[kRounds / 2];
}

void add(float* into, const float* other, size_t count) {
  for (size_t i = 0; i < count; ++i) into[i] += other[i];
}

Bandwidth measure_bandwidth(Communicator& communicator, int64_t megabytes) {
  Bandwidth result;
  result.processes = communicator.size();
  result.hosts = communicator.hosts();
  result.megabytes = megabytes;
  communicator.note("measuring communication", -1);
  result.barrier_seconds = time_of(communicator, kCalls, [&] { communicator.barrier(); });
  std::vector<char> mine(64), all(mine.size() * size_t(communicator.size()));
  result.all_gather_seconds = time_of(
      communicator, kCalls, [&] { communicator.all_gather(mine.data(), mine.size(), all.data()); });

  const auto processes = size_t(communicator.local_size()), own = size_t(communicator.local_rank());
  const size_t bytes = size_t(megabytes) << 20, floats = bytes / sizeof(float);
  std::vector<std::shared_ptr<void>> arenas;
  for (size_t i = 0; i < processes; ++i) arenas.push_back(communicator.allocate_shared(bytes));
  std::fill_n(static_cast<float*>(arenas[own].get()), floats, 1.0f);
  const size_t begin = floats * own / processes, end = floats * (own + 1) / processes;
  float* into = static_cast<float*>(arenas[own].get()) + begin;
  const float* neighbour = static_cast<float*>(arenas[(own + 1) % processes].get()) + begin;
  const double reduce = time_of(communicator, 1, [&] {
    add(into, neighbour, end - begin);
    communicator.host_barrier();
  });
  result.reduce_bytes_per_second = 3.0 * double(bytes) / reduce;

  if (communicator.hosts() == 1) return result;
  const bool exchanges = communicator.local_rank() < communicator.columns();
  const int next = (communicator.host() + 1) % communicator.hosts();
  const int previous = (communicator.host() + communicator.hosts() - 1) % communicator.hosts();
  std::vector<std::byte> received(bytes);
  const auto exchange = [&](size_t size) {
    if (!exchanges) return;
    const Communicator::Outgoing out{communicator.column_peer(next), arenas[own].get(), size};
    const Communicator::Incoming in{communicator.column_peer(previous), received.data(), size};
    communicator.exchange({&out, 1}, {&in, 1}, {"bytes of the measurement"});
  };
  result.exchange_seconds = time_of(communicator, kCalls, [&] { exchange(8); });
  const double whole = time_of(communicator, 1, [&] { exchange(bytes); });
  result.exchange_bytes_per_second = double(bytes) / whole;
  return result;
}

std::string line(const std::string& name, double value, const char* unit) {
  char buffer[128];
  std::snprintf(buffer, sizeof buffer, "%-44s %10.2f %s\n", name.c_str(), value, unit);
  return buffer;
}

}  // namespace

Bandwidth bench_comm(Communicator& communicator, int64_t megabytes) {
  if (communicator.size() == 1) {
    throw usage_error(
        "bench comm measures between processes: mpirun -n 2 --bind-to none finetune bench comm");
  }
  return measure_bandwidth(communicator, megabytes);
}

JsonObject to_json(const Bandwidth& result) {
  JsonObject out;
  out.add("processes", result.processes);
  out.add("hosts", result.hosts);
  out.add("megabytes", result.megabytes);
  out.add("barrier_microseconds", 1e6 * result.barrier_seconds);
  out.add("all_gather_microseconds", 1e6 * result.all_gather_seconds);
  out.add("reduce_gigabytes_per_second", result.reduce_bytes_per_second / 1e9);
  if (result.hosts > 1) {
    out.add("exchange_microseconds", 1e6 * result.exchange_seconds);
    out.add("exchange_gigabytes_per_second", result.exchange_bytes_per_second / 1e9);
  }
  return out;
}

std::string to_text(const Bandwidth& result) {
  std::string out = concat(counted(result.processes, "process", "processes"), " on ",
                           counted(result.hosts, "host"), "\n");
  out += line("barrier", 1e6 * result.barrier_seconds, "us");
  out += line("all-gather of 64 bytes", 1e6 * result.all_gather_seconds, "us");
  out += line(concat("ordered sum of ", result.megabytes, " MiB, a host"),
              result.reduce_bytes_per_second / 1e9, "GB/s");
  if (result.hosts == 1) return out;
  out += line("exchange of 8 bytes between hosts", 1e6 * result.exchange_seconds, "us");
  out += line(concat("exchange of ", result.megabytes, " MiB, a process, one way"),
              result.exchange_bytes_per_second / 1e9, "GB/s");
  return out;
}

}  // namespace finetune
