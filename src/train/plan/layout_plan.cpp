// Resolves the options of plan --world, and tries all divisors of the number of processes.
#include "train/plan/layout_plan.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "distributed/layout/layout.h"
#include "engine/engine.h"
#include "train/options/option_words.h"
#include "train/options/options.h"
#include "train/recipe/recipe.h"

namespace finetune {
namespace {

// Keeps all products in the formulas within 64 bits.
constexpr int64_t kMostStepTokens = int64_t{1} << 28;

// LAYERS,HIDDEN,HEADS,INNER[,VOCABULARY[,POSITIONS]] as JSON, so that the usual checks apply.
EncoderConfig config_from(const std::string& shape) {
  for (const char* name : {"tiny", "minilm", "base", "large"}) {
    if (shape == name) return named_shape(shape);
  }
  constexpr std::string_view names[] = {"num_hidden_layers",   "hidden_size",
                                        "num_attention_heads", "intermediate_size",
                                        "vocab_size",          "max_position_embeddings"};
  const std::vector<std::string_view> words = split(shape, ',');
  std::vector<std::string> members;
  for (size_t i = 0; i < words.size(); ++i) {
    const auto number = parse_int(trim(words[i]));
    if (!number || *number < 1 || words.size() < 4 || words.size() > std::size(names)) {
      throw usage_error("--shape ", in_quotes(shape),
                        ": must be tiny, minilm, base, large or "
                        "LAYERS,HIDDEN,HEADS,INNER[,VOCABULARY[,POSITIONS]]");
    }
    members.push_back(concat("\"", names[i], "\":", *number));
  }
  try {
    return parse_config("{" + join(members, ",") + "}", "--shape " + shape);
  } catch (const Error& error) {
    throw Error(ExitCode::usage, error.what());
  }
}

EncoderConfig config_of(const TrainOptions& train, const FormulaOptions& formula) {
  if (!train.model.empty() && !formula.shape.empty()) {
    throw usage_error("--model and --shape exclude each other");
  }
  if (!train.model.empty()) return open_model_config(train.model, false).config;
  if (formula.shape.empty()) throw usage_error("--world needs --shape or --model");
  return config_from(formula.shape);
}

Rates rates_of(const FormulaOptions& o) {
  constexpr double giga = 1e9, micro = 1e-6;
  return {.flops = o.flops * 1e12,
          .layer_latency = o.layer_latency * micro,
          .memory_bandwidth = o.memory_bandwidth * giga,
          .link_bandwidth = o.link_bandwidth * giga,
          .link_latency = o.link_latency * micro,
          .host_bandwidth = o.host_bandwidth * giga,
          .host_latency = o.host_latency * micro,
          .offload_bandwidth = o.offload_bandwidth * giga};
}

void check(const TrainOptions& train, const FormulaOptions& formula) {
  validate_pipeline(train);
  validate_offload(train, true);
  validate_values(train);
  for (const FormulaOption& option : formula_options()) {
    const std::string fault = fault_of_value(option.info, option.value_in(formula), true);
    if (!fault.empty()) throw usage_error("--", option.info.name, " ", fault);
  }
  if (formula.hosts > *formula.world) {
    throw usage_error("--hosts ", formula.hosts, " are more than the ", *formula.world,
                      " processes of --world");
  }
}

// Forecasts layouts: holds everything but the layout itself.
class Planner {
 public:
  Planner(const TrainOptions& train, const FormulaOptions& formula)
      : train_(train),
        world_(*formula.world),
        batch_size_(train.batch_size.value_or(*recipe_hf().batch_size)) {
    check(train, formula);
    config_ = config_of(train, formula);
    const TaskKind task = task_named(train.task).value_or(TaskKind::classification);
    head_ = {traits_of(task).head, task == TaskKind::mlm ? config_.vocab_size : 2};
    kind_ = parse_pipeline_kind(train.pipeline_schedule);
    device_memory_ = parse_size(formula.device_memory, "--device-memory");
    rates_ = rates_of(formula);
    length_ = formula.length.value_or(
        train.max_length.value_or(std::min<int64_t>(512, config_.max_length())));
    if (length_ > config_.max_length()) {
      throw usage_error("--length ", length_, " is more than the model's ", config_.max_length(),
                        " positions");
    }
    if (batch_size_ * length_ > kMostStepTokens) {
      throw usage_error("--batch-size ", batch_size_, " times --length ", length_, " is ",
                        batch_size_ * length_, " tokens; ", kMostStepTokens, " are the most");
    }
    for (int64_t host = 0; host < formula.hosts; ++host) {
      first_rank_.push_back(int(part(world_, formula.hosts, host).begin));
    }
    first_rank_.push_back(int(world_));
  }

  LayoutPlan plan() const {
    LayoutPlan plan;
    plan.parameters = ParameterTable(config_, head_).count();
    plan.device_memory = device_memory_;
    plan.rates = rates_;
    if (train_.tp || train_.pp) {
      const int64_t tp = train_.tp.value_or(1);
      const Layout asked(world_, train_.pp.value_or(1), tp, parse_placement(train_.placement));
      check_tensor_shards(train_.tensor_shards.value_or(tp), tp, config_.num_attention_heads,
                          config_.intermediate_size);
      plan.chosen = forecast(asked);
      require_own_weights(plan.chosen.run.split, config_);
      return plan;
    }
    plan.all = all();
    plan.chosen = plan.all.front();
    return plan;
  }

