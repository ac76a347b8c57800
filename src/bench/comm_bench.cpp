// bench comm: the measured bandwidth as a table and as JSON.
#include "bench/comm_bench.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text/counted.h"

namespace finetune {
namespace {

constexpr int64_t kMostMegabytes = 65536;

std::string line(const std::string& name, double value, const char* unit) {
  char buffer[128];
  std::snprintf(buffer, sizeof buffer, "%-44s %10.2f %s\n", name.c_str(), value, unit);
  return buffer;
}

}  // namespace

Bandwidth bench_comm(Communicator& communicator, int64_t megabytes) {
  if (megabytes < 1 || megabytes > kMostMegabytes) {
    throw usage_error("--megabytes ", megabytes, ": must be from 1 to ", kMostMegabytes);
  }
  if (communicator.size() == 1) {
    throw usage_error(
        "bench comm measures between processes: mpirun -n 2 --bind-to none finetune bench comm");
  }
  return measure_bandwidth(communicator, megabytes);
}

nlohmann::ordered_json to_json(const Bandwidth& result) {
  nlohmann::ordered_json out;
  out["processes"] = result.processes;
  out["hosts"] = result.hosts;
  out["megabytes"] = result.megabytes;
  out["barrier_microseconds"] = 1e6 * result.barrier_seconds;
  out["all_gather_microseconds"] = 1e6 * result.all_gather_seconds;
  out["reduce_gigabytes_per_second"] = result.reduce_bytes_per_second / 1e9;
  if (result.hosts > 1) {
    out["exchange_microseconds"] = 1e6 * result.exchange_seconds;
    out["exchange_gigabytes_per_second"] = result.exchange_bytes_per_second / 1e9;
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
