// finetune plan: memory and time of a training run, without running it.
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/options/option_binding.h"
#include "cli/standard_output.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text/counted.h"
#include "train/options/option_words.h"
#include "train/options/table/option_table.h"
#include "train/plan/layout_plan.h"
#include "train/plan/plan.h"
#include "train/run/layout_table.h"
#include "train/run/metrics_files.h"

namespace finetune {
namespace {

constexpr const char* kPlanExamples =
    "Examples:\n"
    "  finetune plan --model minilm --train train.csv --label-column category\n"
    "  finetune plan --config runs/a/config.toml --micro-batch-tokens 2048\n"
    "  finetune plan ... --processes 4 --json\n"
    "  finetune plan ... --device cuda --no-time\n"
    "  finetune plan --world 16 --hosts 2 --shape large --batch-size 256\n"
    "  finetune plan --world 960 --hosts 120 --tp 8 --pp 12 --batch-size 960 \\\n"
    "      --shape 96,12288,96,49152 --recompute --device-memory 40G\n"
    "\n"
    "Options are those of train; --output is not needed. Data and model are read and checked as\n"
    "in train. Some steps are computed to measure their time, in the memory the run would take;\n"
    "--no-time leaves that out. --device cuda forecasts the GPU's memory and says which\n"
    "--micro-batch-tokens would fit.\n"
    "\n"
    "With --pp and --tp the forecast is of train in this layout on the CPU of one host, without\n"
    "time.\n"
    "\n"
    "With --world a layout of replicas, pipeline stages and tensor ranks is forecast by formula\n"
    "alone, without data, weights or mpirun, for one device per process; without --tp and --pp\n"
    "all layouts are compared. Times follow from the rates above, assumed and not measured here.\n"
    "\n"
    "1f1b goes backward as soon as it can, which SageMaker calls interleaved. gpipe does all\n"
    "forward passes first, which it calls simple. interleaved gives a stage several chunks of\n"
    "layers, as Megatron does. N of --offload-activations counts layers, where SageMaker counts\n"
    "tasks of its pipeline.";

struct PlanOptions {
  TrainOptions train;
  FormulaOptions formula;
  std::string config;
  int64_t processes = 0;  // not given

