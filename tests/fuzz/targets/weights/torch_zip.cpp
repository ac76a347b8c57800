// pytorch_model.bin as a zip archive.
#include "fuzz/targets/weights/weight_checks.h"
#include "weights/stored_weights.h"

namespace finetune::fuzz {
namespace {

void check_torch_zip(std::string_view input) {
  check_weights(open_torch_zip(scratch_file("pytorch_model.bin", input), {.base_prefix = "bert."}));
}

const Registration kTorchZipTarget({.name = "torch_zip", .run = check_torch_zip});

}  // namespace
}  // namespace finetune::fuzz
