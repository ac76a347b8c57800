// finetune bench layout: its options.
#pragma once

#include "cli/parser.h"

namespace finetune {

void add_bench_layout(Subcommand bench);

}  // namespace finetune
