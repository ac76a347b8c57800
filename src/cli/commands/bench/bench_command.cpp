// finetune bench: throughput of training steps, operations, the tokenizer and communication.
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include "bench/comm_bench.h"
#include "bench/ops_bench.h"
#include "bench/report.h"
#include "bench/step_bench.h"
#include "bench/tokenizer_bench.h"
#include "cli/command.h"
#include "cli/commands/bench/bench_layout.h"
#include "cli/options/option_binding.h"
#include "cli/world.h"
#include "core/log.h"
#include "core/threads/parallel.h"
#include "distributed/rank0_values.h"
#include "tasks/registry.h"
#include "train/options/train_options.h"

namespace finetune {
namespace {

constexpr const char* kStepFooter = R"(Examples:
  finetune bench step --shape minilm --lengths bank
  finetune bench step --shape base --lengths squad --steps 10 --json
  finetune bench step --shape bert-base-uncased/ --lengths 128 --threads 1
  finetune bench step --device cuda --shape large --batch-size 32
  mpirun -n 4 finetune bench step

Weights and samples are random: no data is read, and of a directory the config alone. bank has the
lengths of card transactions (mean 13 tokens), squad those of SQuAD's windows (mean 171, at most
384). A step is train's own: dropout, gradient clipping, AdamW. flops_per_second counts matrix
products and attention of the real tokens, a multiply-add as 2 (the last layer of classification at
[CLS] alone); share_of_matmul_peak sets it beside large products with all threads, computed between
the steps.
GB/s is the least traffic there can be, beside that of adding one large block to another.

A GPU works while the program goes on: the steps are timed as they are in a run, then as many are
computed again with a wait after each operation, whose times are those of the table. The peaks are
the GPU's own.)";

constexpr const char* kOpsFooter = R"(Examples:
  finetune bench ops
  finetune bench ops --shape base --lengths squad --batch-size 8 --json

Each operation on its own with its operands in cache where they fit: what a step can hope for. On a
GPU (--device cuda) some microseconds of each call are its start and the wait for its end.)";

constexpr const char* kTokenizerFooter = R"(Examples:
  finetune bench tokenizer --model minilm --input contexts.txt --threads 1
  finetune bench tokenizer --model DIR --input texts.txt --json

Each line of the file is a text. megabytes_per_second counts the bytes of the lines; ids and offsets
are made. The fastest pass over the file counts.)";

constexpr const char* kCommFooter = R"(Examples:
  mpirun -n 2 --bind-to none finetune bench comm
  mpirun -n 4 --host a:2,b:2 finetune bench comm --megabytes 256 --json

The ordered sum is what processes of one host do with their gradients: each adds its slice of a
neighbour's arena to its own, in shared memory; GB/s counts reading both and writing one. An exchange
is between processes of two hosts, both ways at once.)";

template <typename Result>
void print(const Result& result, bool as_json) {
  if (world().rank() > 0) return;
  const std::string text = as_json ? to_json(result).indented(2) + "\n" : to_text(result);
  std::fputs(text.c_str(), stdout);
}

struct BenchOptions : StepBenchOptions {
  std::string model, input;
  std::string clock_name = "wall";
  int64_t megabytes = 64;
  bool json = false;
};

using BenchRow = OptionRow<BenchOptions>;

// A function, because the table of tasks may be initialised after this file's constants.
std::span<const BenchRow> shape_rows() {
  static const BenchRow rows[] = {
      {{.name = "shape",
        .common = commands::all,
        .help = "model shape, or a model (directory or id)",
        .value = "tiny|minilm|base|large|DIR|ID"},
       &BenchOptions::shape},
      {{.name = "lengths",
        .common = commands::all,
        .help = "lengths of the samples, in tokens",
        .value = "bank|squad|N"},
       &BenchOptions::lengths},
      {{.name = "task",
        .common = commands::all,
        .help = "what is trained (default: qa for squad lengths)",
        .words = task_words()},
       &BenchOptions::task},
      {{.name = "batch-size",
        .common = commands::all,
        .help = "sequences of a step (default: 32; qa 8)",
        .range = between(1, kMostStepSequences)},
       &BenchOptions::batch_size},
  };
  return rows;
}

const BenchRow kStepRows[] = {
    {{.name = "steps",
      .common = commands::all,
      .help = "steps to measure (default: as many as take 5 seconds)",
      .range = at_least(1)},
     &BenchOptions::steps},
    {{.name = "micro-batch-tokens",
      .help = "most tokens computed at once (default: as train)",
      .range = at_least(1)},
     &BenchOptions::micro_batch_tokens},
    {{.name = "virtual-shards",
      .help = "shards of the batch (default: one a process)",
      .value = "K",
      .range = between(1, kMostVirtualShards)},
     &BenchOptions::virtual_shards},
    {{.name = "tensor-shards",
      .help = "parts of each layer",
      .value = "V",
      .range = between(1, kMostVirtualShards)},
     &BenchOptions::tensor_shards},
    {{.name = "recompute", .help = "compute activations again in the backward pass"},
     &BenchOptions::recompute},
};

