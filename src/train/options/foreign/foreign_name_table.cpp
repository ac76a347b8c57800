// The table of other programs' names. A test in tests/unit/cli checks that every answer names an
// existing option.
#include "train/options/foreign/foreign_names.h"

namespace finetune {
namespace {

constexpr ForeignName kOptions[] = {
    // The model.
    {"model m path", "inspect", "", "is not needed here: type finetune inspect MODEL"},
    {"tokenizer tokenizer_name tokenizer_path vocab vocab_file config_name bert_config_file "
     "bert_config do_lower_case lowercase uncased use_fast_tokenizer model_type architecture lang "
     "language",
     "train adapt evaluate predict plan check tokenize convert", "",
     "is not needed here: the directory of --model has config.json and the tokenizer's files"},
    {"trust_remote_code local_files_only offline", "train adapt evaluate predict plan", "",
     "is not needed here: no code of a model is run, and nothing is fetched"},
    {"cache_dir hf_home", "train adapt evaluate predict plan convert inspect", "",
     "is not an option here: the variable HF_HUB_CACHE names the directory of the cache"},
    {"push_to_hub hub_model_id hub_token use_auth_token token username repo_id",
     "train adapt convert", "",
     "is not available: nothing is sent; upload the directory of the model with: hf upload"},
    {"revision model_revision", "train adapt evaluate predict plan", "",
     "is not available: give --model the directory of that snapshot in the Hugging Face cache"},

    // Data files.
    {"text texts query sentence sentences prompt p", "predict", "",
     "is not an option here: type echo 'TEXT' | finetune predict --model MODEL --input - "
     "--output -"},
    {"train train_file train_data train_path training_file training_data text_file data dataset "
     "dataset_name input input_file input_data data_file data_path corpus file files f i d",
     "adapt", "text", ""},
    {"train_file train_data train_path train_csv training_file training_data train_dataset "
     "train_data_file training_set training_dataset data dataset dataset_name data_path data_file "
     "data_files data_dir input input_file input_data input_files file files csv corpus i d f",
     "train plan check", "train", ""},
    {"validation_file validation validation_data validation_set validation_dataset valid "
     "valid_file valid_data valid_path val val_file val_data val_path dev dev_file dev_data "
     "dev_path eval_file eval_data eval_dataset eval_set eval_path eval_data_file predict_file "
     "autotune_validation x_val",
     "train adapt plan check", "eval", ""},
    {"x_train", "train plan check", "train", ""},
    {"test test_file test_data test_set test_path test_dataset x_test", "train adapt plan check",
     "eval", " (finetune evaluate --data measures on rows that training does not see)"},
    {"test test_file test_data test_set test_path test_dataset eval eval_file eval_data eval_set "
     "eval_dataset validation validation_file validation_data validation_set valid valid_file val "
     "val_file val_data dev dev_file dev_data dataset dataset_name data_file data_path data_dir "
     "input input_file input_data file files predict_file gold x_test i d f",
     "evaluate", "data", ""},
    {"text texts", "evaluate", "text-column", ""},
    {"test test_file test_data test_set test_path data data_file data_path dataset dataset_name "
     "input_file input_data input_path inputs infile eval eval_file eval_data dev dev_file file "
     "files csv predict_file x_test i d f",
     "predict next", "input", ""},
    {"n k num count size num_rows n_rows budget query_size samples", "next", "rows", ""},
    {"train train_file train_data train_path x_train", "predict evaluate", "",
     "is not needed here: finetune train is what reads it"},
    {"stdin", "predict next", "input", " -"},
    {"dataset dataset_file data_file gold reference references truth ground_truth y_true test "
     "test_file eval input i d",
     "score", "data", ""},
    {"prediction prediction_file predictions_file pred preds y_pred pred_file answers p", "score",
     "predictions", ""},
    {"na_prob_file", "score", "na-prob", ""},
    {"na_prob_thresh", "score", "na-prob-threshold", ""},
    {"input input_file data file files text texts train f i d", "tokenize", "",
     "is not needed here: type finetune tokenize --model MODEL FILE"},
    {"config grid file input space search_space params c f i", "sweep", "",
     "is not needed here: type finetune sweep GRID --output DIR"},
    {"run runs dir input model data path i d", "compare", "",
     "is not needed here: type finetune compare RUN RUN"},
    {"run runs dir input model data path i d", "report", "",
     "is not needed here: type finetune report RUN --output FILE"},
    {"input data file dataset run", "inspect", "",
     "is not needed here: type finetune inspect PATH"},
    {"input input_file input_dir from src source i", "convert", "model", ""},
    {"config_file config_path cfg yaml yaml_file json_file c", "", "config", ""},

    // Held-out rows.
    {"validation_split validation_size validation_fraction validation_ratio val_split val_size "
     "val_fraction val_ratio valid_split valid_size valid_fraction eval_size eval_ratio "
     "eval_percent test_size test_split test_fraction test_ratio dev_size dev_split dev_ratio "
     "dev_fraction holdout hold_out holdout_fraction split split_ratio split_size split_fraction "
     "split_probabilities",
     "train adapt plan check", "eval-fraction", ""},
    {"eval_split", "adapt", "eval-fraction", ""},
    {"train_size train_fraction train_split train_ratio", "train adapt plan check", "",
     "is not an option here: --eval-fraction names the share that is held out"},
    {"stratify stratified", "train plan check", "",
     "is not needed here: --eval-fraction holds out its share of each label"},
    {"group groups group_column group_col group_by", "train plan check", "eval-group", ""},
    {"kfold k_fold k_folds cv n_folds n_splits cross_validation", "train check", "folds", ""},
    {"kfold k_fold k_folds cv folds n_folds n_splits cross_validation", "plan", "",
     "is not available: finetune sweep repeats a run with several seeds"},
    {"max_samples num_samples sample_size limit nrows n_rows max_rows subset sample",
     "train adapt plan", "max-train-samples", ""},
    {"samples_per_label sampling_strategy", "train plan", "max-train-samples",
     " (the first rows of the file, of all labels together)"},

    // Columns, and how rows are read.
    {"column_mapping", "train plan check evaluate predict", "",
     "is not an option here: --text-column and --label-column name the columns"},
    {"multilabel multi_label_classification multilabel_separator label_separator label_sep "
     "multi_target_strategy",
     "train plan check", "multi-label", ""},
    {"num_labels num_classes n_labels n_classes label_list label_names label2id id2label",
     "train plan check evaluate predict", "",
     "is not needed here: the labels are those of the data or of the model"},
    {"problem_type", "train plan check", "",
     "is not an option here: --regression learns numbers, --multi-label several labels a row"},
    {"header no_header has_header", "train adapt plan check evaluate predict", "",
     "is not needed here: --text-column names a column of the header"},
    {"output_format output_type out_format", "predict", "json-lines",
     " (or an --output that ends in .jsonl)"},
    {"format", "predict", "json-lines", " (of --input: --input-format)"},
    {"input_type data_format file_format", "predict", "input-format", ""},
    {"format data_format input_format file_format file_type", "train adapt plan check evaluate", "",
     "is not needed here: the file's name and content tell its form"},
    {"format output_format", "compare", "", "is --csv, --markdown or --json here"},
    {"format output_format", "score inspect", "json", ""},
    {"format output_format", "convert", "to", ""},
    {"jsonl jsonlines ndjson json", "predict", "json-lines", ""},
    {"json_lines json", "tokenize", "jsonl", ""},
    {"truncation truncate", "train evaluate predict plan", "long-text", " cut"},
    {"sliding_window", "train evaluate predict plan", "long-text", " windows"},
    {"stride overlap", "train evaluate predict plan", "",
     "is not an option here: --doc-stride is for questions, --window-stride for --long-text "
     "windows"},
    {"padding pad_to_max_length group_by_length dynamic_padding",
     "train adapt evaluate predict plan", "", "is not needed here: no batch is padded"},
    {"max_query_length max_question_length", "train adapt evaluate predict plan", "",
     "is not an option here: --max-length is that of question and context together; the context "
     "gets what the question leaves"},
    {"line_by_line", "", "text", " (a text a line is how files are read)"},
    {"max_predictions_per_seq", "adapt", "",
     "is not needed here: --mask-probability is the share of the tokens that are hidden"},
    {"dupe_factor short_seq_prob", "adapt", "",
     "is not needed here: words are hidden anew in each epoch, and no batch is padded"},
    {"wwm whole_word_mask do_whole_word_mask", "adapt", "",
     "is not needed here: whole words are masked, unless --no-whole-words is given"},

    // Optimization.
    {"head_learning_rate encoder_lr", "train plan", "layer-lr-decay",
     " (the head has the rate of --lr)"},
    {"gradient_accumulation_steps gradient_accumulation accumulate_grad_batches grad_accum "
     "accumulate_gradient num_accumulation_steps update_freq",
     "", "batch-size", " (of an update, over all processes)"},
    {"--C penalty l1_ratio", "train adapt plan", "weight-decay",
     " (more of it holds weights smaller; the C of scikit-learn is its inverse)"},
    {"average", "train plan", "best-metric", " eval_f1_macro (or _micro, _weighted)"},
    {"per_device_eval_batch_size eval_batch_size predict_batch_size micro_batch_size "
     "per_device_batch_size",
     "train adapt plan", "micro-batch-tokens", " (for training and evaluation)"},
    {"auto_find_batch_size", "train adapt plan", "",
     "is not needed here: the memory for a step does not grow with --batch-size"},
    {"optim optimizer optimizer_type optimiser optim_args solver", "train adapt plan", "",
     "is not available: AdamW is the only optimizer (--weight-decay, --adam-beta1, --adam-beta2, "
     "--adam-epsilon)"},
    {"loss loss_fn loss_type loss_function criterion focal_loss", "train plan", "",
     "is not available: the loss is cross-entropy, or with --regression the squared error"},
    {"shuffle", "train adapt plan", "",
     "is not needed here: rows are shuffled, unless --no-shuffle is given"},
    {"lora lora_r lora_rank lora_alpha lora_dropout lora_target lora_target_modules lora_modules "
     "use_lora qlora use_qlora peft use_peft peft_type target_modules adapter adapters "
     "finetuning_type",
     "train adapt sweep plan", "",
     "is not available: there is no LoRA here; all weights are trained (train --freeze N leaves "
     "the lowest layers as they are)"},
    {"lora lora_path peft adapter adapters", "evaluate predict convert", "",
     "is not available: there is no LoRA here; merge the adapter into its model first (PEFT: "
     "merge_and_unload)"},
    {"load_in_8bit load_in_4bit quantization quantize quantization_bit int8 int4 8bit 4bit",
     "train adapt evaluate predict plan convert", "",
     "is not available: weights are not quantized"},
    {"lr_finder find_lr lr_find hyperopt autotune optuna autotune_modelsize autotune_predictions",
     "train", "", "is not an option here: finetune sweep tries several values of an option"},
    {"pruner", "sweep", "halving", " 3"},
    {"max_concurrent max_concurrent_trials n_parallel", "sweep", "jobs", ""},
    {"sampler search_alg search_algorithm method strategy", "sweep", "",
     "is not needed here: lists under [sweep] are combined, and ranges are drawn at random"},
    {"study_name study storage resume", "sweep", "",
     "is not needed here: --output keeps the runs, and the same command goes on"},
    {"direction mode greater_is_better", "sweep", "",
     "is not needed here: the metric of best-metric in GRID says which way is better"},
    {"cv kfold folds", "sweep", "",
     "is not available: seed = [1, 2, 3] under [sweep] in GRID repeats each run with other seeds"},
    {"word_ngrams ngrams ngram_range min_count min_count_label dim ws neg bucket minn maxn "
     "lr_update_rate tol dual multi_class fit_intercept warm_start kernel gamma degree probability "
     "n_estimators max_depth max_features min_df max_df stop_words sublinear_tf "
     "hidden_layer_sizes activation refit cutoff retrain qnorm qout dsub save_output end_to_end "
     "use_differentiable_head template distance_metric margin",
     "train", "",
     "is not an option here: it is not a setting of BERT (--ngram-mix adds a linear model on "
     "n-grams)"},

    // Evaluations, checkpoints, output.
    {"eval_strategy evaluation_strategy evaluate_during_training val_check_interval", "",
     "eval-every", " N"},
    {"save_strategy save_model_every_epoch", "", "save-every", " N"},
    {"logging_strategy", "", "log-every", " N"},
    {"metric_for_best_model metric metric_name autotune_metric eval_metric monitor "
     "best_model_metric early_stopping_metric "
     "validation_metric scoring",
     "train adapt plan", "best-metric", ""},
    {"metrics scoring average", "evaluate", "",
     "is not needed here: all metrics are printed (--assert holds one to a bound)"},
    {"skip_checkpoint", "train adapt", "keep-checkpoints", " 0"},
    {"json_summary dllog_path log_path", "train adapt", "",
     "is not needed here: metrics.json, metrics.jsonl and log.txt are in --output"},
    {"eval_script", "train evaluate", "",
     "is not needed here: the scores of the official script are among the metrics"},
    {"load_best_model_at_end save_best_only save_best_model", "train adapt plan", "",
     "is not needed here: the best model by --best-metric is the one exported"},
    {"greater_is_better", "train adapt plan", "",
     "is not needed here: the metric of --best-metric says which way is better"},
    {"o out output out_file outfile output_file output_path save save_to",
     "check compare score inspect tokenize plan doctor completion", "",
     "is not an option here: the result goes to standard output; > FILE keeps it"},
    {"report_to=tensorboard use_tensorboard tensorboard_dir logging_dir log_dir", "", "tensorboard",
     ""},
    {"report_to=none", "train adapt plan sweep", "", "is not needed here: nothing is sent"},
    {"report_to wandb use_wandb wandb_project wandb_entity mlflow use_mlflow comet neptune "
     "trackio tracker with_tracking",
     "train adapt plan", "",
     "is not available: curves are in metrics.jsonl of --output, and --tensorboard writes them for "
     "TensorBoard"},
    {"run_name name", "train adapt plan", "",
     "is not needed here: the directory of --output is the run's name"},
    {"verbose v log_level verbosity debug verbose_logging logging_level",
     "train adapt sweep evaluate predict plan check", "",
     "is not needed here: the log goes to standard error"},
    {"v", "", "version", ""},
    {"progress progress_bar show_progress", "train adapt evaluate predict plan", "",
     "is not needed here: a terminal shows it, unless --no-progress is given"},
    {"do_train", "", "", "is not needed here: there are finetune train, evaluate and predict"},
    {"do_eval", "", "", "is not needed here: train evaluates where it has --eval"},
    {"do_predict", "", "", "is not needed here: there is finetune predict"},
    {"dry_run", "train adapt", "", "is not an option here: finetune plan forecasts a run"},
    {"yes y assume_yes", "train adapt evaluate predict convert report", "",
     "is not needed here: nothing asks; --overwrite replaces what is there"},

    // The machine.
    {"half fp16 float16", "convert", "dtype", " f16"},
    {"bf16 bfloat16", "convert", "dtype", " bf16"},
    {"fp32 float32 full", "convert", "dtype", " f32"},
    {"precision torch_dtype outtype type quantize", "convert", "dtype", ""},
    {"fp16 bf16 half float16 bfloat16 amp use_amp use_fp16 autocast fp16_full_eval bf16_full_eval",
     "", "precision", " bf16"},
    {"fp32 float32 no_fp16", "", "precision", " fp32"},
    {"loss_scale init_loss_scale fp16_opt_level", "train adapt plan", "",
     "is not needed here: --precision bf16 has the range of float32"},
    {"use_tpu tpu_name tpu_zone gcp_project master num_tpu_cores iterations_per_loop",
     "train adapt evaluate predict", "", "is not available: CPUs and CUDA GPUs compute here"},
    {"no_cuda use_cpu cpu cpu_only no_gpu", "", "device", " cpu"},
    {"gpus n_gpu num_gpus horovod nproc_per_node nproc num_nodes nnodes n_procs np world_size "
     "num_workers",
     "train adapt evaluate predict sweep", "",
     "is not an option here: type mpirun -n N finetune, N being the number of processes"},
    {"num_processes nproc_per_node nproc np n_procs", "plan", "processes", ""},
    {"gpu cuda use_cuda use_gpu gpu_id gpu_ids device_id device_ids accelerator g", "", "device",
     " cuda"},
    {"gpu cuda use_cuda use_gpu gpu_id device cpu no_cuda", "bench", "",
     "is an option of what is measured; see finetune bench step --help"},
    {"gpu cuda use_cuda use_gpu gpu_id device cpu no_cuda", "adapt", "",
     "is not available: adapt works on the CPU"},
    {"n_jobs num_jobs j workers parallel", "sweep", "jobs", ""},
    {"overwrite_cache skip_cache", "train adapt evaluate predict", "",
     "is not needed here: data files are read anew each time"},
    {"dataloader_num_workers use_multiprocessing", "train adapt evaluate predict plan", "",
     "is not needed here: data are read by all --threads"},
    {"local_rank rank node_rank master_addr master_port use_env",
     "train adapt sweep evaluate predict", "", "is not needed here: mpirun says it"},
    {"deterministic full_determinism", "train adapt plan evaluate predict", "",
     "is not needed here: equal options give equal results"},
    {"compile torch_compile jit xla use_xla use_trt allreduce_post_accumulation",
     "train adapt evaluate predict", "", "is not needed here"},

    // Predictions.
    {"threshold min_confidence confidence confidence_threshold prob_threshold min_prob min_score "
     "score_threshold th",
     "evaluate predict", "min-probability", ""},
    {"threshold thresholds optimize_threshold", "train plan", "tune-thresholds",
     " (of a model with several labels; predict --min-probability for one label)"},
    {"topk k top n_predictions", "", "top-k", ""},
    {"probabilities probability proba probas probs predict_proba predict_prob return_probs "
     "return_all_scores output_probabilities scores",
     "", "all-probabilities", ""},
    {"n_best n_best_size nbest_file", "predict", "nbest", " FILE"},
    {"version_2_with_negative squad_v2", "", "squad-version", " 2"},
    {"tolerances max_drop", "train evaluate", "tolerance", ""},
    {"fail_under min_accuracy assert_metric", "train evaluate", "assert", ""},
};

constexpr ForeignName kCommands[] = {
    {"fit finetune fine_tune finetuning tune learn training run supervised experiment "
     "text_classification autotrain trainer sft",
     "", "train", ""},
    {"pretrain pretraining mlm run_mlm skipgram cbow lm", "", "adapt", ""},
    {"test eval validate validation metrics test_label measure", "", "evaluate", ""},
    {"infer inference classify label tag apply transform predict_proba predict_prob predictions "
     "generate answer pipe batch_predict",
     "", "predict", ""},
    {"hyperopt hyperparameter_search grid_search gridsearch search hpo autotune optuna", "",
     "sweep", ""},
    {"export export_model save convert_model to_safetensors", "", "convert", ""},
    {"info show describe cat summary ls list dump", "", "inspect", ""},
    {"debug debug_data lint stats explore analyze analyse data", "", "check", ""},
    {"visualize plot html dashboard", "", "report", ""},
    {"diff leaderboard benchmark_runs", "", "compare", ""},
    {"benchmark perf profile speed", "", "bench", ""},
    {"estimate forecast memory dry_run", "", "plan", ""},
    {"env environment diagnose status", "", "doctor", ""},
    {"tokenise encode", "", "tokenize", ""},
    {"resume continue", "", "train", " --resume --output DIR"},
    {"merge merge_lora lora quantize quantise prune distill", "", "",
     "is not available: all weights are trained, in float32 or bfloat16"},
    {"serve server api deploy", "", "",
     "is not available: finetune predict --input - --output - --stream answers rows as they come"},
    {"download pull fetch login", "", "",
     "is not available: nothing is fetched; the command hf download fills the Hugging Face cache, "
     "from which --model takes ids"},
    {"init init_config config", "", "",
     "is not available: the options are the configuration; a run keeps its own in config.toml, and "
     "finetune train --config reads it"},
    {"version", "", "", "is --version here"},
};

}  // namespace

std::span<const ForeignName> foreign_option_names() {
  return kOptions;
}

std::span<const ForeignName> foreign_command_names() {
  return kCommands;
}

}  // namespace finetune
