// Opens a fine-tuned model on rank 0 and loads it on every process.
#include "inference/fine_tuned_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "comm/agreement.h"
#include "comm/placement.h"
#include "core/error.h"
#include "distributed/rank0_values.h"
#include "engine/pretrained.h"
#include "inference/batch_dispatch.h"
#include "tasks/registry.h"
#include "weights/weights.h"

namespace finetune {
namespace {

TaskKind stored_task(const BertConfig& config, const WeightSource& source) {
  auto parsed = nlohmann::json::parse(config.source_json, nullptr, false);
  if (parsed.is_object() && parsed.contains("finetune") && parsed["finetune"].is_object()) {
    const auto& stored = parsed["finetune"];
    if (stored.contains("task") && stored["task"].is_string()) {
      if (auto kind = task_named(stored["task"].get<std::string>())) return *kind;
    }
  }
  std::vector<std::string> heads;
  for (const TaskTraits& task : all_tasks()) {
    heads.push_back(task.head_weight(*config.architecture));
    if (source.find(heads.back())) return task.kind;
  }
  throw model_error(source.path().string(), ": the model has no trained head (neither ",
                    join(heads, " nor "), "); fine-tune it first with finetune train");
}

// Options for the other task's data would be passed over without a word.
void require_options_of(TaskKind kind, const InferenceOptions& o) {
  const std::pair<const char*, bool> options[] = {
      {"text-column", o.text_columns.has_value()},
      {"text-pair-column", o.text_pair_column.has_value()},
      {"label-column", o.label_column.has_value()},
      {"doc-stride", o.doc_stride.has_value()},
      {"squad-version", o.squad_version.has_value()}};
  for (const auto& [name, given] : options) {
    if (given) require_option_of(kind, name, o.model);
  }
}

}  // namespace

void require_option_of(TaskKind kind, std::string_view option, const std::string& model) {
  if (task_of_option(option).value_or(kind) == kind) return;
  throw usage_error("--", option, ": ", model, " was trained for ", name_of(kind));
}

FineTuned open_fine_tuned(const InferenceOptions& options) {
  FineTuned out;
  out.model = open_model(options.model);
  out.kind = stored_task(
      out.model.config,
      *open_weights(out.model.directory.weights, out.model.config.architecture->base_prefix));
  require_options_of(out.kind, options);
  out.options = traits_of(out.kind).stored_options(out.model.config);
  if (options.text_columns) out.options.text_columns = *options.text_columns;
  if (options.text_pair_column) out.options.text_pair_column = *options.text_pair_column;
  if (options.label_column) out.options.label_column = *options.label_column;
  if (options.max_length) out.options.max_length = *options.max_length;
  if (options.doc_stride) out.options.doc_stride = *options.doc_stride;
  if (options.squad_version) {
    out.options.squad_version = int(parse_int(*options.squad_version).value_or(0));  // auto: 0
  }
  return out;
}

namespace {

struct Loading {
  Head head;
  int64_t max_length = 0;
};

// What every process does once rank 0 knows what to load.
void load(FineTuned& model, const InferenceOptions& options, Loading loading, Communicator& comm) {
  comm.note("loading weights", -1);
  std::unique_ptr<Backend> backend;
  const std::string precision = agreed_precision(comm, options.device, options.precision);
  const int64_t threads = options.threads > 0 ? options.threads : cores_for_process(comm);
  agree_on_errors(
      comm, [&] { backend = make_backend(options.device, threads, precision, comm.local_rank()); });
  std::unique_ptr<WeightSource> source;
  agree_on_errors(comm, [&] {
    if (comm.local_rank() > 0) return;
    source =
        open_weights(model.model.directory.weights, model.model.config.architecture->base_prefix);
    check_pretrained(ParameterTable(model.model.config, loading.head), *source,
                     HeadPolicy::require);
  });
  model.engine =
      std::make_unique<Engine>(std::move(backend), model.model.config, loading.head, comm);
  agree_on_errors(comm, [&] {
    if (comm.local_rank() > 0) return;
    model.engine->set_weights([&](float* arena) {
      load_pretrained(model.engine->table(), *source, model.model.config.initializer_range, 0,
                      HeadPolicy::require, arena);
    });
    source.reset();
  });
  model.engine->share_weights(comm);
  // As rank 0 dispatches them, whatever this process's processor is.
  const int64_t device_bytes = least_device_bytes(comm, model.engine->backend());
  model.micro_batch_tokens = evaluation_tokens(
      model.engine->backend(), model.model.config,
      auto_micro_batch_tokens(model.model.config, loading.max_length, device_bytes));
  comm.broadcast(&model.micro_batch_tokens, sizeof model.micro_batch_tokens, 0);
  // No micro-batch has more sequences than tokens: there is no need of room for them.
  model.engine->set_evaluation_sequences(std::min(options.batch_size, model.micro_batch_tokens));
  model.engine->reserve({}, {model.micro_batch_tokens, model.engine->evaluation_sequences()});
}

}  // namespace

void load_fine_tuned(FineTuned& model, const InferenceOptions& options, Head head,
                     int64_t max_length, Communicator& comm) {
  Loading loading{head, max_length};
  comm.broadcast(&loading, sizeof loading, 0);
  agree_on_errors(comm, [] {});  // the others open the model now
  load(model, options, loading, comm);
}

void serve_inference(const InferenceOptions& options, Communicator& comm) {
  comm.note("waiting for the data", -1);
  Loading loading;
  comm.broadcast(&loading, sizeof loading, 0);
  FineTuned model;
  agree_on_errors(comm,
                  [&] { model.model = open_model_config(options.model, comm.local_rank() == 0); });
  load(model, options, loading, comm);
  BatchDispatcher(*model.engine, comm).serve();
}

}  // namespace finetune
