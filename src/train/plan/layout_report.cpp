// Tables of a layout's memory, bytes and time, and of all layouts of a number of processes.
#include <algorithm>

#include "core/text/json_value.h"
#include "core/text/printable.h"
#include "core/text/shown_numbers.h"
#include "core/text/text.h"
#include "train/plan/layout_plan.h"
#include "train/run/layout_table.h"

namespace finetune {
namespace {

constexpr size_t kShownLayouts = 20;
// With more stages the table has the first ones and the last.
constexpr int kShownStages = 12;

double gb(int64_t bytes) {
  return double(bytes) / 1e9;
}

// A number with three significant digits: 0.034, 1.34, 47.1, 228.
std::string short_number(double value) {
  if (value == 0) return "0";
  const int digits = value >= 99.95 ? 0 : value >= 9.995 ? 1 : value >= 0.9995 ? 2 : 3;
  return with_thousands(value, digits);
}

std::string in_gb(int64_t bytes) {
  return short_number(gb(bytes));
}

std::string percent(double share) {
  return format_fixed(100 * share, 1);
}

std::string seconds_text(double seconds) {
  return seconds < 0.9995 ? short_number(1000 * seconds) + " ms" : short_number(seconds) + " s";
}

// A table of right-aligned columns; the first column is left-aligned.
std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    out += "  " + padded(row[0], widths[0]);
    for (size_t i = 1; i < row.size(); ++i) out += "  " + padded(row[i], widths[i], true);
    out += "\n";
  }
  return out;
}

std::string memory_text(const LayoutPlan& plan) {
  const LayoutForecast& chosen = plan.chosen;
  const LayoutRun& run = chosen.run;
  std::vector<std::vector<std::string>> rows = {{"stage", "layers", "parameters", "weights",
                                                 "gradients", "moments", "kept", "working",
                                                 "in all", "on the host"}};
  const int stages = run.split.stages();
  for (int s = 0; s < stages; ++s) {
    if (stages > kShownStages && s >= kShownStages - 2 && s + 1 < stages) {
      if (s + 2 == stages) rows.push_back({"..."});
      continue;
    }
    const StageMemory& m = chosen.stages[size_t(s)];
    rows.push_back({concat(s), concat(run.split.layers(s)),
                    short_number(double(m.parameters) / 1e6) + " M", in_gb(m.weights),
                    in_gb(m.gradients), in_gb(m.moments), in_gb(m.kept), in_gb(m.working),
                    in_gb(m.total()), in_gb(m.offloaded)});
  }
  std::string out =
      concat("memory of a process, GB (", run.compute == DType::bf16 ? "bf16" : "fp32",
             run.recompute ? ", recompute" : "", run.horizon > 0 ? ", offload" : "", ")\n",
             table_text(rows));
  out += chosen.fits ? "It fits " : "It does not fit ";
  out += concat("a device of ", short_number(gb(plan.device_memory)), " GB");
  const StageMemory& most = chosen.most();
  if (run.layout.dp() > 1) {
    out += concat("; moments are divided between the replicas: whole they would be ",
                  in_gb(most.whole_moments), " GB");
  }
  out += ".\nNot counted: the driver's context, and what communication and operations buffer.\n";
  return out;
}

std::string bytes_text(const LayoutForecast& chosen) {
  const LayoutRun& run = chosen.run;
  AxisBytes most;
  for (int s = 0; s < run.split.stages(); ++s) {
    const AxisBytes bytes = axis_bytes(run, s);
    most.tensor = std::max(most.tensor, bytes.tensor);
    most.pipeline = std::max(most.pipeline, bytes.pipeline);
    most.boundary = std::max(most.boundary, bytes.boundary);
    most.data = std::max(most.data, bytes.data);
  }
  auto where = [&](Axis axis) {
    const int groups = run.layout.world() / run.layout.size(axis);
    const int across = groups_across_hosts(run.layout, axis, run.first_rank);
    return concat(across, " of ", groups);
  };
  return "sent by a process each step, GB, at most; groups that are on several hosts\n" +
         table_text({{"axis", "sent", "groups"},
                     {"tensor", in_gb(most.tensor), where(Axis::tensor)},
                     {"pipeline", in_gb(most.pipeline), where(Axis::pipeline)},
                     {"data", in_gb(most.data), where(Axis::data)}});
}

