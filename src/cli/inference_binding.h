// Options that evaluate and predict share.
#pragma once

#include "cli/usage.h"
#include "train/inference.h"

namespace finetune {

inline void bind_inference_options(CLI::App& app, InferenceOptions& o) {
  auto group = [&](CLI::Option* option, const char* name) { return option->group(name); };
  group(app.add_option("--model", o.model, "fine-tuned model: a run, its model/, any such directory, or a weight file in it"), "Model")
      ->required()->type_name("DIR|FILE");
  group(app.add_option("--text-column", o.text_columns,
                       "columns of the text, joined by a space (default: as trained)"), "Data")
      ->delimiter(',')->type_name("NAME[,NAME...]")->expected(1)->take_all();
  group(app.add_option("--text-pair-column", o.text_pair_column, "column of the second text (default: as trained)"), "Data")
      ->type_name("NAME");
  group(app.add_option("--label-column", o.label_column,
                       "column of the label; predict does not take it for the text (default: as trained)"), "Data")
      ->type_name("NAME");
  group(whole_number(app.add_option("--max-length", o.max_length, "longest input in tokens (default: as trained)"), 1), "Data");
  group(whole_number(app.add_option("--doc-stride", o.doc_stride,
                                    "qa: overlap of neighbouring windows in tokens (default: as trained)"), 0), "Data");
  group(one_of(app.add_option("--squad-version", o.squad_version,
                              "qa: version 2 may answer nothing (default: evaluate by the data, predict as trained)"), {"auto", "1", "2"}), "Data");
  group(whole_number(app.add_option("--batch-size", o.batch_size, "most sequences computed at once (default: 512)"), 1), "Machine");
  group(one_of(app.add_option("--precision", o.precision, "arithmetic"), {"auto", "fp32", "bf16"}), "Machine")->default_str("auto");
  group(one_of(app.add_option("--device", o.device, "where to compute"), {"auto", "cpu", "cuda"}), "Machine")->default_str("auto");
  group(whole_number_or("all", app.add_option("--threads", o.threads, "threads (all: the cores this process may use)"), 1, 4096), "Machine")
      ->default_str("all");
}

}  // namespace finetune
