// The yardstick of a build without oneDNN: its functions return nothing.
#include "bench/yardstick.h"

namespace finetune {

std::optional<std::string> onednn_version() {
  return std::nullopt;
}

std::optional<TimedArithmetic> time_onednn_product(Clock) {
  return std::nullopt;
}

}  // namespace finetune
