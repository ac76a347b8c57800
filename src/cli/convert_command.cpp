#include "cli/command.h"

namespace finetune {

void add_convert_command(CLI::App&, int&) {}

}  // namespace finetune