 private:
  std::vector<LayoutForecast> all() const {
    std::vector<LayoutForecast> found;
    for (int64_t tp = 1; tp <= world_; ++tp) {
      const int64_t shards = train_.tensor_shards.value_or(tp);
      if (world_ % tp != 0 || shards % tp != 0 || config_.num_attention_heads % shards != 0 ||
          config_.intermediate_size % shards != 0) {
        continue;
      }
      for (int64_t pp = 1; pp <= world_ / tp && pp * chunks(pp) <= layers(); ++pp) {
        if (world_ / tp % pp != 0 || !has_own_weights(split_of(pp), config_)) continue;
        found.push_back(forecast(Layout(world_, pp, tp, parse_placement(train_.placement))));
      }
    }
    if (found.empty()) {
      throw usage_error("--tensor-shards ", train_.tensor_shards.value_or(1),
                        " cannot be: the model has ", config_.num_attention_heads,
                        " attention heads and ", config_.intermediate_size,
                        " columns of the feed-forward part");
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const LayoutForecast& a, const LayoutForecast& b) {
                       if (a.fits != b.fits) return a.fits;
                       if (!a.fits) return a.most().total() < b.most().total();
                       return a.step.total() < b.step.total();
                     });
    return found;
  }

  int64_t layers() const { return config_.num_hidden_layers; }
  int64_t chunks(int64_t pp) const {
    return chunks_of(kind_, int(pp), int(train_.chunks.value_or(kDefaultChunks)));
  }

  StageSplit split_of(int64_t pp) const {
    return split_stages(train_.stages, int(pp), int(chunks(pp)),
                        layer_costs(config_, head_, length_));
  }

  LayoutForecast forecast(const Layout& layout) const {
    LayoutForecast out;
    LayoutRun& run = out.run;
    run.config = config_;
    run.head = head_;
    run.layout = layout;
    run.split = split_of(layout.pp());
    run.schedule = kind_;
    run.first_rank = first_rank_;
    run.tensor_shards = train_.tensor_shards.value_or(layout.tp());
    run.virtual_shards = train_.virtual_shards.value_or(layout.dp());
    run.batch_size = batch_size_;
    run.length = length_;
    // By default the device's fastest type.
    run.compute = train_.precision == "fp32" ? DType::f32 : DType::bf16;
    run.recompute = train_.recompute;
    run.horizon = train_.offload_activations.value_or(0);
    cut_into_micro_batches(run);
    for (int s = 0; s < layout.pp(); ++s) {
      out.stages.push_back(stage_memory(run, s));
      if (out.stages.back().total() > out.most().total()) out.largest = s;
    }
    // Leaves the driver what usable_device_memory() leaves it (device_forecast.h).
    out.fits = out.most().total() <= device_memory_ - device_memory_ / 256;
    out.step = step_forecast(run, rates_);
    return out;
  }

  // The micro-batches of the largest virtual shard.
  void cut_into_micro_batches(LayoutRun& run) const {
    const int64_t samples = divided_up(run.batch_size, run.virtual_shards);
    std::optional<int64_t> count = train_.micro_batches;
    if (!count && !train_.micro_batch_tokens && run.layout.pp() > 1) {
      count = default_micro_batches(run.layout, run.virtual_shards);
    }
    int64_t sequences = 0;
    if (count) {
      run.micro_batches = std::min(*count, samples);
      sequences = divided_up(samples, run.micro_batches);
    } else {
      const int64_t tokens = train_.micro_batch_tokens.value_or(
          auto_micro_batch_tokens(config_, length_, device_memory_));
      sequences = std::clamp<int64_t>(tokens / length_, 1, samples);
      run.micro_batches = divided_up(samples, sequences);
    }
    run.micro_batch_tokens = sequences * length_;
  }

  const TrainOptions& train_;
  int64_t world_;
  const int64_t batch_size_;
  EncoderConfig config_;
  Head head_;
  PipelineKind kind_;
  int64_t device_memory_ = 0, length_ = 0;
  Rates rates_;
  std::vector<int> first_rank_;
};

}  // namespace

LayoutPlan plan_layout(const TrainOptions& train, const FormulaOptions& formula) {
  FINETUNE_CHECK(formula.world);
  return Planner(train, formula).plan();
}

int64_t parse_size(std::string_view text, std::string_view option) {
  constexpr std::string_view kUnits = "KMGT";
  std::string_view rest = trim(text);
  double unit = 1000, factor = 1;
  if (rest.ends_with("iB")) {
    unit = 1024;
    rest.remove_suffix(2);
  } else if (rest.ends_with("B")) {
    rest.remove_suffix(1);
  }
  const size_t power = rest.empty() ? kUnits.npos : kUnits.find(rest.back());
  const auto number =
      power == kUnits.npos ? std::nullopt : parse_double(rest.substr(0, rest.size() - 1));
  if (number) factor = std::pow(unit, double(power + 1));
  if (!number || !(*number * factor >= 1) || *number * factor > 1e18) {
    throw usage_error(option, " ", in_quotes(text), ": must be a size such as 40G, 1.5T or 24GiB");
  }
  return int64_t(*number * factor);
}

void refuse_without_world(const FormulaOptions& formula) {
  const FormulaOptions defaults;
  for (const FormulaOption& option : formula_options()) {
    const OptionValue value = option.value_in(formula);
    if (value == option.value_in(defaults)) continue;
    throw usage_error("--", option.info.name, " ", in_quotes(text_of(value)),
                      " is for forecasts by formula: give --world, the number of processes");
  }
}

}  // namespace finetune