// The rates that the times are computed from.
std::string assumptions(const LayoutPlan& plan) {
  const Rates& r = plan.rates;
  auto rate = [](double value, double unit) { return short_number(value / unit); };
  std::string out = concat(
      "Assumed, not measured: ", rate(r.flops, 1e12), " TFLOP/s, ", rate(r.memory_bandwidth, 1e9),
      " GB/s of memory and ", rate(r.layer_latency, 1e-6), " µs a layer on a device;\n",
      rate(r.link_bandwidth, 1e9), " GB/s, ", rate(r.link_latency, 1e-6), " µs on a host; ",
      rate(r.host_bandwidth, 1e9), " GB/s, ", rate(r.host_latency, 1e-6), " µs between hosts");
  if (plan.chosen.run.horizon > 0) {
    out += concat("; ", rate(r.offload_bandwidth, 1e9), " GB/s to the host's memory");
  }
  return out + ".\nGradients travel during the last backward pass, nothing else overlaps.\n";
}

std::string time_text(const LayoutPlan& plan) {
  const LayoutRun& run = plan.chosen.run;
  const StepForecast& step = plan.chosen.step;
  std::string out = "time of a step\n";
  std::vector<std::vector<std::string>> rows = {
      {"passes", seconds_text(step.pipeline)},
      {"data", seconds_text(step.data)},
      {"update", seconds_text(step.update)},
      {"in all", seconds_text(step.total())},
  };
  out += table_text(rows);
  out += concat("In the passes: bubble ", percent(step.bubble),
                step.simulated ? " %, simulated" : " %, by formula");
  if (run.layout.tp() > 1) out += concat("; sums between tensor ranks ", seconds_text(step.tensor));
  out += concat(". ", short_number(double(run.batch_size) / step.total()), " samples/s, ",
                short_number(double(run.batch_size * run.length) / step.total()), " tokens/s.\n");
  return out + assumptions(plan);
}

std::string all_text(const LayoutPlan& plan) {
  const auto fitting = size_t(std::count_if(plan.all.begin(), plan.all.end(),
                                            [](const LayoutForecast& f) { return f.fits; }));
  const size_t shown = std::min(fitting == 0 ? size_t(5) : fitting, kShownLayouts);
  std::string out = concat(fitting, " of ", plan.all.size(), " layouts fit ",
                           short_number(gb(plan.device_memory)), " GB; ",
                           fitting == 0 ? "those that need least" : "the fastest first", "\n");
  std::vector<std::vector<std::string>> rows = {
      {"dp x pp x tp", "micro-batches", "memory, GB", "bubble, %", "step", "samples/s"}};
  for (size_t i = 0; i < std::min(shown, plan.all.size()); ++i) {
    const LayoutForecast& f = plan.all[i];
    const Layout& layout = f.run.layout;
    rows.push_back({concat(layout.dp(), " x ", layout.pp(), " x ", layout.tp()),
                    concat(f.run.replica_micro_batches()), in_gb(f.most().total()),
                    percent(f.step.bubble), seconds_text(f.step.total()),
                    short_number(double(f.run.batch_size) / f.step.total())});
  }
  return out + table_text(rows);
}

JsonObject stage_json(const LayoutForecast& forecast, int stage) {
  const StageMemory& m = forecast.stages[size_t(stage)];
  const AxisBytes bytes = axis_bytes(forecast.run, stage);
  JsonArray chunks;
  for (IndexRange chunk : forecast.run.split.chunks[size_t(stage)]) {
    chunks.add(JsonArray{chunk.begin, chunk.end});
  }
  return {{"layers", forecast.run.split.layers(stage)},
          {"chunks", chunks},
          {"parameters", m.parameters},
          {"slots", most_slots(forecast.run.pipeline(), stage)},
          {"weights_bytes", m.weights},
          {"gradients_bytes", m.gradients},
          {"moments_bytes", m.moments},
          {"whole_moments_bytes", m.whole_moments},
          {"kept_bytes", m.kept},
          {"working_bytes", m.working},
          {"offloaded_bytes", m.offloaded},
          {"memory_bytes", m.total()},
          {"tp_bytes", bytes.tensor},
          {"pp_bytes", bytes.pipeline},
          {"pp_boundary_bytes", bytes.boundary},
          {"dp_bytes", bytes.data}};
}