const BenchRow kDeviceRows[] = {
    {{.name = "device",
      .common = commands::all,
      .help = "where to compute (auto: as train; with --clock cpu the CPU)",
      .words = "auto|cpu|cuda"},
     &BenchOptions::device},
};

const BenchRow kMachineRows[] = {
    {{.name = "precision",
      .common = commands::all,
      .help = "of the matrix products (auto: bf16 where the machine is fast at it)",
      .words = "auto|fp32|bf16"},
     &BenchOptions::precision},
    {{.name = "threads",
      .common = commands::all,
      .help = "threads (default: all cores this process may use)",
      .range = between(1, kMostThreads)},
     &BenchOptions::threads},
    {{.name = "clock",
      .common = commands::all,
      .help = "cpu: processor time, for a busy machine; needs --threads 1",
      .words = "wall|cpu"},
     &BenchOptions::clock_name},
};

const BenchRow kTokenizerRows[] = {
    {{.name = "model",
      .required = commands::all,
      .help = "directory with the tokenizer's files, or an id in the Hugging Face cache",
      .value = "DIR|ID"},
     &BenchOptions::model},
    {{.name = "input",
      .required = commands::all,
      .help = "text file, a text a line",
      .value = "FILE"},
     &BenchOptions::input},
};

const BenchRow kCommRows[] = {
    {{.name = "megabytes",
      .common = commands::all,
      .help = "MiB of each process's arena",
      .range = between(1, kMostArenaMegabytes)},
     &BenchOptions::megabytes},
};

const BenchRow kJsonRows[] = {
    {{.name = "json", .common = commands::all, .help = "one JSON object"}, &BenchOptions::json},
};

using Rows = std::span<const BenchRow>;

Subcommand add_bench(Subcommand bench, const char* name, const char* help, const char* footer,
                     std::initializer_list<Rows> parts, BenchOptions& options) {
  const Subcommand command = bench.add_subcommand(name, help);
  for (Rows rows : parts) add_options(command, rows, options);
  add_options(command, kJsonRows, options);
  command.footer(footer);
  return command;
}

Clock clock_of(const BenchOptions& options) {
  return options.clock_name == "cpu" ? Clock::cpu : Clock::wall;
}

// Sets the clock from --clock, and the device, on which all processes agree.
const StepBenchOptions& resolved(BenchOptions& options) {
  options.clock = clock_of(options);
  if (options.clock == Clock::cpu && options.device == "auto") options.device = "cpu";
  std::string unused_gpu;
  options.device = agreed_device(world(), options.device, unused_gpu);
  if (!unused_gpu.empty() && world().rank() == 0) log(unused_gpu);
  return options;
}

}  // namespace

void add_bench_command(Subcommand program, int&) {
  auto options = std::make_shared<BenchOptions>();
  const Subcommand bench = program.add_subcommand(
      "bench", "Measure throughput on this machine, beside its matrix-product rate");
  bench.require_subcommand(0, 1);
  bench.footer(
      "Examples:\n"
      "  finetune bench               a training step of MiniLM's shape on bank text\n"
      "  finetune bench step --shape base --lengths squad --json\n"
      "  finetune bench ops --shape base\n"
      "  finetune bench tokenizer --model DIR --input texts.txt\n"
      "  mpirun -n 2 --bind-to none finetune bench comm\n"
      "  mpirun -n 4 --bind-to none finetune bench layout --pp 2");

  add_bench(bench, "step", "Training steps and the time of each operation", kStepFooter,
            {shape_rows(), kStepRows, kDeviceRows, kMachineRows}, *options)
      .callback([options] { print(bench_step(resolved(*options), world()), options->json); });
  add_bench(bench, "ops", "Each operation of a step on its own", kOpsFooter,
            {shape_rows(), kDeviceRows, kMachineRows}, *options)
      .callback([options] { print(bench_ops(resolved(*options)), options->json); });
  add_bench(bench, "tokenizer", "Text to ids and offsets", kTokenizerFooter,
            {kTokenizerRows, kMachineRows}, *options)
      .callback([options] {
        print(bench_tokenizer(options->model, options->input, options->threads, clock_of(*options)),
              options->json);
      });
  add_bench(bench, "comm", "Processes of mpirun: latency and bandwidth", kCommFooter, {kCommRows},
            *options)
      .callback([options] { print(bench_comm(world(), options->megabytes), options->json); });
  add_bench_layout(bench);

  bench.callback([bench, options] {
    if (!bench.subcommand_is_given()) print(bench_step(resolved(*options), world()), options->json);
  });
}

}  // namespace finetune
