// finetune convert: converts a BERT of any format to a Hugging Face directory with safetensors.
#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/options/option_binding.h"
#include "cli/output/sentence_model.h"
#include "cli/standard_output.h"
#include "cli/usage.h"
#include "core/files/files.h"
#include "core/files/output_directory.h"
#include "core/files/path_advice.h"
#include "core/log.h"
#include "core/sha256.h"
#include "core/text/json_value.h"
#include "core/text/printable.h"
#include "engine/export_model.h"
#include "engine/model_outputs.h"
#include "engine/unused_tensors.h"
#include "model/config.h"
#include "model/head.h"
#include "model/parameters.h"
#include "tasks/model_files.h"
#include "train/record/card_lines.h"
#include "train/run/run_directory.h"
#include "weights/model_directory.h"
#include "weights/stored_tensor.h"
#include "weights/weights.h"

namespace finetune {
namespace {

constexpr const char* kConvertExamples =
    R"(Reads model.safetensors or pytorch_model.bin (also sharded), tf_model.h5 or a TensorFlow 1
checkpoint; nothing in the files is executed. Writes config.json, model.safetensors and copies of
the tokenizer's files, all at once: a failure leaves what was in --output. Encoder, pooler and task
heads are kept, and the head for masked words where there are neither.

Examples:
  finetune convert --model bert-base-uncased --output bert-base-safetensors
  finetune convert --model uncased_L-12_H-768_A-12 --output bert --dtype bf16
  finetune convert --model runs/a --to sentence-transformers --output runs/a-st
)";

constexpr std::string_view kHuggingFace = "transformers", kSentences = "sentence-transformers";

struct ConvertOptions {
  std::string model;
  std::string output;
  std::string dtype = "f32";
  std::string form = std::string(kHuggingFace);
  bool overwrite = false;
};

const OptionRow<ConvertOptions> kConvertRows[] = {
    {{.name = "model",
      .required = commands::all,
      .is_model = true,
      .help = "model directory, a weight file in it, or an id in the Hugging Face cache",
      .value = "DIR|FILE|ID"},
     &ConvertOptions::model},
    {{.name = "output", .required = commands::all, .help = "directory to write", .value = "DIR"},
     &ConvertOptions::output},
    {{.name = "dtype", .help = "type of the numbers written", .words = "f32|f16|bf16"},
     &ConvertOptions::dtype},
    {{.name = "to",
      .help = "the library that loads it; sentence-transformers: its encode() gives a classifier's "
              "logits",
      .words = "transformers|sentence-transformers"},
     &ConvertOptions::form},
    {{.name = "overwrite", .help = "replace a model that finetune wrote in --output"},
     &ConvertOptions::overwrite},
};

DType parse_dtype(const std::string& name) {
  if (name == "f16") return DType::f16;
  if (name == "bf16") return DType::bf16;
  return DType::f32;
}

// Refuses to replace a run or its model, which may be the work of weeks.
void refuse_runs(const fs::path& output) {
  const fs::path directory = without_trailing_separator(fs::absolute(output));
  for (const fs::path& place : {directory, directory.parent_path()}) {
    if (place != directory && directory.filename() != "model") continue;
    if (output_state(place) != OutputState::run) continue;
    throw usage_error("--output ", output.string(), ": ",
                      place == directory ? "holds" : "belongs to",
                      " a run, whose files would be replaced; choose another directory");
  }
}

// The tensors of a model that are written to the output, in memory.
class Model {
 public:
  // Every tensor of the encoder must exist in the config's shape. Pooler and heads are optional.
  Model(const EncoderConfig& config, const WeightSource& source) : source_(source) {
    const Architecture& architecture = *config.architecture;
    const std::string answers_head = architecture.module_of(traits_of(HeadKind::token).role);
    // Or a head for tokens or choices, which is kept as it is.
    const WeightInfo* classifier =
        names_other_head(config, HeadKind::sequence)
            ? nullptr
            : source.find(architecture.module_of(traits_of(HeadKind::sequence).role) + ".weight");
    // If both heads have the same name, the file holds only one.
    const bool one_name =
        architecture.module_of(traits_of(HeadKind::sequence).role) == answers_head;
    const bool has_answers =
        holds_head(config, source, HeadKind::token) && !(one_name && classifier);
    const WeightInfo* answers = has_answers ? source.find(answers_head + ".weight") : nullptr;
    labels_ = classifier ? outputs_of(config, *classifier) : 0;
    const bool has_task_head = classifier || answers;
    const ParameterTable masked(config, Head{HeadKind::masked, config.vocab_size});
    // A pretraining file has both; its pooler is kept, because classification starts from it.
    const bool has_masked = !has_task_head && has_head_of(masked) && !has_own_pooler(architecture);
    if (has_masked) {
      for (const Parameter& parameter : masked.parameters()) add(parameter.name, parameter.shape);
    }
    ParameterTable table(config, Head{HeadKind::sequence, classifier ? labels_ : 1});
    for (const Parameter& parameter : table.parameters()) {
      if (has_masked) break;
      // Without a task's head, the written class has at most a pretrained pooler.
      const bool is_wanted =
          classifier || !parameter.head ||
          (architecture.pretrained_pooler && (answers || !is_of_masked_head(architecture)));
      if (parameter.role == Role::sequence_head && !classifier) continue;
      if (is_wanted && (!parameter.head || has_some_of(parameter.name))) {
        add(parameter.name, parameter.shape);
      }
    }
    if (answers) {
      const int64_t outputs = outputs_of(config, *answers);
      add(answers_head + ".weight", {outputs, config.hidden_size});
      add(answers_head + ".bias", {outputs});
    }
    if (!has_task_head && !has_masked) add_unread_pooler(config);
    read();
    std::vector<std::string_view> suffixes = {"Model"};
    if (has_masked) suffixes = {traits_of(HeadKind::masked).suffix};
    if (answers) suffixes = {traits_of(HeadKind::token).suffix};
    if (classifier) {
      suffixes = {traits_of(HeadKind::sequence).suffix, "ForTokenClassification",
                  "ForMultipleChoice"};
    }
    for (std::string_view suffix : suffixes) {
      architectures_.push_back(concat(architecture.class_prefix, suffix));
    }
  }

