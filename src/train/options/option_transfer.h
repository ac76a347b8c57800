// Options and names from one process to another.
#pragma once

#include <string>
#include <vector>

#include "train/options/train_options.h"

namespace finetune {

std::string options_to_text(const TrainOptions& options);
TrainOptions options_from_text(const std::string& text);

// The same of names: what is not UTF-8 in them is replaced.
std::string names_to_text(const std::vector<std::string>& names);
std::vector<std::string> names_from_text(const std::string& text);

}  // namespace finetune
