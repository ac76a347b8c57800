// Names the outputs of a model's classifier, by its config.json and the rows of its weight.
#include "engine/model_outputs.h"

#include <algorithm>

#include "core/error.h"
#include "core/failure.h"
#include "core/text/counted.h"
#include "core/text/printable.h"
#include "model/head.h"

namespace finetune {

namespace {

// A source without tensors, for a model that has no weights.
class NoWeights final : public WeightSource {
 public:
  explicit NoWeights(const std::filesystem::path& config) { path_ = config; }
  void require_own_bytes(const std::vector<const WeightInfo*>&) const override {}
  void read(const WeightInfo&, float*) const override { FINETUNE_CHECK(false); }
};

}  // namespace

bool names_foreign_head(const EncoderConfig& config) {
  constexpr std::string_view kForeign[] = {"ForTokenClassification", "ForMultipleChoice"};
  return std::any_of(std::begin(kForeign), std::end(kForeign),
                     [&](std::string_view suffix) { return config.class_name.ends_with(suffix); });
}

bool names_other_head(const EncoderConfig& config, HeadKind kind) {
  const Architecture& architecture = *config.architecture;
  const Role role = traits_of(kind).role;
  return std::any_of(kHeads.begin(), kHeads.end(), [&](const HeadTraits& other) {
    return other.role != role && config.class_name.ends_with(other.suffix) &&
           architecture.module_of(other.role) == architecture.module_of(role);
  });
}

bool is_other_head(const EncoderConfig& config, HeadKind kind) {
  return names_other_head(config, kind) || (kind != HeadKind::masked && names_foreign_head(config));
}

bool holds_head(const EncoderConfig& config, const WeightSource& source, HeadKind kind) {
  if (is_other_head(config, kind)) return false;
  return source.find(config.architecture->module_of(traits_of(kind).role) + ".weight") != nullptr;
}

void name_outputs(EncoderConfig& config, const WeightSource& source) {
  const Role role = traits_of(HeadKind::sequence).role;
  if (names_other_head(config, HeadKind::sequence)) return;
  const WeightInfo* head = source.find(config.architecture->module_of(role) + ".weight");
  if (!head || head->shape.size() != 2 || !config.labels_fault.empty()) return;
  const int64_t rows = head->shape[0];
  if (rows < 1 || rows > kMostLabels) return;  // the check of shapes refuses it
  if (config.labels.empty()) config.labels = default_labels(rows);
  if (int64_t(config.labels.size()) == rows) return;
  config.labels_fault =
      concat(source.path().string(), ": tensor ", in_quotes(head->stored_name, 200), " has ",
             counted(size_t(rows), "row"), ", but config.json names ",
             counted(config.labels.size(), "label"));
  config.labels.clear();
}

std::unique_ptr<WeightSource> open_given_weights(const ModelFiles& model) {
  const ModelDirectory& directory = model.directory;
  if (directory.weights.empty()) return std::make_unique<NoWeights>(directory.config);
  return with_memory_advice(kModelAdvice, [&] {
    return open_weights(directory.weights, model.config.architecture->names);
  });
}

std::unique_ptr<WeightSource> open_weights_of(ModelFiles& model) {
  auto source = open_given_weights(model);
  name_outputs(model.config, *source);
  return source;
}

}  // namespace finetune
