// safetensors: reading what was written gives the same.
#include <cstring>

#include "fuzz/targets/weights/weight_checks.h"
#include "weights/stored_weights.h"

namespace finetune::fuzz {
namespace {

void check_safetensors(std::string_view input) {
  const auto source =
      open_safetensors(scratch_file("model.safetensors", input), {.base_prefix = "bert."});
  const std::vector<std::vector<float>> values = read_all(*source);
  std::vector<WeightView> views;
  for (size_t i = 0; i < values.size(); ++i) {
    const WeightInfo& info = source->tensors()[i];
    if (!info.shape.empty()) views.push_back({info.name, info.shape, values[i].data()});
  }
  if (views.empty()) return;
  const fs::path copy = scratch_directory() / "copy.safetensors";
  write_safetensors(copy, views, DType::f32);
  const auto again = open_safetensors(copy, {});
  for (const WeightInfo& info : again->tensors()) {
    const auto same = [&](const WeightView& view) { return view.name == info.stored_name; };
    const auto view = std::find_if(views.begin(), views.end(), same);
    require(view != views.end() && view->shape == info.shape, in_quotes(info.stored_name),
            " is not what was written");
    std::vector<float> found(size_t(*element_count(info.shape)));
    again->read(info, found.data());
    require(found.empty() || std::memcmp(found.data(), view->data, found.size() * 4) == 0,
            in_quotes(info.stored_name), " has other values than were written");
  }
}

const Registration kSafetensorsTarget({.name = "safetensors", .run = check_safetensors});

}  // namespace
}  // namespace finetune::fuzz
