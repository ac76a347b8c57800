// pytorch_model.bin as pickles one after the other.
#include "fuzz/targets/weights/weight_checks.h"
#include "weights/stored_weights.h"

namespace finetune::fuzz {
namespace {

void check_torch_legacy(std::string_view input) {
  check_weights(
      open_torch_legacy(scratch_file("pytorch_model.bin", input), {.base_prefix = "bert."}));
}

const Registration kTorchLegacyTarget({.name = "torch_legacy", .run = check_torch_legacy});

}  // namespace
}  // namespace finetune::fuzz
