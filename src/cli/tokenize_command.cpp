#include "cli/command.h"

namespace finetune {

void add_tokenize_command(CLI::App&, int&) {}

}  // namespace finetune
