// A layout's forecast for people and as JSON.
#pragma once

#include <string>

#include "train/plan/layout_plan.h"

namespace finetune {

std::string layout_text(const LayoutPlan& plan);
std::string layout_plan_json(const LayoutPlan& plan);  // one line

}  // namespace finetune