  // Returns --processes, else as few as the layout needs.
  int64_t resolved_processes() const {
    return processes > 0 ? processes : train.pp.value_or(1) * train.tp.value_or(1);
  }
  bool no_time = false;
};

const OptionRow<PlanOptions> kPlanRows[] = {
    {{.name = "config",
      .group = "Data",
      .help = "TOML file with the same names; the command line wins",
      .value = "FILE"},
     &PlanOptions::config},
    {{.name = "processes",
      .group = "Machine",
      .help =
          "processes on one host, as mpirun -n N would start them (default: those of one replica)",
      .range = between(1, 4096)},
     &PlanOptions::processes},
    {{.name = "no-time", .group = "Machine", .help = "do not compute any step to measure its time"},
     &PlanOptions::no_time},
};

double mb(int64_t bytes) {
  return double(bytes) / (1024.0 * 1024.0);
}

// A line of a table, and a member of --json.
struct SizeRow {
  std::string name, member;
  double mb = 0;
  std::string remark = "";
  bool is_shown = true;  // in the table; --json has all
};
using SizeRows = std::vector<SizeRow>;

SizeRows device_rows(const RunPlan& plan) {
  const DevicePlan& device = *plan.device;
  const DeviceForecast& m = device.memory;
  return {
      {"weights", "weights", mb(m.weights)},
      {"gradients", "gradients", mb(m.gradients)},
      {"optimizer", "optimizer", mb(m.optimizer), "m and v"},
      {"activations", "activations", mb(m.activations), plan.recompute ? "recomputed" : ""},
      {"scratch", "scratch", mb(m.scratch), "rounded operands, partial sums"},
      {"program", "program", mb(device.program), "for matrix products and uploads"},
      {"peak", "peak_memory", mb(device.program + m.total()), "forecast of device_peak_memory_mb"},
      {"available", "available", mb(device.available), "on this GPU now"}};
}

// Memory of the host. If a GPU trains, the host has neither gradients nor moments.
SizeRows memory_rows(const RunPlan& plan) {
  const MemoryForecast& m = plan.memory;
  const bool on_gpu = plan.device.has_value();
  const char* moments = plan.processes == 1 ? "m and v"
                        : plan.layout       ? "m and v, once for its replicas"
                                            : "m and v, once for all processes";
  const char* activations = on_gpu ? "inputs of layers" : plan.recompute ? "recomputed" : "";
  const char* peak =
      on_gpu ? "with the weights' file; forecast of peak_memory_mb" : "forecast of peak_memory_mb";
  return {
      {"weights", "weights", mb(m.weights), on_gpu ? "while they are read and written" : ""},
      {"gradients", "gradients", mb(m.gradients), "", !on_gpu},
      {"optimizer", "optimizer", mb(m.optimizer), moments, !on_gpu},
      {"activations", "activations", mb(m.activations), activations, !on_gpu || m.activations > 0},
      {"data", "data", mb(m.data), "vocabulary, texts and tokens, as measured here"},
      {"program", "program", mb(m.program), "and its libraries, as measured here"},
      {"peak", "peak_memory", mb(m.peak), peak},
      {"all", "all_processes", mb(m.host),
       concat(plan.processes, " processes, what they share counted once"), plan.processes > 1},
      {"available", "available", plan.available_mb, "on this machine now", plan.available_mb > 0}};
}

SizeRows disk_rows(const DiskForecast& disk) {
  return {{"checkpoint", "checkpoint", mb(int64_t(disk.checkpoint)),
           concat("each, ", disk.checkpoints, " at once at most")},
          {"model", "model", mb(int64_t(disk.model))},
          {"peak", "peak", mb(int64_t(disk.peak))},
          {"in the end", "final", mb(int64_t(disk.left)), "by --keep-checkpoints"}};
}

// Members such as "device_weights_mb".
void add_sizes(const SizeRows& rows, const char* before, const char* after, NamedNumbers& out) {
  for (const SizeRow& row : rows) out.emplace_back(concat(before, row.member, after), row.mb);
}

void add_device_numbers(const RunPlan& plan, NamedNumbers& out) {
  add_sizes(device_rows(plan), "device_", "_mb", out);
  const DevicePlan& device = *plan.device;
  out.emplace_back("device_fits", device.fits ? 1 : 0);
  out.emplace_back("device_fitting_micro_batch_tokens", double(device.fitting_tokens));
  out.emplace_back("device_fitting_micro_batch_tokens_recomputed",
                   double(device.fitting_tokens_recomputed));
}

NamedNumbers numbers_of(const RunPlan& plan) {
  const Layout layout = plan.layout.value_or(Layout(plan.processes, 1, 1));
  NamedNumbers out = {
      {"processes", double(plan.processes)},
      {"dp", double(layout.dp())},
      {"pp", double(layout.pp())},
      {"tp", double(layout.tp())},
      {"parameters", double(plan.parameters)},
      {"samples", double(plan.samples)},
      {"eval_samples", double(plan.eval_samples)},
      {"train_tokens", double(plan.train_tokens)},
      {"eval_tokens", double(plan.eval_tokens)},
      {"steps", double(plan.work.steps)},
      {"evaluations", double(plan.work.evaluations)},
      {"step_tokens", plan.work.step_tokens},
      {"micro_batch_tokens", double(plan.micro_batch_tokens)},
      {"micro_batches", double(plan.micro_batches)},
      {"largest_micro_batch_tokens", double(plan.work.training.tokens)},
      {"largest_evaluation_tokens", double(plan.work.evaluation.tokens)},
      {"virtual_shards", double(plan.shards)},
  };
  add_sizes(memory_rows(plan), "", "_mb", out);
  add_sizes(disk_rows(plan.disk), "", "_disk_mb", out);
  if (plan.device) add_device_numbers(plan, out);
  for (const Alternative& other : plan.alternatives) {
    const std::string size = other.divisor == 1 ? "" : other.divisor == 2 ? "half_" : "quarter_";
    if (other.divisor > 1 && other.micro_batches == 0)
      out.emplace_back(size + "micro_batch_tokens", double(other.micro_batch_tokens));
    out.emplace_back(size + "kept_peak_mb", mb(other.kept.host));
    out.emplace_back(size + "recomputed_peak_mb", mb(other.recomputed.host));
    if (!plan.device) continue;
    out.emplace_back(size + "kept_device_peak_mb", mb(other.kept_on_device));
    out.emplace_back(size + "recomputed_device_peak_mb", mb(other.recomputed_on_device));
  }
  if (!plan.timed) return out;
  out.emplace_back("startup_seconds", plan.time.startup);
  out.emplace_back("step_seconds", plan.time.step);
  out.emplace_back("evaluation_seconds", plan.time.evaluation);
  out.emplace_back("total_seconds", plan.time.total);
  out.emplace_back("step_seconds_low", plan.time.step_low);
  out.emplace_back("step_seconds_high", plan.time.step_high);
  out.emplace_back("total_seconds_low", plan.time.total_low);
  out.emplace_back("total_seconds_high", plan.time.total_high);
  out.emplace_back("waited_share", plan.time.waited);
  return out;
}

// "  name      value  remark"
std::string line(const std::string& name, const std::string& value, const std::string& remark) {
  const size_t width = size_t(count_code_points(value));
  std::string out = concat("  ", name, std::string(name.size() < 14 ? 14 - name.size() : 1, ' '),
                           std::string(width < 10 ? 10 - width : 0, ' '), value);
  if (!remark.empty()) out += "  " + remark;
  return out + "\n";
}

std::string text_of(const SizeRows& rows) {
  std::string out;
  for (const SizeRow& row : rows) {
    if (row.is_shown) out += line(row.name, with_thousands(row.mb, 1), row.remark);
  }
  return out;
}

std::string megabytes(int64_t bytes) {
  return with_thousands(mb(bytes), 1);
}

// The run's memory with other micro-batches, in MiB, by two functions of an alternative.
template <typename Kept, typename Recomputed>
std::string alternatives_text(const RunPlan& plan, const std::string& what, Kept kept,
                              Recomputed recomputed) {
  std::string out = "\n" + what + " with other settings, MiB\n";
  const bool by_number = plan.micro_batches > 0;
  out += by_number ? "  --micro-batches                     --recompute\n"
                   : "  --micro-batch-tokens                --recompute\n";
  for (const Alternative& other : plan.alternatives) {
    out += line(concat(by_number ? other.micro_batches : other.micro_batch_tokens),
                megabytes(kept(other)), std::string(10, ' ') + megabytes(recomputed(other)));
  }
  return out + "--recompute keeps the result bit for bit; other micro-batches do not.\n";
}

std::string device_text(const RunPlan& plan) {
  const DevicePlan& device = *plan.device;
  std::string out = "memory of the GPU, MiB\n" + text_of(device_rows(plan));
  if (device.fits) {
    out += "The run fits.\n";
  } else if (device.fitting_tokens > 0) {
    out += concat("The run does not fit; it would with --micro-batch-tokens ",
                  device.fitting_tokens, ".\n");
  } else if (device.fitting_tokens_recomputed > 0) {
    out += concat("The run does not fit; it would with --recompute --micro-batch-tokens ",
                  device.fitting_tokens_recomputed, ".\n");
  } else if (plan.micro_batches > 0) {
    out += "The run does not fit; more --micro-batches need less.\n";
  } else {
    out += "The run does not fit, whatever its --micro-batch-tokens.\n";
  }
  out +=
      "Not counted: the driver's context, kernels and CUDA graphs, for which a 256th is left "
      "free.\n";
  return out + alternatives_text(
                   plan, "peak", [](const Alternative& a) { return a.kept_on_device; },
                   [](const Alternative& a) { return a.recomputed_on_device; });
}

std::string memory_text(const RunPlan& plan) {
  const std::string table = text_of(memory_rows(plan));
  if (plan.device) return device_text(plan) + "\nmemory of the host, MiB\n" + table;
  const std::string out =
      plan.processes == 1 ? "memory, MiB\n" : "memory of the process that reads the data, MiB\n";
  return out + table +
         alternatives_text(
             plan, plan.processes == 1 ? "peak" : "all processes",
             [](const Alternative& a) { return a.kept.host; },
             [](const Alternative& a) { return a.recomputed.host; });
}

// Returns "27–35", or one number if both are the same when rounded.
std::string range_of(double low, double high, int digits) {
  const std::string first = with_thousands(low, digits), last = with_thousands(high, digits);
  return first == last ? first : concat(first, "–", last);
}

std::string duration_range(double low, double high) {
  const std::string first = format_duration(low), last = format_duration(high);
  return first == last ? first : concat(first, " – ", last);
}

std::string time_text(const RunPlan& plan) {
  constexpr double kBusy = 0.1;  // less is usual work of the system
  const TimeForecast& time = plan.time;
  const double low = 1000 * time.step_low, high = 1000 * time.step_high;
  std::string out = "\ntime\n";
  out += line("start", format_duration(time.startup), "");
  const auto rates = [&](double amount) {
    return range_of(amount / time.step_high, amount / time.step_low, 0);
  };
  out += line("step",
              range_of(low, high,
                       high < 10    ? 2
                       : high < 100 ? 1
                                    : 0) +
                  " ms",
              concat(rates(plan.work.step_tokens), " tokens/s, ", rates(plan.work.step_samples),
                     " samples/s"));
  if (plan.eval_samples > 0) out += line("evaluation", format_duration(time.evaluation), "");
  out += line("in all", duration_range(time.total_low, time.total_high),
              "without writing checkpoints");
  if (time.waited < kBusy) return out;
  return out + concat("The machine is busy: other programs had the processors for ",
                      format_fixed(100 * time.waited, 0),
                      " % of this time.\nThe lower figures are of an idle machine.\n");
}

std::string text_of(const RunPlan& plan) {
  const Workload& work = plan.work;
  std::string out =
      concat(plan.task, ": ", counted(plan.samples, "sample"), ", ",
             counted(plan.train_tokens, "token"), "; ", counted(plan.parameters, "parameter"),
             " on ", plan.backend, "\n", plan.recipe, plan.recipe.empty() ? "" : "\n");
  out += concat(
      counted(work.steps, "step"), " of ",
      with_thousands(work.step_samples, std::floor(work.step_samples) == work.step_samples ? 0 : 1),
      work.step_samples == 1 ? " sample, " : " samples, ", with_thousands(work.step_tokens),
      " tokens each; ",
      plan.micro_batches > 0
          ? concat(counted(plan.micro_batches, "micro-batch", "micro-batches"), " a virtual shard")
          : concat("micro-batches of up to ", counted(plan.micro_batch_tokens, "token")),
      ", the largest has ", with_thousands(double(work.training.tokens)), "\n");
  if (plan.layout) {
    out += concat(plan.processes, " processes: replicas x stages x tensor ranks ",
                  plan.layout->dp(), " x ", plan.layout->pp(), " x ", plan.layout->tp(), "\n");
  }
  if (plan.eval_samples > 0) {
    out += concat(counted(work.evaluations, "evaluation"), " of ",
                  counted(plan.eval_samples, "sample"), ", ", counted(plan.eval_tokens, "token"),
                  ", up to ", with_thousands(double(work.evaluation.tokens)), " at once\n");
  }
  out += "\n" + memory_text(plan) + "\ndisk, MiB\n" + text_of(disk_rows(plan.disk));
  if (plan.layout && plan.time_wanted) {
    out += "\nNo time is measured: this process alone has no other stages and tensor ranks.\n";
  }
  if (plan.too_large && !plan.layout)
    out += "\nNo time is measured: the run does not fit into the memory available.\n";
  if (!plan.timed) return out;
  return out + time_text(plan);
}

}  // namespace

void add_plan_command(Subcommand program, int&) {
  const Subcommand command =
      program.add_subcommand("plan", "Forecast memory, disk and time of a training run");
  auto options = std::make_shared<PlanOptions>();
  const OptionUse use{.command = commands::plan};
  add_options(command, train_options(), options->train, use);
  add_options(command, formula_options(), options->formula, use);
  add_options(command, kPlanRows, *options);
  command.footer(kPlanExamples);
  command.callback([options] {
    if (options->formula.world) {
      if (options->processes > 1) {
        throw usage_error("--processes ", options->processes, " and --world ",
                          *options->formula.world, " exclude each other");
      }
      const LayoutPlan layout = plan_layout(options->train, options->formula);
      for (const std::string& line : layout_warnings(layout.chosen.run)) count_warning(line);
      options->train.json ? write_standard_output(layout_plan_json(layout))
                          : write_lines(layout_text(layout));
      return;
    }
    refuse_without_world(options->formula);
    SharedInputs inputs;
    const RunPlan plan =
        plan_run(options->train, options->resolved_processes(), !options->no_time, inputs);
    open_console(true);
    if (!plan.warning.empty()) warn(plan.warning);
    options->train.json ? write_standard_output(json_line(numbers_of(plan)) + "\n")
                        : write_lines(text_of(plan));
  });
}

}  // namespace finetune
