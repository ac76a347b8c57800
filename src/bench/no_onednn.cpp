// The yardstick where oneDNN is not built in: there is none.
#include "bench/yardstick.h"

namespace finetune {

std::optional<std::string> onednn_version() {
  return std::nullopt;
}

std::optional<TimedArithmetic> time_onednn_product(Clock) {
  return std::nullopt;
}

}  // namespace finetune
