// Options that evaluate and predict share.
#pragma once

#include "cli/options/model_option.h"
#include "cli/usage.h"
#include "core/threads/parallel.h"
#include "inference/fine_tuned_model.h"
#include "train/options/duration.h"
#include "train/options/option_values.h"

namespace finetune {

constexpr int64_t kMostParts = 65536;  // along an axis of a layout

inline void bind_inference_options(Subcommand command, InferenceOptions& o) {
  auto add = [&](const char* group, const char* name, auto& value, const char* help) {
    return command.add_option(name, value, help).group(group);
  };
  auto add_as_train = [&](const std::string& name, auto& value) {
    return command.add_option("--" + name, value, option_help(name)).group("Machine");
  };
  names_model(add("Model", "--model", o.model,
                  "directory of a run or a fine-tuned model, a weight file in it, or an id in the "
                  "Hugging Face cache"))
      .required()
      .type_name("DIR|FILE|ID");
  add("Data", "--text-column", o.text_columns,
      "columns of the text, joined by a space (default: as trained)")
      .delimiter(',')
      .type_name("NAME[,NAME...]")
      .expected(1)
      .take_all();
  add("Data", "--text-pair-column", o.text_pair_column,
      "column of the second text (default: as trained)")
      .type_name("NAME");
  add("Data", "--label-column", o.label_column,
      "column of the label; predict does not take it for the text (default: as trained)")
      .type_name("NAME");
  whole_number(
      add("Data", "--max-length", o.max_length, "longest input in tokens (default: as trained)"),
      1);
  one_of(add("Data", "--long-text", o.long_text,
             "cut a text beyond --max-length, or read it in windows (default: as trained)"),
         {"cut", "windows"});
  whole_number(add("Data", "--window-stride", o.window_stride,
                   "tokens that neighbouring windows share (default: as trained)"),
               0, kMostStride);
  whole_number(add("Data", "--max-windows", o.max_windows,
                   "windows of a text; it is cut behind them (default: as trained)"),
               1, kMostWindows);
  whole_number(add("Data", "--doc-stride", o.doc_stride,
                   "qa: overlap of neighbouring windows in tokens (default: as trained)"),
               0);
  one_of(add("Data", "--squad-version", o.squad_version,
             "qa: with 2 a question may have no answer (default: evaluate by the data, predict as "
             "trained)"),
         {"auto", "1", "2"});
  command
      .add_flag("--no-calibration", o.no_calibration,
                "classification: the model's own probabilities: no fitted temperature, thresholds "
                "or mix")
      .group("Model");
  command
      .add_flag("--no-ngram-mix", o.no_ngram_mix,
                "classification: the model alone, without the n-grams that it was mixed with")
      .group("Model");
  whole_number(add("Machine", "--batch-size", o.batch_size,
                   "most sequences computed at once (default: 512)"),
               1);
  one_of(add_as_train("precision", o.precision), {"auto", "fp32", "bf16"}).default_str("auto");
  one_of(add_as_train("device", o.device), {"auto", "cpu", "cuda"}).default_str("auto");
  whole_number_or("all", add_as_train("threads", o.threads), 1, kMostThreads).default_str("all");
  whole_number(add_as_train("tensor-shards", o.tensor_shards), 1, kMostParts).type_name("V");
  whole_number(add("Machine", "--tp", o.tp,
                   "under mpirun: tensor parallelism, N processes share each layer's heads and "
                   "columns (default: 1)"),
               1, kMostParts);
  whole_number(
      add("Machine", "--pp", o.pp,
          "under mpirun: pipeline parallelism, N stages with some of the layers each (default: 1)"),
      1, kMostParts);
  add_as_train("placement", o.placement).type_name("cluster|spread|ORDER").default_str("cluster");
  command
      .add_option_function(
          "--comm-timeout",
          [&o](const std::string& word) {
            o.comm_timeout = parse_duration(word, "--comm-timeout", true);
            return std::string();
          },
          option_help("comm-timeout"))
      .type_name("TIME")
      .group("Machine")
      .default_str("10m")
      .take_last();
  add_as_train("stages", o.stages).type_name("auto|7,5").default_str("auto");
}

}  // namespace finetune
