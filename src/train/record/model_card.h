// The README.md of an exported model, in the form that the Hugging Face hub reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/task.h"
#include "train/options/train_options.h"

namespace finetune {

struct ModelCard {
  TaskKind task;
  std::string model_type;           // "bert"
  std::filesystem::path base;       // the directory of the pretrained model
  TrainOptions given;               // as the command needs them to repeat the run
  std::vector<std::string> labels;  // in order of id; may be empty
  int64_t max_length = 0;           // tokens
  int64_t train_rows = 0, eval_rows = 0;
  std::string date;  // 2026-11-27T08:55:00Z
  std::string data_sha256;
  std::string weights_sha256;    // of model.safetensors
  Metrics metrics;               // of the run
  bool pools_by_mean = false;    // with --recipe quick: the last layer pools
  bool is_best_of_many = false;  // the weights are those of the best of several evaluations
};

// Front matter in YAML, then text in Markdown. Paths are shown without their directories, so that
// runs in different directories have the same card. Names in `card` may have any bytes.
std::string model_card(const ModelCard& card);

// The command that trains this model again: "finetune train --model NAME --train FILE ...", on
// several lines if it is long.
std::string command_of(const ModelCard& card);

}  // namespace finetune
