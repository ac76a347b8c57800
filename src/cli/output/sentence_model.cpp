// Writes modules.json, a directory for each module, and a card that says how to load them.
#include "cli/output/sentence_model.h"

#include <algorithm>

#include "core/error.h"
#include "core/files/files.h"
#include "core/text/json_value.h"
#include "core/text/text.h"
#include "engine/export_model.h"
#include "model/architecture.h"
#include "model/head.h"

namespace finetune {
namespace {

constexpr const char* kPooling = "1_Pooling";
constexpr const char* kDense = "2_Dense";
constexpr const char* kClassifier = "3_Dense";
constexpr const char* kIdentity = "torch.nn.modules.linear.Identity";

constexpr const char* kCard = R"(---
library_name: sentence-transformers
pipeline_tag: text-classification
---
<!-- written by finetune convert --to sentence-transformers -->

# A text classifier for sentence-transformers

```python
import json
from sentence_transformers import SentenceTransformer
model = SentenceTransformer("DIRECTORY")
names = json.load(open("DIRECTORY/config.json"))["id2label"]
print([names[str(i)] for i in model.encode(["a text"]).argmax(1)])
```

`encode` returns logits, one for each label; their softmax are probabilities. They are those of `finetune predict
--precision fp32` before calibration and without n-grams, which sentence-transformers cannot compute.

The last module is the classifier. `SentenceTransformer(modules=list(model)[:-1])` gives the features that it reads.
SetFit keeps its own classifier as a pickle, which finetune does not write. With SetFit, make it from the last module:

```python
import numpy
from setfit import SetFitModel
from sklearn.linear_model import LogisticRegression
head = LogisticRegression()
head.classes_ = numpy.array(list(names.values()))
head.coef_, head.intercept_ = (p.detach().double().numpy() for p in model[-1].linear.parameters())
setfit_model = SetFitModel(model_body=SentenceTransformer(modules=list(model)[:-1]), model_head=head)
```
)";

// Returns torch's class of the activation, or null if it has none.
const char* torch_class(Activation activation) {
  switch (activation) {
    case Activation::tanh:
      return "torch.nn.modules.activation.Tanh";
    case Activation::gelu:
      return "torch.nn.modules.activation.GELU";
    case Activation::relu:
      return "torch.nn.modules.activation.ReLU";
    default:
      return nullptr;
  }
}

void write_json(const fs::path& path, const JsonValue& json) {
  write_file(path, json.indented(2) + "\n");
}

// Whether the tensor is of this module of the head.
bool is_of(const WeightView& tensor, const std::string& module) {
  return tensor.name == module + ".weight" || tensor.name == module + ".bias";
}

void write_dense(const fs::path& directory, const std::string& module, const char* activation,
                 const std::vector<WeightView>& tensors, DType dtype) {
  std::vector<WeightView> own;
  for (const WeightView& tensor : tensors) {
    if (!is_of(tensor, module)) continue;
    own.push_back(tensor);
    own.back().name = "linear" + tensor.name.substr(module.size());
  }
  const auto weight = std::find_if(own.begin(), own.end(),
                                   [](const WeightView& view) { return view.shape.size() == 2; });
  FINETUNE_CHECK(own.size() == 2 && weight != own.end());
  finetune::create_directories(directory);
  write_json(directory / "config.json", JsonObject{{"in_features", weight->shape[1]},
                                                   {"out_features", weight->shape[0]},
                                                   {"bias", true},
                                                   {"activation_function", activation}});
  write_safetensors(directory / "model.safetensors", own, dtype);
}

// Returns the limit that finetune stored, or sentence-transformers' usual one; at most the model's.
int64_t max_length_of(const JsonValue& config, const EncoderConfig& encoder) {
  constexpr int64_t kUsual = 128;
  const auto own = config["finetune"]["max_length"].as<int64_t>();
  return std::min(own.value_or(kUsual), encoder.max_length());
}

}  // namespace

void require_sentence_form(const EncoderConfig& config) {
  const HeadBlock& head = config.head;
  if (!head.norm && !head.mean && head.dense_bias && torch_class(head.activation)) return;
  throw usage_error("--to sentence-transformers: it has no modules for the head of ",
                    config.architecture->class_prefix, "; leave out --to");
}

void write_sentence_model(const fs::path& directory, const EncoderConfig& config,
                          const std::string& config_json, const std::vector<WeightView>& tensors,
                          DType dtype) {
  const Architecture& architecture = *config.architecture;
  const std::string dense = architecture.module_of(Role::pooler),
                    classifier = architecture.module_of(traits_of(HeadKind::sequence).role);
  JsonValue json = JsonValue::parse(config_json);
  const int64_t max_length = max_length_of(json, config);
  json.set("architectures", JsonArray{concat(architecture.class_prefix, "Model")});
  json.erase("finetune");
  JsonArray modules;
  for (const auto& [path, type] : {std::pair("", "Transformer"),
                                   {kPooling, "Pooling"},
                                   {kDense, "Dense"},
                                   {kClassifier, "Dense"}}) {
    const size_t index = modules.items().size();
    modules.add(JsonObject{{"idx", index},
                           {"name", concat(index)},
                           {"path", path},
                           {"type", concat("sentence_transformers.models.", type)}});
  }
  std::vector<WeightView> encoder;
  for (const WeightView& tensor : tensors) {
    const bool is_bare_models = architecture.pretrained_pooler || !is_of(tensor, dense);
    if (is_bare_models && !is_of(tensor, classifier)) encoder.push_back(tensor);
  }
  write_dense(directory / kDense, dense, torch_class(config.head.activation), tensors, dtype);
  write_dense(directory / kClassifier, classifier, kIdentity, tensors, dtype);
  finetune::create_directories(directory / kPooling);
  write_json(directory / kPooling / "config.json",
             JsonObject{{"word_embedding_dimension", config.hidden_size},
                        {"pooling_mode_cls_token", true},
                        {"pooling_mode_mean_tokens", false},
                        {"pooling_mode_max_tokens", false},
                        {"pooling_mode_mean_sqrt_len_tokens", false}});
  write_safetensors(directory / "model.safetensors", encoder, dtype);
  write_json(directory / "sentence_bert_config.json",
             JsonObject{{"max_seq_length", max_length}, {"do_lower_case", false}});
  write_json(directory / "config_sentence_transformers.json",
             JsonObject{{"prompts", JsonObject()}, {"default_prompt_name", JsonValue()}});
  write_file(directory / kModelCardFile, kCard);
  write_json(directory / "modules.json", modules);
  write_file(directory / "config.json", with_version(json.text()));
}

void remove_sentence_modules(const fs::path& directory) {
  std::error_code error;
  for (const char* name : {kPooling, kDense, kClassifier}) fs::remove_all(directory / name, error);
}

}  // namespace finetune
