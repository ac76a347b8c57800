// Options that evaluate and predict share.
#pragma once

#include <CLI/CLI.hpp>

#include "train/inference.h"

namespace finetune {

inline void bind_inference_options(CLI::App& app, InferenceOptions& o) {
  app.add_option("--model", o.model, "fine-tuned model: a run, its model/, or any such directory")
      ->required()->type_name("DIR");
  app.add_option("--text-column", o.text_columns, "columns of the text (default: as trained)")
      ->delimiter(',')->type_name("NAME[,NAME...]")->expected(1);
  app.add_option("--text-pair-column", o.text_pair_column, "column of the second text (default: as trained)");
  app.add_option("--max-length", o.max_length, "longest input in tokens (default: as trained)")
      ->check(CLI::PositiveNumber);
  app.add_option("--doc-stride", o.doc_stride, "qa: overlap of neighbouring windows (default: as trained)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--batch-size", o.batch_size, "most sequences computed at once")->check(CLI::PositiveNumber);
  app.add_option("--precision", o.precision, "arithmetic")->check(CLI::IsMember({"auto", "fp32", "bf16"}));
  app.add_option("--device", o.device, "where to compute")->check(CLI::IsMember({"auto", "cpu", "cuda"}));
  app.add_option("--threads", o.threads, "threads (default: all cores this process may use)")
      ->check(CLI::PositiveNumber);
}

}  // namespace finetune