  const std::vector<WeightView>& views() const { return views_; }
  // Warns of tensors that are not written, except pretraining heads; empty if there are none.
  std::string warning(const Architecture& architecture) const {
    std::vector<std::string> used;
    for (const WeightView& view : views_) used.push_back(view.name);
    return unknown_tensors_warning(source_, find_unused(architecture, source_, used));
  }
  // Hugging Face's classes with these tensors, the usual one first.
  const std::vector<std::string>& architectures() const { return architectures_; }
  int64_t labels() const { return labels_; }  // 0: no classifier

 private:
  // Whether the file has a tensor of this optional module. All its tensors are then required.
  bool has_some_of(const std::string& name) const {
    const std::string module = name.substr(0, name.rfind('.'));
    return source_.find(module + ".weight") || source_.find(module + ".bias");
  }

  // In ModernBERT, classifiers and the head for masked words begin with the same layer.
  static bool is_of_masked_head(const Architecture& architecture) {
    return architecture.module_of(Role::pooler) == architecture.module_of(Role::masked_transform);
  }

  bool has_head_of(const ParameterTable& table) const {
    return std::all_of(
        table.parameters().begin(), table.parameters().end(),
        [&](const Parameter& each) { return !each.head || source_.find(each.name); });
  }

  bool has_own_pooler(const Architecture& architecture) const {
    return architecture.pretrained_pooler && !is_of_masked_head(architecture) &&
           source_.find(architecture.module_of(Role::pooler) + ".weight");
  }

  // In models like RoBERTa, the bare model has a pooler that no head reads.
  void add_unread_pooler(const EncoderConfig& config) {
    const std::string pooler = concat(config.architecture->names.base_prefix, "pooler.dense");
    if (config.architecture->pretrained_pooler || !source_.find(pooler + ".weight")) return;
    add(pooler + ".weight", {config.hidden_size, config.hidden_size});
    add(pooler + ".bias", {config.hidden_size});
  }

