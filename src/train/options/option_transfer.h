// Options from one process to another.
#pragma once

#include <string>

#include "train/options/options.h"

namespace finetune {

std::string options_to_text(const TrainOptions& options);
TrainOptions options_from_text(const std::string& text);

}  // namespace finetune
