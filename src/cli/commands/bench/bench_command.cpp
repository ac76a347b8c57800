// finetune bench: throughput of training steps, operations, the tokenizer and communication.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/comm_bench.h"
#include "bench/ops_bench.h"
#include "bench/report.h"
#include "bench/step_bench.h"
#include "bench/tokenizer_bench.h"
#include "cli/command.h"
#include "cli/commands/bench/bench_layout.h"
#include "cli/usage.h"
#include "cli/world.h"
#include "core/log.h"
#include "distributed/rank0_values.h"
#include "tasks/registry.h"

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
  const std::string text = as_json ? to_json(result).dump(2) + "\n" : to_text(result);
  std::fputs(text.c_str(), stdout);
}

struct BenchOptions {
  StepBenchOptions step;
  std::string model, input;
  std::string clock = "wall";
  int64_t megabytes = 64;
  bool json = false;
};

void add_device_option(Subcommand command, BenchOptions& options) {
  one_of(command.add_option("--device", options.step.device,
                            "where to compute (auto: as train; with --clock cpu the CPU)"),
         {"auto", "cpu", "cuda"})
      .capture_default_str()
      .take_last()
      .common();
}

void add_machine_options(Subcommand command, BenchOptions& options) {
  one_of(command.add_option("--precision", options.step.precision,
                            "of the matrix products (auto: bf16 where the machine is fast at it)"),
         {"auto", "fp32", "bf16"})
      .capture_default_str()
      .take_last()
      .common();
  command
      .add_option("--threads", options.step.threads,
                  "threads (default: all cores this process may use)")
      .type_name("N")
      .take_last()
      .common();
  one_of(command.add_option("--clock", options.clock,
                            "cpu: processor time, for a busy machine; needs --threads 1"),
         {"wall", "cpu"})
      .capture_default_str()
      .take_last()
      .common();
  command.add_flag("--json", options.json, "one JSON object").common();
}

void add_shape_options(Subcommand command, BenchOptions& options) {
  command.add_option("--shape", options.step.shape, "model shape, or a model (directory or id)")
      .type_name("tiny|minilm|base|large|DIR|ID")
      .capture_default_str()
      .take_last()
      .common();
  command.add_option("--lengths", options.step.lengths, "lengths of the samples, in tokens")
      .type_name("bank|squad|N")
      .capture_default_str()
      .take_last()
      .common();
  one_of(command.add_option("--task", options.step.task,
                            "what is trained (default: qa for squad lengths)"),
         task_names())
      .take_last()
      .common();
  command
      .add_option("--batch-size", options.step.batch_size,
                  "sequences of a step (default: 32; qa 8)")
      .type_name("N")
      .take_last()
      .common();
}

Clock clock_of(const BenchOptions& options) {
  return options.clock == "cpu" ? Clock::cpu : Clock::wall;
}

// The options with --clock's value, and --device's, on which all processes agree.
const StepBenchOptions& resolved(BenchOptions& options) {
  StepBenchOptions& step = options.step;
  step.clock = clock_of(options);
  if (step.clock == Clock::cpu && step.device == "auto") step.device = "cpu";
  std::string unused_gpu;
  step.device = agreed_device(world(), step.device, unused_gpu);
  if (!unused_gpu.empty() && world().rank() == 0) log(unused_gpu);
  return step;
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

  const Subcommand step =
      bench.add_subcommand("step", "Training steps and the time of each operation");
  add_shape_options(step, *options);
  step.add_option("--steps", options->step.steps,
                  "steps to measure (default: as many as take 5 seconds)")
      .type_name("N")
      .take_last()
      .common();
  step.add_option("--micro-batch-tokens", options->step.micro_batch_tokens,
                  "most tokens computed at once (default: as train)")
      .type_name("N")
      .take_last();
  step.add_option("--virtual-shards", options->step.virtual_shards,
                  "shards of the batch (default: one a process)")
      .type_name("K")
      .take_last();
  step.add_option("--tensor-shards", options->step.tensor_shards,
                  "parts of each layer (default: 1)")
      .type_name("V")
      .take_last();
  step.add_flag("--recompute", options->step.recompute,
                "compute activations again in the backward pass");
  add_device_option(step, *options);
  add_machine_options(step, *options);
  step.footer(kStepFooter);
  step.callback([options] { print(bench_step(resolved(*options), world()), options->json); });

  const Subcommand ops = bench.add_subcommand("ops", "Each operation of a step on its own");
  add_shape_options(ops, *options);
  add_device_option(ops, *options);
  add_machine_options(ops, *options);
  ops.footer(kOpsFooter);
  ops.callback([options] { print(bench_ops(resolved(*options)), options->json); });

  const Subcommand tokenizer = bench.add_subcommand("tokenizer", "Text to ids and offsets");
  tokenizer
      .add_option("--model", options->model,
                  "directory with the tokenizer's files, or an id in the Hugging Face cache")
      .required()
      .type_name("DIR|ID");
  tokenizer.add_option("--input", options->input, "text file, a text a line")
      .required()
      .type_name("FILE");
  add_machine_options(tokenizer, *options);
  tokenizer.footer(kTokenizerFooter);
  tokenizer.callback([options] {
    print(
        bench_tokenizer(options->model, options->input, options->step.threads, clock_of(*options)),
        options->json);
  });

  const Subcommand comm =
      bench.add_subcommand("comm", "Processes of mpirun: latency and bandwidth");
  comm.add_option("--megabytes", options->megabytes, "MiB of each process's arena")
      .type_name("N")
      .capture_default_str()
      .take_last();
  comm.add_flag("--json", options->json, "one JSON object");
  comm.footer(kCommFooter);
  comm.callback([options] { print(bench_comm(world(), options->megabytes), options->json); });

  add_bench_layout(bench);

  bench.callback([bench, options] {
    if (!bench.subcommand_is_given()) print(bench_step(resolved(*options), world()), options->json);
  });
}

}  // namespace finetune
