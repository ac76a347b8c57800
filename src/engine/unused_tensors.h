// Tensors of a weight file that a model does not use: those known to be of no use, and all others.
#pragma once

#include <string>
#include <vector>

#include "model/architecture.h"
#include "weights/weights.h"

namespace finetune {

// By their stored names, in the file's order.
struct UnusedTensors {
  // Poolers and heads of other tasks, pre-training heads, buffers of positions and types, optimizer
  // slots: what Hugging Face passes over without a warning in a checkpoint of another class.
  std::vector<std::string> known;
  // Such as layers beyond the config's, adapters that were not merged, misspelt names: with them
  // the file may be another model than the config says.
  std::vector<std::string> unknown;
};

// `used`: names in the architecture's terms, of tensors that are read.
UnusedTensors find_unused(const Architecture& architecture, const WeightSource& source,
                          const std::vector<std::string>& used);

// "3 other tensors (a, b, c)" with the first few names, for people: at most some 300 bytes.
std::string some_tensors(const std::vector<std::string>& stored_names);

// One line for the log about unknown tensors; empty where there are none.
std::string unknown_tensors_warning(const WeightSource& source, const UnusedTensors& unused);

}  // namespace finetune
