// Renders results of bench step: shares by operation, rates, medians.
#include "bench/report.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace finetune {
namespace {

constexpr int kNameWidth = 38;

template <typename... Values>
std::string format(const char* pattern, Values... values) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, pattern, values...);
  return buffer;
}

OpLine line_of(const OpKey& key, const OpRecord& record, double whole, double steps) {
  OpLine line;
  line.key = key;
  line.calls = double(record.calls) / steps;
  line.seconds = record.seconds / steps;
  line.share = record.seconds / whole;
  if (record.seconds > 0) {
    line.flops_per_second = record.flops / record.seconds;
    line.bytes_per_second = record.bytes / record.seconds;
  }
  return line;
}

// Operations by phase, largest share first; an operation's details are indented below it.
std::vector<OpLine> lines_of(const StepBenchResult& result, bool with_details) {
  const double whole = result.profiled_seconds, steps = result.profiled_steps;
  Profile sums;
  std::map<OpKey, std::vector<OpLine>> details;
  for (const auto& [key, record] : result.profile) {
    const OpKey sum{key.phase, key.op, ""};
    sums[sum] += record;
    if (!key.detail.empty()) details[sum].push_back(line_of(key, record, whole, steps));
  }
  std::vector<OpLine> lines;
  for (const auto& [key, record] : sums) lines.push_back(line_of(key, record, whole, steps));
  auto larger = [](const OpLine& a, const OpLine& b) {
    return std::tuple(a.key.phase, -a.seconds) < std::tuple(b.key.phase, -b.seconds);
  };
  std::sort(lines.begin(), lines.end(), larger);
  if (!with_details) return lines;
  std::vector<OpLine> all;
  for (const OpLine& line : lines) {
    all.push_back(line);
    std::vector<OpLine>& parts = details[line.key];
    std::sort(parts.begin(), parts.end(), larger);
    if (parts.size() > 1) all.insert(all.end(), parts.begin(), parts.end());
  }
  return all;
}

double seconds_in_operations(const StepBenchResult& result) {
  double seconds = 0;
  for (const auto& [key, record] : result.profile) seconds += record.seconds;
  return seconds;
}

std::optional<double> share_of(double flops_per_second, const MachinePeaks& peaks) {
  if (!peaks.matmul) return std::nullopt;
  return flops_per_second / *peaks.matmul;
}

bool on_gpu(const StepBenchResult& result) {
  return result.device == "cuda";
}

struct Spread {
  double least, median, most;
};

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return {values.front(), (values[(n - 1) / 2] + values[n / 2]) / 2, values.back()};
}

}  // namespace

double total_seconds(const StepBenchResult& result) {
  return std::accumulate(result.step_seconds.begin(), result.step_seconds.end(), 0.0);
}

double flops_per_token(const StepBenchResult& result) {
  double flops = 0;
  for (const auto& [key, record] : result.profile) flops += record.flops;
  return flops / result.profiled_tokens;
}

std::string rate_text(const MachinePeaks& peaks) {
  if (!peaks.matmul) return "not measured: oneDNN is not built in";
  return format("%.1f GFLOP/s", *peaks.matmul / 1e9);
}

JsonObject to_json(const OpLine& line) {
  JsonObject out;
  out.add("phase", name_of(line.key.phase));
  out.add("op", line.key.op);
  if (!line.key.detail.empty()) out.add("detail", line.key.detail);
  out.add("calls", line.calls);
  out.add("seconds", line.seconds);
  if (line.share) out.add("share", *line.share);
  out.add("flops_per_second", line.flops_per_second);
  out.add("bytes_per_second", line.bytes_per_second);
  return out;
}

JsonObject to_json(const StepBenchResult& result) {
  const double seconds = total_seconds(result);
  const double flops = flops_per_token(result) * result.tokens;
  const Spread spread = spread_of(result.step_seconds);
  JsonObject out;
  out.add("shape", result.shape);
  out.add("lengths", result.lengths);
  out.add("task", result.task);
  out.add("backend", result.backend);
  out.add("device", result.device);
  out.add("precision", result.precision == DType::bf16 ? "bf16" : "fp32");
  out.add("threads", result.threads);
  out.add("processes", result.processes);
  out.add("virtual_shards", result.virtual_shards);
  out.add("tensor_shards", result.tensor_shards);
  out.add("clock", result.clock == Clock::cpu ? "cpu" : "wall");
  out.add("parameters", result.parameters);
  out.add("batch_size", result.batch_size);
  out.add("steps", result.step_seconds.size());
  out.add("tokens_per_sample", result.tokens / result.samples);
  out.add("samples_per_second", result.samples / seconds);
  out.add("tokens_per_second", result.tokens / seconds);
  out.add("flops_per_token", flops_per_token(result));
  out.add("flops_per_second", flops / seconds);
  out.add("matmul_peak_flops_per_second", result.peaks.matmul);
  out.add("share_of_matmul_peak", share_of(flops / seconds, result.peaks));
  out.add("memory_peak_bytes_per_second", result.peaks.memory);
  out.add("step_seconds_min", spread.least);
  out.add("step_seconds_median", spread.median);
  out.add("step_seconds_max", spread.most);
  out.add("peak_memory_mb", result.peak_memory_mb);
  if (on_gpu(result)) out.add("device_peak_memory_mb", result.device_peak_memory_mb);
  out.add("communication_share", result.communication_seconds / seconds);
  out.add("profiled_step_seconds", result.profiled_seconds / result.profiled_steps);
  out.add("between_operations_share", 1 - seconds_in_operations(result) / result.profiled_seconds);
  JsonArray ops;
  for (const OpLine& line : lines_of(result, false)) ops.add(to_json(line));
  out.add("ops", ops);
  JsonArray matrix_products;
  for (const OpLine& line : lines_of(result, true)) {
    if (!line.key.detail.empty()) matrix_products.add(to_json(line));
  }
  out.add("matrix_products", matrix_products);
  return out;
}

