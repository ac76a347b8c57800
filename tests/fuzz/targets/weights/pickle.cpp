// One pickle, and the tensors that it describes of storages of zeros.
#include "fuzz/target.h"
#include "weights/torch/torch_tensors.h"

namespace finetune::fuzz {
namespace {

constexpr size_t kStorage = 4096;

void check_pickle(std::string_view input) {
  Unpickler unpickler("pickle", input);
  const PickleValue& root = unpickler.run();
  require(unpickler.position() <= input.size(), "the pickle ends outside its bytes");
  const std::string storage(kStorage, '\0');
  const auto tensors =
      torch_tensors("pickle", root, [&](const PickleValue&) { return std::string_view(storage); });
  for (const StoredTensor& tensor : tensors) {
    const auto count = element_count(tensor.shape);
    require(count && uint64_t(*count) <= kStorage, "a tensor is larger than its storage");
    std::vector<float> values(size_t(*count), 1);
    copy_as_float(tensor, values.data());
    for (float value : values) require(value == 0, "a tensor lies outside its storage");
  }
}

// Four million operations at most, each of which may make a value.
const Registration kPickleTarget({.name = "pickle",
                                  .run = check_pickle,
                                  .memory = size_t{1} << 30});

}  // namespace
}  // namespace finetune::fuzz
