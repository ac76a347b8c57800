// bench layout's result as tables for people and as JSON.
#pragma once

#include <string>

#include "bench/layout/layout_bench.h"
#include "core/text/json_value.h"

namespace finetune {

JsonObject to_json(const LayoutBenchResult& result);
std::string to_text(const LayoutBenchResult& result);

}  // namespace finetune
