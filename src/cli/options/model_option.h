// An option that names a model: an id in the Hugging Face cache becomes its snapshot's directory.
#pragma once

#include <string>

#include "cli/parser.h"
#include "weights/hub_cache.h"

namespace finetune {

inline Option names_model(Option option) {
  return option.transform([](std::string& given) {
    given = model_path(given);
    return std::string();
  });
}

}  // namespace finetune
