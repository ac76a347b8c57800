// Options that a file has in place of the command line: --config, or those of a run that goes on.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace finetune {

// Arguments of `train`, `adapt` and `plan` with the values of a file added where they are not
// given: of --config, or, with --resume and without a model or data, of the config.toml in
// --output, which rank 0 alone reads. Collective where it does. Error(usage): a value or a name
// that is no option's, a directory without a run. Error(model): the run's file is damaged.
std::vector<std::string> with_config_file(std::vector<std::string> arguments, Communicator& comm);

}  // namespace finetune
