// Opens a fine-tuned model on rank 0 and loads it on every process.
#include "inference/fine_tuned_model.h"

#include <algorithm>
#include <utility>

#include "comm/agreement.h"
#include "comm/placement.h"
#include "core/error.h"
#include "core/log.h"
#include "core/phase_times.h"
#include "core/text/json_value.h"
#include "core/threads/parallel.h"
#include "distributed/layout/stage_split.h"
#include "distributed/rank0_values.h"
#include "distributed/reduce/tensor_sums.h"
#include "engine/model_outputs.h"
#include "engine/pretrained.h"
#include "inference/batch_dispatch.h"
#include "inference/equal_processes.h"
#include "tasks/registry.h"
#include "weights/weights.h"

namespace finetune {
namespace {

// Lists the file's tensors outside the encoder, by their stored names: one may be a head with an
// unknown name.
std::string tensors_outside(std::string_view base_prefix, const WeightSource& source) {
  constexpr size_t kNamesShown = 4;
  std::vector<std::string> names;
  for (const WeightInfo& tensor : source.tensors()) {
    if (!tensor.name.starts_with(base_prefix)) names.push_back(in_quotes(tensor.stored_name, 80));
  }
  std::sort(names.begin(), names.end());
  return join_some(names, kNamesShown);
}

TaskKind stored_task(const EncoderConfig& config, const WeightSource& source) {
  const JsonValue stored = JsonValue::parse(config.source_json);
  if (const auto name = stored["finetune"]["task"].as<std::string>()) {
    const auto kind = task_named(*name);
    if (kind && traits_of(*kind).answers) return *kind;
  }
  std::vector<std::string> heads;
  for (const TaskTraits& task : all_tasks()) {
    if (!task.answers) continue;
    const std::string head = task.head_weight(*config.architecture);
    if (heads.empty() || heads.back() != head) heads.push_back(head);
    if (holds_head(config, source, task.head)) return task.kind;
  }
  if (names_foreign_head(config)) {
    throw model_error(source.path().string(), ": config.json names ", in_quotes(config.class_name),
                      ", whose head is for a task that finetune does not have; fine-tune the model "
                      "first with finetune train");
  }
  if (!source.name_advice().empty()) {
    throw model_error(source.path().string(), ": ", source.name_advice());
  }
  const std::string others = tensors_outside(config.architecture->names.base_prefix, source);
  throw model_error(source.path().string(), ": the model has no trained head (",
                    heads.size() > 1 ? "neither " : "no ", join(heads, " nor "), ")",
                    others.empty() ? "; fine-tune it first with finetune train"
                                   : concat(", but it holds ", others,
                                            ": if that is its head, rename it to ", heads.front(),
                                            "; otherwise fine-tune the model with finetune train"));
}

}  // namespace

FineTuned open_fine_tuned(const InferenceOptions& options, const TakeGiven& take_given) {
  FineTuned out;
  out.early_backend = std::make_unique<EarlyBackend>(options.device, options.precision);
  out.model = open_model(options.model);
  out.kind = stored_task(out.model.config, *open_weights_of(out.model));
  if (out.kind == TaskKind::classification && !out.model.config.labels_fault.empty()) {
    throw model_error(out.model.config.labels_fault);
  }
  out.options = traits_of(out.kind).stored_options(out.model.config);
  take_given(out.kind, out.options);
  if (options.no_calibration) out.options.calibration = {};
  out.options.model_directory = out.model.directory.directory;
  out.options.uses_mix = !options.no_ngram_mix && !options.no_calibration;
  // Only the mix reads columns besides the text.
  if (!out.options.uses_mix || !out.options.mix) out.options.leave_out_side_columns();
  return out;
}

Layout layout_of(const InferenceOptions& options, int processes) {
  if (options.stages != "auto" && !options.pp) {
    throw usage_error("--stages ", in_quotes(options.stages), " needs --pp, the number of stages");
  }
  const int64_t tp = options.tp.value_or(1);
  check_tensor_shards(tensor_shards_of(options), tp);
  return Layout(processes, options.pp.value_or(1), tp, parse_placement(options.placement));
}

int64_t tensor_shards_of(const InferenceOptions& options) {
  return options.tensor_shards.value_or(options.tp.value_or(1));
}

namespace {

struct Loading {
  Head head;
  int64_t max_length = 0;
};

// The split of layers over stages does not change a bit of the results.
StageSplit split_of(const InferenceOptions& options, const EncoderConfig& config, Loading loading,
                    const Layout& layout) {
  check_tensor_shards(tensor_shards_of(options), layout.tp(), config.num_attention_heads,
                      config.intermediate_size);
  return split_stages(options.stages, layout.pp(), 1,
                      layer_costs(config, loading.head, loading.max_length));
}

std::vector<std::string> describe(const LayoutGroups& groups, const StageSplit& split,
                                  int64_t tensor_shards) {
  const Layout& layout = groups.layout();
  if (layout.dp() == layout.world()) return {};
  std::string line = concat("layout ", letters_of(layout.placement()), ": ", layout.world(),
                            " processes = ", layout.dp());
  if (layout.pp() > 1) {
    std::vector<std::string> layers;
    for (int stage = 0; stage < split.stages(); ++stage) {
      layers.push_back(concat(split.layers(stage)));
    }
    line += concat(" x ", layout.pp(), " stages of ", join(layers, ", "), " layers");
  }
  if (layout.tp() > 1) {
    line += concat(" x ", layout.tp(), " tensor ranks; --tensor-shards ", tensor_shards);
  }
  std::vector<std::string> lines = {std::move(line)};
  const std::string warning = network_warning(layout, first_ranks(groups.world()));
  if (!warning.empty()) lines.push_back("warning: " + warning);
  return lines;
}

// Whether this process reads weights: one of the host's processes with the same part does.
bool reads(const LayoutGroups& groups) {
  return groups.data().local_rank() == 0;
}

// Returns null if each process is a whole replica: replicas exchange no activations.
std::unique_ptr<LayoutPeers> connect(Backend& backend, const LayoutGroups& groups, double timeout) {
  if (groups.layout().dp() == groups.layout().world()) return nullptr;
  return std::make_unique<LayoutPeers>(backend, groups, timeout);
}

std::unique_ptr<Backend> backend_of(FineTuned& model, const std::string& device, int64_t threads,
                                    const std::string& precision, int local_rank) {
  if (const auto early = std::move(model.early_backend)) {
    if (std::unique_ptr<Backend> made = early->take(device, precision)) {
      set_threads(int(threads));
      return made;
    }
  }
  return make_backend(device, threads, precision, local_rank);
}

// Loads the model on every process, once rank 0 has broadcast what to load.
void load(FineTuned& model, const InferenceOptions& options, Loading loading) {
  const LayoutGroups& groups = *model.groups;
  Communicator& comm = groups.world();
  comm.note("loading weights", -1);
  comm.set_patient(false);
  require_equal_configs(comm, model.model.config);
  StageSplit split;
  agree_on_errors(comm,
                  [&] { split = split_of(options, model.model.config, loading, groups.layout()); });
  const int64_t shards = tensor_shards_of(options);
  model.layout = describe(groups, split, shards);
  std::unique_ptr<Backend> backend;
  std::string unused_gpu;
  if (model.early_backend) model.early_backend->wait();
  const std::string device = agreed_device(comm, options.device, unused_gpu);
  if (!unused_gpu.empty() && comm.rank() == 0) log(unused_gpu);
  const std::string precision = agreed_precision(comm, device, options.precision);
  const int64_t threads = options.threads > 0 ? options.threads : cores_for_process(comm);
  agree_on_errors(
      comm, [&] { backend = backend_of(model, device, threads, precision, comm.local_rank()); });
  if (comm.rank() == 0) phase_ended("device ready");
  std::unique_ptr<WeightSource> source;
  const ParameterTable whole(model.model.config, loading.head);
  agree_on_errors(comm, [&] {
    if (!reads(groups)) return;
    source = open_weights(model.model.directory.weights, model.model.config.architecture->names);
    check_pretrained(whole, *source, HeadPolicy::require);
  });
  require_equal_weight_files(groups, source.get());
  // Rank 0's value holds for all processes, since it dispatches micro-batches of this size.
  model.micro_batch_tokens =
      evaluation_tokens(*backend, model.model.config,
                        auto_micro_batch_tokens(model.model.config, loading.max_length,
                                                least_device_bytes(comm, *backend)),
                        shards);
  comm.broadcast(&model.micro_batch_tokens, sizeof model.micro_batch_tokens, 0);
  // Destroyed before the backend, even after the backend has moved to the engine.
  std::unique_ptr<LayoutPeers> peers = connect(*backend, groups, options.comm_timeout);
  GroupPeers* const stages = peers ? peers->along(Axis::pipeline) : nullptr;
  GroupPeers* const ranks = peers ? peers->along(Axis::tensor) : nullptr;
  if (!model.layout.empty() && !backend->uses_host_memory()) {
    model.layout.push_back(
        concat("what stages and tensor ranks exchange goes ", route_of(peers.get())));
  }
  if (groups.layout().tp() > 1) {
    const BatchSize most =
        reserved_size(*backend, {model.micro_batch_tokens, model.micro_batch_tokens});
    model.tensor_sum = make_tensor_sum(*backend, groups.tensor(), ranks, shards,
                                       most.tokens * model.model.config.hidden_size);
  }
  model.engine =
      std::make_unique<Engine>(std::move(backend), model.model.config, loading.head, groups.data(),
                               part_of(split, groups.layout(), shards, comm.rank()),
                               model.tensor_sum.get(), WeightUse::inference);
  model.peers = std::move(peers);
  agree_on_errors(comm, [&] {
    if (!reads(groups)) return;
    model.engine->set_weights([&](float* arena) {
      const PretrainedReport report =
          load_pretrained(whole, model.engine->table(), *source,
                          model.model.config.initializer_range, 0, HeadPolicy::require, arena);
      if (const std::string remark = source->remark(); !remark.empty()) log(remark);
      if (!report.warning.empty()) log(report.warning);
      if (comm.rank() == 0) phase_ended("weights read");
    });
  });
  if (options.sum_weights && comm.rank() == 0) {
    model.weights_sum = std::make_unique<WeightsSum>(whole, std::move(source));
  }
  source.reset();
  model.engine->share_weights(groups.data());
  // A micro-batch never has more sequences than tokens, so room for more is not needed.
  model.engine->set_evaluation_sequences(
      std::min(options.batch_size.value_or(0), model.micro_batch_tokens));
  model.engine->reserve({}, {model.micro_batch_tokens, model.engine->evaluation_sequences()});
  model.stages = std::make_unique<ReplicaStages>(*model.engine, groups, stages);
  if (comm.rank() == 0) phase_ended("weights in place");
}

}  // namespace

void begin_inference(Communicator& comm, const InferenceOptions& options, std::string_view given,
                     const std::function<void()>& open) {
  if (comm.rank() == 0) phase_ended("program started");
  comm.set_timeout(options.comm_timeout);
  agree_on_errors(comm, [&] { layout_of(options, comm.size()); });
  require_equal_processes(comm, given);
  agree_on_errors(comm, [&] {
    if (comm.rank() == 0) open();
  });
  if (comm.rank() == 0) phase_ended("model's files and data opened");
}

void load_fine_tuned(FineTuned& model, const InferenceOptions& options, Head head,
                     int64_t max_length, Communicator& comm) {
  Loading loading{head, max_length};
  comm.broadcast(&loading, sizeof loading, 0);
  model.groups = std::make_unique<LayoutGroups>(comm, layout_of(options, comm.size()));
  agree_on_errors(comm, [] {});  // the other processes open the model in this step
  load(model, options, loading);
}

// All processes close their GPU connections now, since rank 0 still has results to write.
void end_inference(FineTuned& model) {
  const Backend& backend = model.engine->backend();
  if (!backend.uses_host_memory() && model.groups->world().rank() == 0) {
    phase_ended(concat("all computed with ", backend.device_memory().peak >> 20,
                       " MiB of the GPU's memory"));
  }
  model.stages.reset();
  model.peers.reset();
}

void serve_inference(const InferenceOptions& options, Communicator& comm) {
  comm.note("waiting for the data", -1);
  Loading loading;
  comm.broadcast(&loading, sizeof loading, 0);
  FineTuned model;
  model.groups = std::make_unique<LayoutGroups>(comm, layout_of(options, comm.size()));
  agree_on_errors(comm,
                  [&] { model.model = open_model_config(options.model, reads(*model.groups)); });
  load(model, options, loading);
  BatchDispatcher(*model.engine, *model.stages).serve(BatchDispatcher::Rank0::reads_input);
  end_inference(model);
  comm.set_patient(true);  // rank 0 writes its results
}

}  // namespace finetune
