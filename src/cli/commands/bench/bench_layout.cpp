// finetune bench layout: bytes, memory and bubble of a layout beside plan's formulas.
#include "cli/commands/bench/bench_layout.h"

#include <memory>
#include <span>

#include "bench/layout/layout_bench_report.h"
#include "cli/options/option_binding.h"
#include "cli/standard_output.h"
#include "cli/world.h"
#include "core/log.h"
#include "tasks/registry.h"
#include "train/options/table/option_table.h"
#include "train/run/layout_table.h"

namespace finetune {
namespace {

constexpr const char* kLayoutFooter = R"(Examples:
  mpirun -n 4 --bind-to none finetune bench layout --pp 2
  mpirun -n 2 --bind-to none finetune bench layout --tp 2 --json
  finetune bench layout --shape large --batch-size 4     one process

Options are train's. Weights and samples are random, the program's own session makes the steps on
the CPU. Bytes are counted where they are moved, and equal plan's formula as integers where shards
are powers of two. Memory is each process's proportional share (PSS) after the steps, beside the
forecast. The bubble is simulated with the processor time of every pass. No speed is measured:
processes that share cores say nothing of it. What V tensor shards cost one process:
  finetune bench step --clock cpu --threads 1 --tensor-shards 1  and 2, 4)";

struct BenchLayoutOptions : LayoutBenchOptions {
  bool json = false;
};

std::span<const OptionRow<BenchLayoutOptions>> layout_rows() {
  static const OptionRow<BenchLayoutOptions> rows[] = {
      {{.name = "shape",
        .common = commands::all,
        .help = "model shape, or a model (directory or id)",
        .value = "tiny|minilm|base|large|DIR|ID"},
       &BenchLayoutOptions::shape},
      {{.name = "length",
        .common = commands::all,
        .help = "tokens of every sample",
        .range = at_least(1)},
       &BenchLayoutOptions::length},
      {{.name = "steps",
        .common = commands::all,
        .help = "steps to count, after one to warm up",
        .range = between(1, 1 << 20)},
       &BenchLayoutOptions::steps},
      {{.name = "task", .common = commands::all, .help = "what is trained", .words = task_words()},
       &BenchLayoutOptions::task},
      {{.name = "json", .common = commands::all, .help = "one JSON object"},
       &BenchLayoutOptions::json},
  };
  return rows;
}

}  // namespace

void add_bench_layout(Subcommand bench) {
  auto options = std::make_shared<BenchLayoutOptions>();
  const Subcommand layout =
      bench.add_subcommand("layout", "Processes of mpirun: bytes, memory and bubble of a layout");
  add_options(layout, layout_rows(), *options);
  add_options(layout, train_options(), options->train, {.command = commands::bench_layout});
  layout.footer(kLayoutFooter);
  layout.callback([options] {
    const LayoutBenchResult result = bench_layout(*options, world());
    if (world().rank() > 0) return;
    for (const std::string& line : layout_warnings(result.run)) count_warning(line);
    write_standard_output(options->json ? to_json(result).indented(2) + "\n" : to_text(result));
  });
}

}  // namespace finetune
