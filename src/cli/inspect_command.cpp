#include "cli/command.h"

namespace finetune {

void add_inspect_command(CLI::App&, int&) {}

}  // namespace finetune
