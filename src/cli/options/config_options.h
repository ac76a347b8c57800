// Options that come from a file: from --config, or from the run that --resume continues.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace finetune {

// Returns the arguments of `train`, `adapt` or `plan`, with a file's values for options that are
// not given. The file is --config or, with --resume and without a model or data, the config.toml in
// --output, which only rank 0 reads; the call is then collective. Error(usage): an unknown name, a
// wrong value, a directory without a run. Error(model): the run's file is damaged.
std::vector<std::string> with_config_file(std::vector<std::string> arguments, Communicator& comm);

}  // namespace finetune
