// Options of regression gates and of the output.
#include "train/options/table/option_table.h"

namespace finetune {

using enum OptionRole;
using namespace commands;

std::span<const TrainOption> gate_options() {
  static const TrainOption rows[] = {
      {{.name = "assert",
        .role = run,
        .commands = runs | evaluate,
        .common = evaluate,
        .help = "fail with exit 7 unless a metric holds: \"eval_f1>=88\"; repeatable",
        .value = "METRIC>=X"},
       &TrainOptions::assertions},
      {{.name = "baseline",
        .role = run,
        .commands = runs | evaluate,
        .common = evaluate,
        .help = "earlier runs or evaluations (metrics.json or directory) for --tolerance; of "
                "several, mean and noise",
        .value = "FILE..."},
       &TrainOptions::baselines},
      {{.name = "tolerance",
        .role = run,
        .commands = runs | evaluate,
        .common = evaluate,
        .help = "how much worse than --baseline a metric may be: eval_f1=0.3, or eval_f1=1%; "
                "repeatable",
        .value = "METRIC=X"},
       &TrainOptions::tolerances},
      {{.name = "junit",
        .role = session,
        .commands = runs | evaluate,
        .help = "write the gates as a JUnit file, whether they hold or not",
        .value = "FILE"},
       &TrainOptions::junit},
  };
  return rows;
}

std::span<const TrainOption> output_options() {
  static const TrainOption rows[] = {
      {{.name = "output",
        .role = run,
        .commands = runs | evaluate,
        .common = train | adapt | evaluate,
        .help = "required: directory of the run; must be new or empty",
        .value = "DIR",
        .wordings = {{evaluate, "directory for metrics.json and the predictions"}},
        .aliases = "o out out_dir out_file outdir outfile output_dir output_directory output_path "
                   "output_file output_predictions output_predict_file output_model_dir save_dir "
                   "save_to save_path save dest destination checkpoint_dir results_dir result_dir "
                   "run_dir project_name project_dir experiment_name"},
       &TrainOptions::output},
      {{.name = "overwrite",
        .role = session,
        .commands = runs | answers | check,
        .common = train | adapt | answers,
        .help = "replace an earlier run in --output",
        .wordings = {{evaluate, "replace an earlier evaluation in --output"},
                     {predict | check | next, "replace existing files"}},
        .aliases =
            "overwrite_output_dir overwrite_output overwrite_existing force replace clobber f"},
       &TrainOptions::overwrite},
      {{.name = "resume",
        .role = session,
        .common = train | adapt,
        .help = "continue the run in --output, by its config.toml if no --model or data is given",
        .aliases = "resume_from_checkpoint resume_from resume_training continue continue_from "
                   "model_resume_path auto_resume"},
       &TrainOptions::resume},
      {{.name = "json",
        .role = session,
        .commands = runs | check | answers,
        .common = plan | check | evaluate | next,
        .help = "print the run and its final metrics as one JSON object, one line",
        .wordings = {{evaluate, "print model, options and metrics as one JSON object"},
                     {plan | check | next | predict, "print one JSON object on one line"}},
        .aliases = "json_output output_json as_json"},
       &TrainOptions::json},
      {{.name = "quiet",
        .role = session,
        .commands = runs | answers,
        .help = "no log on standard error, only warnings",
        .aliases = "silent q no_verbose"},
       &TrainOptions::quiet},
      {{.name = "no-progress",
        .role = session,
        .commands = runs | check | answers,
        .help = "no progress line",
        .aliases = "disable_tqdm no_tqdm no_progress_bar disable_progress_bar hide_progress"},
       &TrainOptions::no_progress},
  };
  return rows;
}

}  // namespace finetune
