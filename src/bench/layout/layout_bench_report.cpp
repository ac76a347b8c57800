// Renders bytes, memory and bubble of a layout, each beside its formula.
#include "bench/layout/layout_bench_report.h"

#include <array>

#include "core/text/printable.h"
#include "core/text/text.h"
#include "train/run/layout_table.h"

namespace finetune {
namespace {

struct AxisLine {
  Axis axis;
  const char* name;
  const char* metric;  // name in metrics.json
  int64_t counted, formula;
};

// One line for each axis of the layout that has several processes.
std::vector<AxisLine> axis_lines(const LayoutBenchResult& r) {
  std::vector<AxisLine> lines;
  for (const AxisLine& line :
       {AxisLine{Axis::data, "data", "dp_bytes", r.counted.data, r.formula.data},
        AxisLine{Axis::pipeline, "pipeline", "pp_bytes", r.counted.pipeline, r.formula.pipeline},
        AxisLine{Axis::tensor, "tensor", "tp_bytes", r.counted.tensor, r.formula.tensor}}) {
    if (r.run.layout.size(line.axis) > 1) lines.push_back(line);
  }
  return lines;
}

std::string mib(int64_t bytes) {
  return format_fixed(double(bytes) / (1 << 20), 1);
}

std::string percent(double share) {
  return format_fixed(100 * share, 1);
}

std::string memory_text(const LayoutBenchResult& r) {
  const std::array<const char*, 10> names = {"rank",        "weights", "gradients", "moments",
                                             "activations", "program", "in all",    "measured",
                                             "difference",  "formula"};
  std::string out = "memory of a process, MiB: forecast, measured (PSS)\n";
  for (const char* name : names) out += padded(name, 12, true);
  out += "\n";
  for (const ProcessMemory& m : r.memory) {
    for (const std::string& cell :
         {concat(m.rank), mib(m.weights), mib(m.gradients), mib(m.moments), mib(m.activations),
          mib(m.program), mib(m.model() + m.program), mib(m.measured),
          percent(m.difference()) + " %", mib(m.formula)}) {
      out += padded(cell, 12, true);
    }
    out += "\n";
  }
  return out +
         "difference: without the program, which is measured. formula: plan --world's, of a "
         "device that shares nothing.\n";
}

}  // namespace

JsonObject to_json(const LayoutBenchResult& r) {
  const LayoutRun& run = r.run;
  JsonObject out = {{"shape", r.shape},
                    {"backend", r.backend},
                    {"precision", run.compute == DType::bf16 ? "bf16" : "fp32"},
                    {"threads", r.threads},
                    {"dp", run.layout.dp()},
                    {"pp", run.layout.pp()},
                    {"tp", run.layout.tp()},
                    {"hosts", run.first_rank.size() - 1},
                    {"placement", letters_of(run.layout.placement())},
                    {"pipeline_schedule", name_of(run.schedule)},
                    {"chunks", run.split.chunks_of_a_stage()},
                    {"tensor_shards", run.tensor_shards},
                    {"virtual_shards", run.virtual_shards},
                    {"replica_micro_batches", run.replica_micro_batches()},
                    {"batch_size", run.batch_size},
                    {"length", run.length},
                    {"recompute", run.recompute},
                    {"steps", r.steps},
                    {"every_step_moves_as_much", r.counts_divide}};
  for (const AxisLine& line : axis_lines(r)) {
    out.add(line.metric, line.counted);
    out.add(concat(line.metric, "_formula"), line.formula);
  }
  if (run.layout.pp() > 1) {
    out.add("recorded_bubble", r.recorded_bubble);
    out.add("forecast_bubble", r.forecast_bubble);
    out.add("formula_bubble", r.formula_bubble);
  }
  JsonArray processes;
  for (const ProcessMemory& m : r.memory) {
    processes.add(JsonObject{{"rank", m.rank},
                             {"host", m.host},
                             {"d", m.at.d},
                             {"p", m.at.p},
                             {"t", m.at.t},
                             {"parameters", m.parameters},
                             {"weights_bytes", m.weights},
                             {"gradients_bytes", m.gradients},
                             {"moments_bytes", m.moments},
                             {"activations_bytes", m.activations},
                             {"program_bytes", m.program},
                             {"forecast_bytes", m.model() + m.program},
                             {"measured_bytes", m.measured},
                             {"difference", m.difference()},
                             {"formula_bytes", m.formula}});
  }
  out.add("processes", processes);
  return out;
}

std::string to_text(const LayoutBenchResult& r) {
  std::string out = concat(r.shape, ", ", r.backend, "; batches of ", r.run.batch_size, " x ",
                           r.run.length, " tokens, ", r.steps, " steps\n");
  for (const std::string& line : layout_lines({r.run, r.hosts})) out += line + "\n";
  for (const std::string& line : layout_warnings(r.run)) out += "warning: " + line + "\n";
  if (!axis_lines(r).empty()) {
    out += "\nbytes that all processes send to each other in a step\n";
    out += concat("  axis    ", padded("counted", 18, true), padded("formula", 18, true), "\n");
  }
  for (const AxisLine& line : axis_lines(r)) {
    const std::string name = line.name;
    out += concat("  ", padded(name, 8), padded(concat(line.counted), 18, true),
                  padded(concat(line.formula), 18, true),
                  line.counted == line.formula && r.counts_divide ? "  equal\n" : "  DIFFERENT\n");
  }
  out += "\n" + memory_text(r);
  if (r.run.layout.pp() == 1) return out;
  return out + concat("\nbubble: ", percent(r.recorded_bubble),
                      " % with the measured processor time of passes, ", percent(r.forecast_bubble),
                      " % with the layers' arithmetic, ", percent(r.formula_bubble),
                      " % with equally long passes\n");
}

}  // namespace finetune