std::string table_of(const std::vector<OpLine>& lines, const MachinePeaks& peaks,
                     const std::string& time_heading) {
  std::string out = format("%-*s %7s %10s %7s %9s %7s %8s %7s\n", kNameWidth, "operation", "calls",
                           time_heading.c_str(), "share", "GFLOP/s", "of peak", "GB/s", "of peak");
  const OpKey* last = nullptr;
  for (const OpLine& line : lines) {
    const bool same_phase = last && last->phase == line.key.phase;
    const bool same_op = same_phase && last->op == line.key.op;
    if (!same_phase) out += concat(name_of(line.key.phase), "\n");
    last = &line.key;
    const std::string name = same_op ? concat("      ", line.key.detail)
                                     : concat("  ", line.key.op, " ", line.key.detail);
    out += format("%-*s %7.1f %10.3f", kNameWidth, name.c_str(), line.calls, 1e3 * line.seconds);
    out += line.share ? format(" %6.1f%%", 100 * *line.share) : format(" %7s", "");
    const std::optional<double> share = share_of(line.flops_per_second, peaks);
    const bool computes = line.flops_per_second > 0;
    out += computes ? format(" %9.1f", line.flops_per_second / 1e9) : format(" %9s", "");
    out += computes && share ? format(" %6.0f%%", 100 * *share) : format(" %7s", "");
    out += format(" %8.1f %6.0f%%\n", line.bytes_per_second / 1e9,
                  100 * line.bytes_per_second / peaks.memory);
  }
  return out;
}

std::string to_text(const StepBenchResult& result) {
  const double seconds = total_seconds(result);
  const double flops = flops_per_token(result) * result.tokens;
  const double steps = double(result.step_seconds.size());
  const Spread spread = spread_of(result.step_seconds);
  std::string out =
      format("%s, %.1f M parameters, %s, %s lengths (mean %.1f tokens), batch %lld\n%s%s\n",
             result.shape.c_str(), double(result.parameters) / 1e6, result.task.c_str(),
             result.lengths.c_str(), result.tokens / result.samples, (long long)result.batch_size,
             result.backend.c_str(), result.clock == Clock::cpu ? ", processor time" : "");
  out += format("%.0f steps, %.1f ms each (min %.1f, median %.1f, max %.1f)\n", steps,
                1e3 * seconds / steps, 1e3 * spread.least, 1e3 * spread.median, 1e3 * spread.most);
  out += format("%.2f samples/s, %.0f tokens/s, %.1f GFLOP/s\n", result.samples / seconds,
                result.tokens / seconds, flops / seconds / 1e9);
  const std::optional<double> share = share_of(flops / seconds, result.peaks);
  out += share ? format("%.1f %% of ", 100 * *share) : "";
  out += format("%s (%s; memory: %.1f GB/s)\n\n",
                on_gpu(result) ? "this GPU's large matrix products"
                : result.precision == DType::bf16 && cpu_multiplies_bf16()
                    ? "this machine's peak of bf16 multiplications"
                    : "this machine's matrix-product rate",
                rate_text(result.peaks).c_str(), result.peaks.memory / 1e9);
  if (result.processes > 1) {
    out += format(
        "%lld processes of %lld threads, %lld virtual shards; this process's operations, of which "
        "%.1f ms a step (%.1f %%) in communication:\n",
        (long long)result.processes, (long long)result.threads, (long long)result.virtual_shards,
        1e3 * result.communication_seconds / steps, 100 * result.communication_seconds / seconds);
  }
  if (on_gpu(result)) {
    out += format("%.0f MiB of the GPU's memory at most\n", result.device_peak_memory_mb);
    out += format("each operation waited for, which makes a step %.1f ms long:\n",
                  1e3 * result.profiled_seconds / result.profiled_steps);
  }
  out += table_of(lines_of(result, true), result.peaks, "ms a step");
  const double between = result.profiled_seconds - seconds_in_operations(result);
  out += format("%-*s %7s %10.3f %6.1f%%\n", kNameWidth, "between operations", "",
                1e3 * between / result.profiled_steps, 100 * between / result.profiled_seconds);
  return out;
}

}  // namespace finetune