JsonObject forecast_json(const LayoutForecast& f) {
  const LayoutRun& run = f.run;
  int64_t whole = 0;
  for (const StageMemory& m : f.stages) {
    whole = std::max(whole, m.total() - m.moments + m.whole_moments);
  }
  return {{"dp", run.layout.dp()},
          {"pp", run.layout.pp()},
          {"tp", run.layout.tp()},
          {"replica_micro_batches", run.replica_micro_batches()},
          {"micro_batch_tokens", run.micro_batch_tokens},
          {"fits", f.fits},
          {"memory_bytes", f.most().total()},
          {"memory_with_whole_moments_bytes", whole},
          {"bubble",
           bubble(run.layout.pp(), run.split.chunks_of_a_stage(), run.replica_micro_batches())},
          {"step_bubble", f.step.bubble},
          {"step_bubble_is_simulated", f.step.simulated},
          {"passes_seconds", f.step.pipeline},
          {"tensor_seconds", f.step.tensor},
          {"data_seconds", f.step.data},
          {"update_seconds", f.step.update},
          {"step_seconds", f.step.total()},
          {"samples_per_second", double(run.batch_size) / f.step.total()}};
}

}  // namespace

std::string layout_text(const LayoutPlan& plan) {
  const LayoutRun& run = plan.chosen.run;
  const EncoderConfig& c = run.config;
  std::string out = concat(
      plan.parameters < 1'000'000'000 ? short_number(double(plan.parameters) / 1e6) + " million"
                                      : short_number(double(plan.parameters) / 1e9) + " billion",
      " parameters: ", c.num_hidden_layers, " layers, ", with_thousands(double(c.hidden_size)),
      " hidden, ", c.num_attention_heads, " heads, ", with_thousands(double(c.intermediate_size)),
      " inner; batches of ", with_thousands(double(run.batch_size)), " x ",
      with_thousands(double(run.length)), " tokens in micro-batches of ",
      with_thousands(double(run.micro_batch_tokens)), "\n\n");
  if (!plan.all.empty()) out += all_text(plan) + "\n";
  for (const std::string& line : layout_lines({run, numbered_hosts(run.first_rank)})) {
    out += line + "\n";
  }
  for (const std::string& line : layout_warnings(run)) out += "warning: " + line + "\n";
  return out + "\n" + memory_text(plan) + "\n" + bytes_text(plan.chosen) + "\n" + time_text(plan);
}

std::string layout_plan_json(const LayoutPlan& plan) {
  const LayoutRun& run = plan.chosen.run;
  JsonObject out = {{"world", run.layout.world()},
                    {"hosts", run.first_rank.size() - 1},
                    {"parameters", plan.parameters},
                    {"placement", letters_of(run.layout.placement())},
                    {"pipeline_schedule", name_of(run.schedule)},
                    {"chunks", run.split.chunks_of_a_stage()},
                    {"tensor_shards", run.tensor_shards},
                    {"virtual_shards", run.virtual_shards},
                    {"batch_size", run.batch_size},
                    {"length", run.length},
                    {"precision", run.compute == DType::bf16 ? "bf16" : "fp32"},
                    {"recompute", run.recompute},
                    {"offload_horizon", run.horizon},
                    {"device_memory_bytes", plan.device_memory}};
  out.add_all(forecast_json(plan.chosen));
  JsonArray stages, layouts;
  for (int s = 0; s < run.split.stages(); ++s) stages.add(stage_json(plan.chosen, s));
  out.add("stages", stages);
  out.add("warnings", layout_warnings(run));
  for (const LayoutForecast& forecast : plan.all) layouts.add(forecast_json(forecast));
  if (!plan.all.empty()) out.add("layouts", layouts);
  return out.text() + "\n";
}

}  // namespace finetune
