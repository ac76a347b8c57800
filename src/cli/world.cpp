// Connects the launched processes on first use and keeps the communicator.
#include "cli/world.h"

namespace finetune {

Communicator& world() {
  static const std::unique_ptr<Communicator> instance = make_communicator();
  return *instance;
}

}  // namespace finetune