  // Returns the number of a head's outputs; its shape is (outputs, hidden).
  int64_t outputs_of(const EncoderConfig& config, const WeightInfo& head) const {
    const std::vector<int64_t>& shape = head.shape;
    const bool fits = shape.size() == 2 && shape[1] == config.hidden_size && shape[0] > 0 &&
                      shape[0] <= kMostLabels;
    if (fits) return shape[0];
    throw model_error(source_.path().string(), ": tensor ", in_quotes(head.stored_name, 200),
                      " has shape ", shape_text(shape), ", a head for 1 to ", kMostLabels,
                      " labels and hidden_size ", config.hidden_size, " is expected");
  }

  void add(const std::string& name, const std::vector<int64_t>& shape) {
    wanted_.push_back(&checked_tensor(source_, name, shape));
    views_.push_back({name, shape, nullptr});
  }

  // Allocates memory only after checking that the file has bytes for all tensors.
  void read() {
    source_.require_own_bytes(wanted_);
    for (WeightView& view : views_) {
      size_t count = 1;
      for (int64_t dimension : view.shape) count *= size_t(dimension);
      values_.push_back(std::make_unique_for_overwrite<float[]>(count));
      read_tensor(source_, view.name, view.shape, values_.back().get());
      view.data = values_.back().get();
    }
  }

