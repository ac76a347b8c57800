// tf_model.h5: HDF5 as Keras writes it.
#include "fuzz/targets/weights/weight_checks.h"
#include "unit/weights/hdf5_sums.h"
#include "weights/stored_weights.h"

namespace finetune::fuzz {
namespace {

void check_keras(std::string_view input) {
  const fs::path path = scratch_file("tf_model.h5", input);
  is_keras_file(path);
  check_weights(open_keras(path, {.base_prefix = "bert."}));
}

void mend_keras(const std::string& before, std::string& changed) {
  test::mend_sums(before, changed);
}

const Registration kKerasHdf5Target({.name = "keras_hdf5", .run = check_keras, .mend = mend_keras});

}  // namespace
}  // namespace finetune::fuzz
