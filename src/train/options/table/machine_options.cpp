// Options of devices and threads, and of how processes share a model.
#include "core/threads/parallel.h"
#include "distributed/pipeline/pipeline_schedule.h"
#include "train/options/table/option_table.h"

namespace finetune {

using enum OptionRole;
using namespace commands;

std::span<const TrainOption> machine_options() {
  static const TrainOption rows[] = {
      {{.name = "device",
        .role = run,
        .commands = train | plan | answers,
        .common = answers,
        .help = "where to compute; auto: the GPU where one can be used, else the CPU",
        .words = "auto|cpu|cuda"},
       &TrainOptions::device},
      {{.name = "precision",
        .commands = runs | answers | bench_layout,
        .common = plan,
        .help = "arithmetic; auto: bf16 where the machine is fast at it, else fp32",
        .words = "auto|fp32|bf16",
        .aliases = "mixed_precision dtype torch_dtype compute_dtype"},
       &TrainOptions::precision},
      {{.name = "threads",
        .role = run,
        .commands = runs | answers | bench_layout,
        .common = predict | next,
        .help = "threads (all: the cores this process may use)",
        .words = "all",
        .range = between(1, kMostThreads),
        .aliases =
            "n_jobs num_threads n_threads nthreads thread cores n_cores num_cores cpus n_cpus "
            "num_proc preprocessing_num_workers process_count t j"},
       &TrainOptions::threads},
      {{.name = "recompute",
        .role = run,
        .commands = runs | bench_layout,
        .common = plan,
        .help = "compute activations again in the backward pass: less memory, same result",
        .aliases = "gradient_checkpointing activation_checkpointing checkpoint_activations"},
       &TrainOptions::recompute},
      {{.name = "offload-activations",
        .role = run,
        .commands = train | plan,
        .help = "GPU, with --recompute: keep layers' inputs in host memory, back N layers ahead "
                "(without N: 4)",
        .value = "[N]",
        .range = between(1, 4096),
        .bare = 4},
       &TrainOptions::offload_activations},
      {{.name = "shard-optimizer",
        .role = run,
        .help = "each process keeps a part of the optimizer's state (always so on the CPU)",
        .aliases = "deepspeed zero zero_stage fsdp sharded_ddp"},
       &TrainOptions::shard_optimizer},
      {{.name = "no-deterministic",
        .role = run,
        .commands = train | plan,
        .help = "GPUs add gradients in the order that is fastest: results differ from run to run"},
       &TrainOptions::no_deterministic},
      {{.name = "bucket-mb",
        .role = run,
        .commands = train | plan,
        .help = "between GPUs: MiB of gradients sent together, during the backward pass",
        .range = above(0, 1e6)},
       &TrainOptions::bucket_mb},
      {{.name = "comm-precision",
        .role = run,
        .commands = train | plan,
        .help = "between GPUs: precision in which gradients are sent",
        .words = "fp32|bf16"},
       &TrainOptions::comm_precision},
      {{.name = "comm-timeout",
        .role = run,
        .commands = runs | answers,
        .help = "under mpirun: how long a process waits for another before the job ends; 0: "
                "for ever",
        .value = "TIME",
        .aliases = "ddp_timeout timeout nccl_timeout dist_timeout"},
       &TrainOptions::comm_timeout},
      {{.name = "time-budget",
        .role = run,
        .commands = train | adapt,
        .help = "end the whole command within this time (20s, 5m, 2h): measure the speed and train "
                "as long as fits, or fit a head alone",
        .value = "TIME",
        .wordings = {{adapt,
                      "end the whole command within this time (20s, 5m, 2h): measure the speed and "
                      "train as long as fits"}},
        .aliases = "max_runtime_secs total_time_s"},
       &TrainOptions::time_budget},
      {{.name = "time-limit",
        .role = session,
        .help = "stop cleanly after this time (90s, 10m, 1h30m): checkpoint and exit code 8",
        .value = "TIME",
        .aliases = "max_time max_train_time max_train_seconds max_hours autotune_duration"},
       &TrainOptions::time_limit},
  };
  return rows;
}

std::span<const TrainOption> layout_options() {
  static const TrainOption rows[] = {
      {{.name = "tensor-shards",
        .commands = runs | answers | bench_layout,
        .help = "cut each layer's heads and feed-forward columns into V parts, summed in a fixed "
                "order (default: --tp)",
        .value = "V",
        .range = between(1, kMostRanks)},
       &TrainOptions::tensor_shards},
      {{.name = "tp",
        .role = run,
        .commands = runs | answers | doctor | bench_layout,
        .common = bench_layout,
        .help = "tensor parallelism: N processes (tensor ranks) share each layer's heads and "
                "feed-forward columns",
        .range = between(1, kMostRanks),
        .aliases = "tensor_parallel tensor_parallel_size tp_size model_parallel_size"},
       &TrainOptions::tp},
      {{.name = "pp",
        .role = run,
        .commands = train | plan | answers | doctor | bench_layout,
        .common = bench_layout,
        .help = "pipeline parallelism: N stages, each with some of the layers",
        .range = between(1, kMostRanks),
        .aliases = "pipeline_parallel pipeline_parallel_size pp_size"},
       &TrainOptions::pp},
      {{.name = "placement",
        .role = run,
        .commands = train | plan | answers | doctor | bench_layout,
        .help = "order of replica (D), stage (P), tensor rank (T), last fastest; cluster: DPT, "
                "spread: TPD",
        .value = "cluster|spread|ORDER"},
       &TrainOptions::placement},
      {{.name = "pipeline-schedule",
        .role = run,
        .commands = train | plan | bench_layout,
        .common = bench_layout,
        .help = "order of a stage's forward and backward passes",
        .words = kPipelineWords},
       &TrainOptions::pipeline_schedule},
      {{.name = "chunks",
        .role = run,
        .commands = train | plan | bench_layout,
        .help = "with --pipeline-schedule interleaved: chunks of layers per stage (default: 2)",
        .range = between(1, 4096)},
       &TrainOptions::chunks},
      {{.name = "stages",
        .role = run,
        .commands = train | plan | answers | bench_layout,
        .help = "layers of each stage; auto: split so that the slowest stage is as fast as "
                "possible",
        .value = "auto|7,5"},
       &TrainOptions::stages},
  };
  return rows;
}

}  // namespace finetune