  const WeightSource& source_;
  std::vector<const WeightInfo*> wanted_;
  std::vector<std::unique_ptr<float[]>> values_;
  std::vector<WeightView> views_;
  std::vector<std::string> architectures_;
  int64_t labels_ = 0;
};

// Returns whether the config names one class, and that class has exactly the written heads.
bool names_one_of(const JsonValue& json, const std::vector<std::string>& architectures) {
  const auto named = json["architectures"].as<std::vector<std::string>>();
  return named && named->size() == 1 &&
         std::find(architectures.begin(), architectures.end(), named->front()) !=
             architectures.end();
}

// Whether id2label has names, and all are strings.
bool has_label_names(const JsonValue& json) {
  const JsonValue::Members& names = json["id2label"].members();
  return !names.empty() && std::all_of(names.begin(), names.end(), [](const auto& name) {
    return name.second.template as<std::string>().has_value();
  });
}

// Returns config.json of the output. It keeps unknown keys in their order, adds keys that Google's
// bert_config.json lacks, and names the model's class and the type of the stored numbers.
std::string converted_config(const EncoderConfig& config, const Model& model, DType dtype) {
  JsonValue json = JsonValue::parse(config.source_json);
  if (!json.contains("model_type")) json.set("model_type", config.architecture->model_type);
  add_keys_of_versions(*config.architecture, json);
  if (!names_one_of(json, model.architectures())) {
    json.set("architectures", JsonArray{model.architectures().front()});
  }
  if (model.labels() > 0 && config.labels_fault.empty() && !has_label_names(json)) {
    JsonObject id2label, label2id;
    for (size_t i = 0; i < config.labels.size(); ++i) {
      id2label.add(concat(i), config.labels[i]);
      label2id.add(config.labels[i], i);
    }
    json.set("id2label", std::move(id2label));
    json.set("label2id", std::move(label2id));
  }
  const char* key = json.contains("dtype") ? "dtype" : "torch_dtype";
  json.set(key, dtype == DType::f32 ? "float32" : dtype == DType::f16 ? "float16" : "bfloat16");
  return with_version(json.text());
}

// Writes a classifier for sentence-transformers to a new directory.
void write_sentence_directory(const ConvertOptions& options, const ModelDirectory& source,
                              const EncoderConfig& config, const Model& model,
                              const std::string& config_text) {
  DirectoryReplacement written(options.output, kExportedModel, false);
  written.fill([&] {
    try {
      for (const fs::path& file : find_tokenizer_files(source.directory)) {
        write_file(written.path() / file.filename(), read_text_file(file, ExitCode::model));
      }
      write_sentence_model(written.path(), config, config_text, model.views(),
                           parse_dtype(options.dtype));
    } catch (const Error&) {
      remove_sentence_modules(written.path());
      throw;
    }
  });
  written.commit();
}

void require_classifier(const ConvertOptions& options, const EncoderConfig& config,
                        const Model& model) {
  if (options.overwrite) {
    throw usage_error("--overwrite: --to ", kSentences, " writes a new directory; leave it out");
  }
  if (model.labels() == 0) {
    throw usage_error("--to ", kSentences, ": ", options.model,
                      " has no text classifier; give a model that finetune train wrote");
  }
  require_sentence_form(config);
}

// Copies the facts of a model that finetune trained, and its card with the sha256 of the new
// weights. If `card` is not empty, it is the user's own and is written instead.
void copy_model_facts(const fs::path& from, const fs::path& to, std::string card) {
  const auto is_there = [&](std::string_view name) {
    return kind_of(from / name, ExitCode::model) == FileKind::file;
  };
  const auto text_of = [&](std::string_view name) {
    return read_text_file(from / name, ExitCode::model);
  };
  if (is_there(kModelFactsFile)) {
    write_file(to / kModelFactsFile, text_of(kModelFactsFile));
    if (card.empty() && is_there(kModelCardFile)) {
      card = with_promise(text_of(kModelCardFile), "");  // it was made for other weights
      card = with_weights_sha256(card, sha256_of_file(to / "model.safetensors"));
    }
  }
  if (!card.empty()) write_file(to / kModelCardFile, card);
}

void write_directory(const ConvertOptions& options, const ModelDirectory& source,
                     const Model& model, std::string& config_text) {
  const fs::path output = options.output;
  const std::string card = card_of_user(output);
  DirectoryReplacement written(output, kExportedModel);
  written.fill([&] {
    write_safetensors(written.path() / "model.safetensors", model.views(),
                      parse_dtype(options.dtype));
    for (const fs::path& file : find_tokenizer_files(source.directory)) {
      write_file(written.path() / file.filename(), read_text_file(file, ExitCode::model));
    }
    copy_ngrams(config_text, source.directory, written.path());
    copy_drift(source.directory, written.path());
    copy_model_facts(source.directory, written.path(), card);
    write_file(written.path() / "config.json", config_text);
  });
  if (written.replaces()) check_replaceable(output, kExportedModel);  // it may have changed
  written.commit();
}

void convert(const ConvertOptions& options) {
  const fs::path output = options.output;
  require_directory_name("--output", options.output);
  const ModelDirectory source = find_model(options.model);
  std::error_code absent;
  if (fs::equivalent(source.directory, output, absent)) {
    throw usage_error("--output ", output.string(),
                      " is the model itself; choose another directory");
  }
  refuse_runs(output);
  check_output_directory(output, options.overwrite, kExportedModel);
  EncoderConfig config =
      parse_config(read_text_file(source.config, ExitCode::model), source.config);
  auto weights = open_weights(source.weights, config.architecture->names);
  name_outputs(config, *weights);
  const Model model(config, *weights);
  std::string config_text = converted_config(config, model, parse_dtype(options.dtype));
  if (options.form == kSentences) {
    require_classifier(options, config, model);
    write_sentence_directory(options, source, config, model, config_text);
  } else {
    write_directory(options, source, model, config_text);
  }
  open_console(false);
  if (const std::string remark = weights->remark(); !remark.empty()) log(remark);
  if (const std::string warning = model.warning(*config.architecture); !warning.empty()) {
    log(warning);
  }
  if (model.labels() > 0 && !config.labels_fault.empty()) {
    warn("the head is converted, but cannot be used: ", config.labels_fault);
  }
  write_lines(concat(printable((output / "model.safetensors").string()), ": ", model.views().size(),
                     " tensors as ", options.dtype, " from ", printable(source.weights.string()),
                     " (", weights->format(), ")\n"));
}

}  // namespace

void add_convert_command(Subcommand program, int&) {
  auto options = std::make_shared<ConvertOptions>();
  const Subcommand command = program.add_subcommand(
      "convert", "Convert weights to a Hugging Face directory with safetensors");
  add_options(command, kConvertRows, *options);
  command.footer(kConvertExamples);
  command.callback([options] { convert(*options); });
}

}  // namespace finetune
