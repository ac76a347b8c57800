// Options of optimization, evaluations and checkpoints.
#include "train/options/table/option_table.h"
#include "train/schedule.h"

namespace finetune {

using enum OptionRole;
using namespace commands;

std::span<const TrainOption> optimization_options() {
  static const TrainOption rows[] = {
      {{.name = "recipe",
        .help = "--epochs, --lr, ...: Hugging Face's, or by the data (default: auto; hf if "
                "--lr and "
                "--epochs are given); quick: in seconds, a linear head on the frozen encoder",
        .words = kRecipeWords,
        .wordings = {{adapt, "hf and auto have the same values here: Hugging Face's"}}},
       &TrainOptions::recipe},
      {{.name = "head-init",
        .role = run,
        .tasks = kLabels,
        .help = "a new head begins as a linear fit to the frozen encoder's features, or at random "
                "(auto: fit with --recipe auto, one label a row, below 50000 rows)",
        .words = "auto|fit|random",
        .aliases = "init_head head_initialization linear_probing lp_ft"},
       &TrainOptions::head_init},
      {{.name = "epochs",
        .common = runs,
        .help = "passes over the data (hf: 3; auto: by the rows)",
        .range = above(0, 1e6),
        .wordings = {{adapt, "passes over the training data (default: 3)"}},
        .aliases =
            "num_train_epochs num_epochs n_epochs nb_epochs max_epochs train_epochs body_epochs "
            "n_iter e"},
       &TrainOptions::epochs},
      {{.name = "max-steps",
        .common = adapt,
        .help = "stop after N updates (default: --epochs decides)",
        .range = at_least(1),
        .aliases = "steps max_iter max_iters num_iterations iterations max_update total_steps "
                   "num_steps "
                   "train_steps num_train_steps num_training_steps"},
       &TrainOptions::max_steps},
      {{.name = "batch-size",
        .commands = runs | bench_layout,
        .common = runs | bench_layout,
        .help = "sequences (qa: windows) per update, over all processes (hf: 32; auto: by the "
                "rows)",
        .range = between(1, 1 << 24),
        .wordings = {{adapt, "texts per update, over all processes (default: 32)"},
                     {bench_layout, "sequences per step, over all processes (default: 32)"}},
        .aliases = "batch per_device_train_batch_size per_gpu_train_batch_size train_batch_size "
                   "global_batch_size minibatch mini_batch_size bs b per_device_eval_batch_size "
                   "eval_batch_size predict_batch_size"},
       &TrainOptions::batch_size},
      {{.name = "micro-batch-tokens",
        .commands = runs | bench_layout,
        .common = plan,
        .help = "most tokens at once in training (auto: by the model's size and a GPU's memory)",
        .words = "auto",
        .range = at_least(1),
        .wordings = {{adapt, "most tokens at once in training (auto: by the model's size)"}}},
       &TrainOptions::micro_batch_tokens},
      {{.name = "micro-batches",
        .commands = runs | bench_layout,
        .common = bench_layout,
        .help = "instead of --micro-batch-tokens: M parts of about equal tokens per virtual shard "
                "(--pp: about 4 a stage)",
        .value = "M",
        .range = between(1, kMostMicroBatches),
        .wordings = {{adapt,
                      "instead of --micro-batch-tokens: M micro-batches of about equal tokens per "
                      "virtual shard"}}},
       &TrainOptions::micro_batches},
      {{.name = "lr",
        .common = train | adapt,
        .help = "learning rate (hf: 5e-5; auto: by the model)",
        .range = below(1e3),
        .wordings = {{adapt, "learning rate (default: 5e-5)"}},
        .aliases =
            "learning_rate learn_rate lr_rate body_learning_rate learning_rate_init alpha eta eta0 "
            "base_lr max_lr"},
       &TrainOptions::learning_rate},
      {{.name = "schedule",
        .help = "learning-rate schedule",
        .words = kScheduleWords,
        .aliases = "lr_scheduler_type lr_scheduler lr_schedule scheduler lr_decay scheduler_type"},
       &TrainOptions::schedule},
      {{.name = "warmup-ratio",
        .help = "share of the steps in which the learning rate rises from 0 (default: 0.1)",
        .range = between(0, 1),
        .aliases = "warmup warmup_proportion warmup_fraction"},
       &TrainOptions::warmup_ratio},
      {{.name = "warmup-steps",
        .help = "the same, as a number of steps; overrides --warmup-ratio",
        .range = at_least(0),
        .aliases = "num_warmup_steps warmup_updates warmup_iters"},
       &TrainOptions::warmup_steps},
      {{.name = "weight-decay",
        .help = "AdamW's weight decay; none for biases and LayerNorm",
        .range = at_least(0),
        .aliases = "wd l2 l2_reg l2_regularization l2_weight"},
       &TrainOptions::weight_decay},
      {{.name = "adam-beta1",
        .help = "AdamW's decay of the mean gradient",
        .range = below(1),
        .aliases = "beta1"},
       &TrainOptions::adam_beta1},
      {{.name = "adam-beta2",
        .help = "AdamW's decay of the mean squared gradient",
        .range = below(1),
        .aliases = "beta2"},
       &TrainOptions::adam_beta2},
      {{.name = "adam-epsilon",
        .help = "AdamW epsilon",
        .range = kPositiveFloat,
        .aliases = "adam_eps eps epsilon"},
       &TrainOptions::adam_epsilon},
      {{.name = "max-grad-norm",
        .help = "gradients are scaled down to this norm; 0: no clipping",
        .range = at_least(0),
        .aliases = "clip clip_norm grad_clip grad_norm clip_grad gradient_clip gradient_clipping "
                   "gradient_clip_val"},
       &TrainOptions::max_grad_norm},
      {{.name = "dropout",
        .help = "dropout everywhere in the model; 0: none (default: as in the model's config)",
        .value = "P",
        .range = below(1),
        .aliases =
            "hidden_dropout_prob attention_probs_dropout_prob classifier_dropout dropout_rate "
            "dropout_prob"},
       &TrainOptions::dropout},
      {{.name = "class-weights",
        .tasks = kLabels,
        .help = "balanced: rare classes count more in the loss",
        .words = "none|balanced",
        .aliases = "class_weight balanced balance pos_weight weight loss_weights sample_weight "
                   "use_class_weights"},
       &TrainOptions::class_weights},
      {{.name = "label-smoothing",
        .tasks = kLabels,
        .help = "share of the target spread over all classes",
        .range = below(1),
        .aliases = "label_smoothing_factor smoothing"},
       &TrainOptions::label_smoothing},
      {{.name = "layer-lr-decay",
        .help = "multiplies a layer's learning rate, once for each layer it is below the head "
                "(default: 1)",
        .range = above(0, 1),
        .aliases = "llrd layerwise_lr_decay layer_wise_lr_decay lr_layer_decay"},
       &TrainOptions::layer_lr_decay},
      {{.name = "freeze",
        .commands = train | plan,
        .help = "do not train the embeddings, or with N the embeddings and the first N layers",
        .value = "none|embeddings|N",
        .aliases = "freeze_layers freeze_encoder freeze_base freeze_bert freeze_embeddings frozen "
                   "num_frozen_layers frozen_layers unfreeze_layers"},
       &TrainOptions::freeze},
      {{.name = "seed",
        .commands = runs | check,
        .common = train,
        .help = "random seed of shuffling, dropout, new weights and held-out rows",
        .aliases = "random_state random_seed manual_seed data_seed rng_seed"},
       &TrainOptions::seed},
      {{.name = "no-shuffle", .help = "keep the order of the file"}, &TrainOptions::no_shuffle},
      {{.name = "virtual-shards",
        .commands = runs | bench_layout,
        .help = "sum gradients as K processes would, on any number of them (default: the "
                "processes; "
                "--pp, --tp: replicas)",
        .value = "K",
        .range = between(1, kMostVirtualShards),
        .wordings = {{adapt,
                      "sum gradients as K processes would, on any number of them (default: the "
                      "processes; --tp: replicas)"}}},
       &TrainOptions::virtual_shards},
  };
  return rows;
}

std::span<const TrainOption> evaluation_options() {
  static const TrainOption rows[] = {
      {{.name = "eval-every",
        .help = "evaluate every N steps (default: each epoch)",
        .range = at_least(1),
        .aliases = "eval_steps eval_frequency evaluate_during_training_steps eval_interval "
                   "valid_freq"},
       &TrainOptions::eval_every},
      {{.name = "save-every",
        .role = run,
        .help = "checkpoint every N steps (default: each epoch)",
        .range = at_least(1),
        .aliases = "save_steps save_interval save_freq checkpoint_every checkpointing_steps "
                   "save_checkpoints_steps num_steps_per_checkpoint"},
       &TrainOptions::save_every},
      {{.name = "keep-checkpoints",
        .role = run,
        .help = "keep the N newest checkpoints and the best (default: 2 during the run, none after "
                "it)",
        .range = at_least(0),
        .aliases = "save_total_limit max_checkpoints keep_last_n"},
       &TrainOptions::keep_checkpoints},
      {{.name = "best-metric",
        .help = "metric that chooses the exported model (default: the task's)",
        .value = "METRIC"},
       &TrainOptions::best_metric},
      {{.name = "early-stopping",
        .help = "stop after N evaluations without improvement; 0: off",
        .range = at_least(0),
        .aliases = "early_stopping_patience patience early_stop n_iter_no_change "
                   "early_stopping_rounds "
                   "use_early_stopping"},
       &TrainOptions::early_stopping},
      {{.name = "no-calibration",
        .role = run,
        .tasks = kLabels,
        .help = "do not fit the exported model's probabilities to the evaluation rows"},
       &TrainOptions::no_calibration},
      {{.name = "tune-thresholds",
        .role = run,
        .tasks = kLabels,
        .help = "with --multi-label: each label's threshold with the best F1 on evaluation rows"},
       &TrainOptions::tune_thresholds},
      {{.name = "pooling",
        .tasks = kLabels,
        .commands = train | plan,
        .help =
            "--recipe quick: the head reads the first token, or the mean of all (auto: what the "
            "model was trained with)",
        .words = "auto|cls|mean",
        .aliases = "pooling_mode pooling_strategy pooling_type"},
       &TrainOptions::pooling},
      {{.name = "no-label-names",
        .role = run,
        .tasks = kLabels,
        .help = "fit a head to the rows alone, and not to the labels' names, too"},
       &TrainOptions::no_label_names},
      {{.name = "ngram-mix",
        .role = run,
        .tasks = kLabels,
        .help = "mix the model with a linear one on n-grams (auto: yes with --recipe auto)",
        .words = "auto|yes|no"},
       &TrainOptions::ngram_mix},
      {{.name = "log-every",
        .role = run,
        .help = "write every Nth step to metrics.jsonl",
        .range = at_least(1),
        .aliases =
            "logging_steps log_interval log_steps log_freq display_loss_steps log_every_n_steps "
            "print_every "
            "logging_first_step"},
       &TrainOptions::log_every},
      {{.name = "tensorboard",
        .role = run,
        .help = "write event files for TensorBoard into --output, too"},
       &TrainOptions::tensorboard},
      {{.name = "no-ngram-baseline",
        .role = run,
        .tasks = kLabels,
        .commands = runs | check | evaluate,
        .help = "leave out the linear model on n-grams that the result is compared with"},
       &TrainOptions::no_ngram_baseline},
  };
  return rows;
}

}  // namespace finetune
