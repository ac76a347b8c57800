// Reads memory, start time and hardware facts from /proc and cgroups.
#include "core/process_stats.h"

#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

#include "core/clock.h"
#include "core/text/text.h"
#include "core/threads/parallel.h"

namespace finetune {
namespace {

const double kLoaded = seconds_now();  // fallback if /proc lacks the start time

// The text after `key` (and white space or a colon) on the first line that begins with it.
std::optional<std::string> proc_value(const char* file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    std::string_view rest = std::string_view(line).substr(key.size());
    size_t begin = rest.find_first_not_of(" \t:");
    if (begin != std::string_view::npos) return std::string(trim(rest.substr(begin)));
  }
  return std::nullopt;
}

// The value of a line "key: 1234 kB" in MiB, or 0.
double proc_mb(const char* file, std::string_view key) {
  auto value = proc_value(file, key);
  if (!value) return 0;
  auto kib = parse_int(std::string_view(*value).substr(0, value->find(' ')));
  return kib ? double(*kib) / 1024 : 0;
}

// Field 22 of /proc/self/stat: clock ticks from boot to the process's start. Fields are counted
// from the command's closing parenthesis, since the command may contain spaces.
std::optional<double> start_after_boot() {
  std::ifstream in("/proc/self/stat");
  std::string line;
  std::getline(in, line);
  size_t close = line.rfind(')');
  if (close == std::string::npos || close + 2 > line.size()) return std::nullopt;
  auto fields = split(std::string_view(line).substr(close + 2), ' ');
  constexpr size_t start_time = 22 - 3;  // the first field counted is number 3
  if (fields.size() <= start_time) return std::nullopt;
  auto ticks = parse_int(fields[start_time]);
  if (!ticks) return std::nullopt;
  return double(*ticks) / double(::sysconf(_SC_CLK_TCK));
}

}  // namespace

double peak_memory_mb() {
  return proc_mb("/proc/self/status", "VmHWM");
}

double address_space_left_mb() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return std::numeric_limits<double>::infinity();
  }
  return double(limit.rlim_cur) / (1 << 20) - proc_mb("/proc/self/status", "VmSize");
}

double proportional_memory_mb() {
  return proc_mb("/proc/self/smaps_rollup", "Pss");
}

void reset_peak_memory() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

// Prefers exact page counts; VmRSS may lag by some pages per core.
double resident_memory_mb() {
  const double exact = proc_mb("/proc/self/smaps_rollup", "Rss");
  return exact > 0 ? exact : proc_mb("/proc/self/status", "VmRSS");
}

double resident_file_mb() {
  return proc_mb("/proc/self/status", "RssFile");
}

// Free memory of the machine, limited by the container's or batch job's cgroup (v2 or v1).
double available_memory_mb() {
  double available = proc_mb("/proc/meminfo", "MemAvailable");
  constexpr const char* kLimits[][2] = {
      {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes",
       "/sys/fs/cgroup/memory/memory.usage_in_bytes"}};
  for (const auto& files : kLimits) {
    double limit = 0, used = 0;  // "max" is not a number
    if (!(std::ifstream(files[0]) >> limit) || !(std::ifstream(files[1]) >> used)) continue;
    available = std::min(available, std::max(0.0, limit - used) / (1024.0 * 1024.0));
  }
  return available;
}

double free_swap_mb() {
  return proc_mb("/proc/meminfo", "SwapFree");
}

double seconds_since_start() {
  double since_load = seconds_now() - kLoaded;
  auto start = start_after_boot();
  timespec now{};
  if (!start || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return since_load;
  double since_start = double(now.tv_sec) + double(now.tv_nsec) * 1e-9 - *start;
  return since_start > since_load ? since_start : since_load;
}

ProcessorTime processor_time() {
  ProcessorTime time;
  std::error_code ignored;
  for (std::filesystem::directory_iterator task("/proc/self/task", ignored), end;
       !ignored && task != end; task.increment(ignored)) {
    std::ifstream in(task->path() / "schedstat");
    double running = 0, waiting = 0;  // nanoseconds
    if (!(in >> running >> waiting)) continue;
    time.running += running * 1e-9;
    time.waiting += waiting * 1e-9;
  }
  return time;
}

std::vector<std::pair<std::string, std::string>> host_facts() {
  std::vector<std::pair<std::string, std::string>> facts;
  utsname name{};
  bool named = ::uname(&name) == 0;
  if (named) facts.emplace_back("host", name.nodename);
  if (auto cpu = proc_value("/proc/cpuinfo", "model name")) facts.emplace_back("cpu", *cpu);
  facts.emplace_back("cores", concat(available_cores()));
  if (struct sysinfo info{}; ::sysinfo(&info) == 0) {
    facts.emplace_back("memory", concat((uint64_t(info.totalram) * info.mem_unit) >> 20, " MiB"));
  }
  if (named) facts.emplace_back("kernel", concat(name.sysname, " ", name.release));
  return facts;
}

}  // namespace finetune
