// bench layout's result as tables for people and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/layout/layout_bench.h"

namespace finetune {

nlohmann::ordered_json to_json(const LayoutBenchResult& result);
std::string to_text(const LayoutBenchResult& result);

}  // namespace finetune
