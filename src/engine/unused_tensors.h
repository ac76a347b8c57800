// Tensors of a weight file that a model does not use: known ones and unknown ones.
#pragma once

#include <string>
#include <vector>

#include "model/architecture.h"
#include "weights/weights.h"

namespace finetune {

// Lists the tensors' stored names in the file's order.
struct UnusedTensors {
  // Poolers and heads of other tasks, pre-training heads, buffers of positions and types, optimizer
  // slots. Hugging Face skips them without a warning when it loads another class.
  std::vector<std::string> known;
  // All others, for example layers beyond the config's, adapters that were not merged, misspelt
  // names. The file may then be another model than the config says.
  std::vector<std::string> unknown;
};

// `used`: the architecture's names of the tensors that are read.
UnusedTensors find_unused(const Architecture& architecture, const WeightSource& source,
                          const std::vector<std::string>& used);

// "3 other tensors (a, b, c)" with the first few names, for people: at most some 300 bytes.
std::string some_tensors(const std::vector<std::string>& stored_names);

// One line for the log about unknown tensors; empty where there are none.
std::string unknown_tensors_warning(const WeightSource& source, const UnusedTensors& unused);

}  // namespace finetune
