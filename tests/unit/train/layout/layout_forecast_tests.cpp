// Forecasts of layouts against tables of the program, worked examples and simulation.
#include <doctest/doctest.h>

#include "distributed/pipeline/pipeline_simulation.h"
#include "model/activations.h"
#include "model/parameters.h"
#include "train/plan/layout_forecast.h"

using namespace finetune;

namespace {

constexpr Head kToken{HeadKind::token, 2}, kSequence{HeadKind::sequence, 3};

EncoderConfig shape(int64_t layers, int64_t hidden, int64_t heads, int64_t inner) {
  EncoderConfig config;
  config.num_hidden_layers = layers;
  config.hidden_size = hidden;
  config.num_attention_heads = heads;
  config.intermediate_size = inner;
  return config;
}

struct Setting {
  int64_t world = 1, pp = 1, tp = 1, hosts = 1;
  int64_t micro_batches = 1, micro_batch_tokens = 512;
  bool bf16 = false, recompute = false;
  PipelineKind kind = PipelineKind::one_f_one_b;
  int chunks = 1;
};

LayoutRun run_of(const EncoderConfig& config, const Setting& s) {
  LayoutRun run;
  run.config = config;
  run.head = kToken;
  run.layout = Layout(s.world, s.pp, s.tp);
  run.length = 512;
  run.split = split_stages("auto", int(s.pp), s.chunks, layer_costs(config, kToken, run.length));
  run.schedule = s.kind;
  for (int64_t host = 0; host < s.hosts; ++host) {
    run.first_rank.push_back(int(part(s.world, s.hosts, host).begin));
  }
  run.first_rank.push_back(int(s.world));
  run.tensor_shards = s.tp;
  run.virtual_shards = run.layout.dp();
  run.micro_batches = s.micro_batches;
  run.micro_batch_tokens = s.micro_batch_tokens;
  run.batch_size = run.layout.dp() * s.micro_batches * s.micro_batch_tokens / run.length;
  run.compute = s.bf16 ? DType::bf16 : DType::f32;
  run.recompute = s.recompute;
  return run;
}

double gb(int64_t bytes) {
  return double(bytes) / 1e9;
}

}  // namespace

TEST_CASE("a stage's parameters are its table's, and stages add up") {
  for (const char* name : {"tiny", "minilm", "base", "large"}) {
    for (Head head : {kToken, kSequence}) {
      const EncoderConfig config = named_shape(name);
      const auto parameters = [&](const Setting& setting, int stage) {
        LayoutRun run = run_of(config, setting);
        run.head = head;
        return stage_memory(run, stage).parameters;
      };
      const int64_t whole = ParameterTable(config, head).count();
      CHECK(parameters({}, 0) == whole);
      const Setting pp2{.world = 2, .pp = 2};
      CHECK(parameters(pp2, 0) + parameters(pp2, 1) == whole);
      // Cut in two: matrices, and the biases of query, key, value and the inner layer.
      const int64_t h = config.hidden_size, inner = config.intermediate_size;
      const int64_t cut = 4 * h * h + 2 * h * inner + 3 * h + inner;
      CHECK(parameters({.world = 2, .tp = 2}, 0) == whole - config.num_hidden_layers * cut / 2);
    }
  }
}

TEST_CASE("shared layers and a position bias are counted as in the table") {
  for (const char* json :
       {R"({"model_type": "mpnet"})",
        R"({"model_type": "deberta-v2", "relative_attention": true, "pos_att_type": "c2p|p2c",
            "norm_rel_ebd": "layer_norm", "num_hidden_layers": 2, "conv_kernel_size": 3})",
        R"({"model_type": "albert", "num_hidden_groups": 3})",
        R"({"model_type": "albert", "num_hidden_layers": 4, "inner_group_num": 2})"}) {
    INFO(std::string(json));
    const EncoderConfig config = parse_config(json, "config.json");
    for (Head head : {kToken, kSequence}) {
      LayoutRun run = run_of(config, {});
      run.head = head;
      const int64_t whole = ParameterTable(config, head).count();
      CHECK(stage_memory(run, 0).parameters == whole);
      CHECK(stage_memory(run, 0).weights == 4 * whole);
      run.layout = Layout(2, 1, 2);
      run.tensor_shards = 2;
      const int64_t half = stage_memory(run, 0).parameters;
      CHECK(half > whole / 2);
      CHECK(half < whole);
    }
  }
}

TEST_CASE("one process's activations match its plan within a hundredth") {
  for (const char* name : {"base", "large"}) {
    for (bool bf16 : {false, true}) {
      for (bool recompute : {false, true}) {
        INFO(std::string(name));
        CAPTURE(bf16);
        CAPTURE(recompute);
        const EncoderConfig config = named_shape(name);
        Setting setting;
        setting.micro_batch_tokens = 2048;
        setting.bf16 = bf16;
        setting.recompute = recompute;
        const LayoutRun run = run_of(config, setting);
        const StageMemory memory = stage_memory(run, 0);
        const auto plan = ActivationPlan::training(config, kToken, ModelChunk::whole(config),
                                                   run.compute, 2048, 4, recompute);
        CHECK(double(memory.kept + memory.working) ==
              doctest::Approx(double(plan.floats * 4)).epsilon(0.01));
      }
    }
  }
}

TEST_CASE("the worked examples: BERT-base and BERT-large, 4096 tokens on two processes") {
  const EncoderConfig base = named_shape("base"), large = named_shape("large");
  auto total = [](const EncoderConfig& config, const Setting& setting) {
    return gb(stage_memory(run_of(config, setting), 0).total());
  };
  const Setting dp2{.world = 2, .micro_batch_tokens = 2048};
  const Setting tp2{.world = 2, .tp = 2, .micro_batch_tokens = 4096};
  const Setting pp2{.world = 2, .pp = 2, .micro_batches = 8, .micro_batch_tokens = 512};
  CHECK(total(base, dp2) == doctest::Approx(2.28).epsilon(0.01));
  CHECK(total(base, tp2) == doctest::Approx(2.37).epsilon(0.01));
  CHECK(total(base, pp2) == doctest::Approx(1.30).epsilon(0.01));
  const AxisBytes of_dp2 = axis_bytes(run_of(base, dp2), 0);
  CHECK(axis_bytes(run_of(base, tp2), 0).tensor == 4 * 12 * 2 / 2 * 4 * 4096 * 768);
  CHECK(axis_bytes(run_of(base, pp2), 0).boundary == 8 * 512 * 768 * 8);
  CHECK(axis_bytes(run_of(base, pp2), 0).pipeline == 4 * 512 * 768 * 8);
  // All but the word rows that the batch lacks: at most 4096 of 30522; gaps as well.
  const ParameterTable table(base, kToken);
  const int64_t gaps = table.size() - 108'893'186;
  CHECK(of_dp2.data == 4 * (108'893'186 + gaps - (30522 - 4096) * 768));
  CHECK(of_dp2.tensor == 0);
  CHECK(of_dp2.pipeline == 0);
  CHECK(bubble(2, 1, 8) == doctest::Approx(1.0 / 9));

  auto bf16 = [](Setting setting) {
    setting.bf16 = true;
    return setting;
  };
  CHECK(total(large, bf16(dp2)) == doctest::Approx(6.48).epsilon(0.01));
  CHECK(total(large, bf16(tp2)) == doctest::Approx(6.16).epsilon(0.01));
  CHECK(total(large, bf16(pp2)) == doctest::Approx(3.71).epsilon(0.01));
  CHECK(gb(axis_bytes(run_of(large, tp2), 0).tensor) == doctest::Approx(1.61).epsilon(0.01));
  CHECK(gb(axis_bytes(run_of(large, pp2), 0).boundary) == doctest::Approx(0.034).epsilon(0.02));
}

TEST_CASE("the worked examples: 30 and 175 billion parameters on 120 hosts of 8") {
  const EncoderConfig billion30 = shape(48, 7168, 56, 28672);
  const EncoderConfig billion175 = shape(96, 12288, 96, 49152);
  auto setting = [](int64_t pp, int64_t m) {
    return Setting{.world = 960,
                   .pp = pp,
                   .tp = 8,
                   .hosts = 120,
                   .micro_batches = m,
                   .micro_batch_tokens = 1024,
                   .bf16 = true,
                   .recompute = true};
  };
  struct Row {
    const EncoderConfig& config;
    int64_t pp, m;
    double memory, tp, pp_bytes, dp, bubble;
  };
  const Row rows[] = {{billion30, 6, 24, 10, 59, 1.4, 6.4, 0.17},
                      {billion175, 6, 24, 47, 203, 2.4, 30, 0.17},
                      {billion175, 12, 48, 29, 203, 4.8, 16, 0.19},
                      {billion175, 1, 8, 228, 406, 0, 176, 0}};
  for (const Row& row : rows) {
    CAPTURE(row.config.num_hidden_layers);
    CAPTURE(row.pp);
    const LayoutRun run = run_of(row.config, setting(row.pp, row.m));
    const AxisBytes bytes = axis_bytes(run, 0);
    CHECK(gb(stage_memory(run, 0).total()) == doctest::Approx(row.memory).epsilon(0.025));
    CHECK(gb(bytes.tensor) == doctest::Approx(row.tp).epsilon(0.01));
    CHECK(gb(bytes.boundary) == doctest::Approx(row.pp_bytes).epsilon(0.02));
    CHECK(gb(bytes.data) == doctest::Approx(row.dp).epsilon(0.03));
    CHECK(bubble(row.pp, 1, row.m) == doctest::Approx(row.bubble).epsilon(0.03));
  }
}

TEST_CASE("bytes of all processes are those of each, whatever the layout") {
  const EncoderConfig config = shape(8, 64, 4, 256);
  for (PipelineKind kind : {PipelineKind::one_f_one_b, PipelineKind::interleaved}) {
    for (const auto& [pp, tp] : {std::pair(1, 1), {2, 1}, {1, 2}, {2, 2}, {4, 2}}) {
      Setting setting{.world = 16, .pp = pp, .tp = tp, .micro_batches = 2, .kind = kind};
      setting.chunks = chunks_of(kind, pp, 2);
      for (bool recompute : {false, true}) {
        setting.recompute = recompute;
        CAPTURE(pp);
        CAPTURE(tp);
        LayoutRun run = run_of(config, setting);
        run.head = kSequence;
        run.word_rows = 100;
        StepBytes sum;
        for (int stage = 0; stage < pp; ++stage) {
          const AxisBytes each = axis_bytes(run, stage);
          sum.tensor += each.tensor * run.layout.dp() * tp;
          sum.pipeline += each.pipeline * run.layout.dp() * tp;
          sum.data += each.data * run.layout.dp() * tp;
        }
        const StepBytes all = step_bytes(run);
        CHECK(all.tensor == sum.tensor);
        CHECK(all.pipeline == sum.pipeline);
        // The first tensor rank has biases that the others lack.
        CHECK(double(all.data) == doctest::Approx(double(sum.data)).epsilon(0.02));
        if (tp == 1) CHECK(all.data == sum.data);
      }
    }
  }
}

TEST_CASE("rows that tensor ranks add, by hand") {
  // Three layers with a sequence head: 512 tokens in one sample, one micro-batch.
  LayoutRun run = run_of(shape(3, 2, 2, 4), {.world = 2, .tp = 2});
  run.head = kSequence;
  const auto rows = [&] { return step_bytes(run).tensor / (2 * 4 * 2); };
  CHECK(rows() == 2 * 4 * 512 + 512 + 4);
  run.recompute = true;  // all but the last layer
  CHECK(rows() == 2 * 6 * 512 + 512 + 4);
  run.head = kToken;
  CHECK(rows() == 2 * 6 * 512 + 4 * 512);
}

TEST_CASE("offload leaves a horizon of inputs on the device, recompute the inputs, shards arenas") {
  const EncoderConfig base = named_shape("base");
  Setting setting{.world = 2, .pp = 2, .micro_batches = 8};
  setting.recompute = true;
  LayoutRun run = run_of(base, setting);
  const int64_t input = 512 * 4 * 768;
  // The inputs of six layers and of the next stage, or of the head; beside them the embedding
  // norm's statistics of each token, or the head's two logits.
  const int64_t inputs = 7 * input, rest = 512 * 2 * 4;
  CHECK(stage_memory(run, 0).kept == 2 * (inputs + rest));
  CHECK(stage_memory(run, 1).kept == inputs + rest);
  CHECK(stage_memory(run, 0).offloaded == 0);
  run.horizon = 4;
  CHECK(stage_memory(run, 0).kept == 5 * input + 2 * rest);
  CHECK(stage_memory(run, 0).offloaded == 2 * inputs);
  // With a horizon over everything in a slot: nothing is moved with one slot, everything with two.
  run.horizon = 9;
  CHECK(stage_memory(run, 0).kept == inputs + 2 * rest);
  CHECK(stage_memory(run, 0).offloaded == 2 * inputs);
  CHECK(stage_memory(run, 1).kept == inputs + rest);
  CHECK(stage_memory(run, 1).offloaded == 0);
  // Two processes with four shards: one process holds a sum of two, and one being computed.
  const int64_t gradients = stage_memory(run, 0).gradients;
  CHECK(gradients == 4 * stage_memory(run, 0).parameters);
  run.virtual_shards = 4;
  CHECK(stage_memory(run, 0).gradients == 3 * gradients);
  CHECK(run.replica_micro_batches() == 32);
  // Moments of a stage are divided between its replicas.
  const StageMemory divided = stage_memory(run_of(base, {.world = 6, .pp = 2}), 1);
  CHECK(divided.whole_moments == 8 * divided.parameters);
  CHECK(divided.moments == (divided.whole_moments + 2) / 3);
}

TEST_CASE("a step's time, by hand") {
  // One layer of 4 H^2 + 2 H I = 12 with H 1, I 4: 24 operations a token, attention 4 * 512.
  const EncoderConfig config = shape(2, 1, 1, 4);
  Setting setting{.world = 2, .tp = 1};
  LayoutRun run = run_of(config, setting);
  Rates rates;
  rates.flops = 1e7;
  rates.layer_latency = 0.125;
  const LayerCosts costs = layer_costs(config, kToken, 512);
  const double forward = costs.total({0, 2}) * 512 / 1e7 + 2 * 0.125;
  CHECK(costs.layers[0] == 24 + 2048);
  CHECK(step_forecast(run, rates).pipeline == doctest::Approx(3 * forward));
  CHECK(step_forecast(run, rates).bubble == doctest::Approx(0));
  // Between two replicas: the gradients' exchange overlaps the backward pass, the weights' does
  // not.
  rates.link_latency = 0.5;
  rates.link_bandwidth = 1e3;
  const double half = 0.5 + double(axis_bytes(run, 0).data) / 2 / 1e3;
  CHECK(step_forecast(run, rates).data == doctest::Approx(half + half - 2 * forward));
  rates.flops = 1;
  CHECK(step_forecast(run, rates).data == doctest::Approx(half));
  // Between hosts the network counts: one process on each of them.
  run.first_rank = {0, 1, 2};
  rates.host_bandwidth = 1e2;
  rates.host_latency = 2;
  CHECK(step_forecast(run, rates).data ==
        doctest::Approx(2 + double(axis_bytes(run, 0).data) / 2 / 1e2));
}

TEST_CASE("sums between tensor ranks and messages between stages, by hand") {
  const EncoderConfig config = shape(2, 2, 2, 4);
  const LayerCosts costs = layer_costs(config, kToken, 512);
  Rates rates;
  rates.flops = 1e6;
  rates.layer_latency = 0;
  rates.link_latency = 0.5;
  rates.link_bandwidth = 1e4;
  const double states = 4 * 512 * 2 / 1e4;  // of a micro-batch, from process to process
  // Two sums per layer forward, two backward, two more if it is recomputed.
  Setting setting{.world = 2, .tp = 2};
  const double sum = 2 * 0.5 + states;
  const double pass = (costs.layers[0] + costs.embeddings + costs.head) * 512 / 1e6;
  StepForecast step = step_forecast(run_of(config, setting), rates);
  CHECK(step.tensor == doctest::Approx(4 * 2 * sum));
  CHECK(step.pipeline == doctest::Approx(3 * pass + 4 * 2 * sum));
  setting.recompute = true;
  step = step_forecast(run_of(config, setting), rates);
  CHECK(step.tensor == doctest::Approx(6 * 2 * sum));
  CHECK(step.pipeline == doctest::Approx(4 * pass + 6 * 2 * sum));
  // With offloaded inputs no pass is faster than the transfer of its layers' inputs.
  LayoutRun offloaded = run_of(config, setting);
  offloaded.horizon = 1;
  rates.offload_bandwidth = 10;
  CHECK(step_forecast(offloaded, rates).pipeline == doctest::Approx(2 * 2 * 4 * 512 * 2 / 10.0));
  // One micro-batch through two stages and back.
  const double both = costs.total({0, 2}) * 512 / 1e6;
  step = step_forecast(run_of(config, {.world = 2, .pp = 2}), rates);
  CHECK(step.pipeline == doctest::Approx(3 * both + 2 * (0.5 + states)));
  CHECK(step.bubble == doctest::Approx(1 - 3 * both / (2 * step.pipeline)));
}

TEST_CASE("a long pipeline takes as long as all its rounds") {
  const Rates rates;
  for (PipelineKind kind :
       {PipelineKind::one_f_one_b, PipelineKind::gpipe, PipelineKind::interleaved}) {
    for (int64_t m : {16, 17, 47, 64}) {
      CAPTURE(name_of(kind));
      CAPTURE(m);
      Setting setting{.world = 3, .pp = 3, .micro_batches = m, .kind = kind};
      setting.chunks = chunks_of(kind, 3, 2);
      const LayoutRun run = run_of(named_shape("base"), setting);
      const StepForecast step = step_forecast(run, rates);
      // Every micro-batch of every stage, without messages.
      const PipelineTimes whole =
          simulate(run.pipeline(), [&](int s, const PipelineAction& action) {
            const double all = step.computes[size_t(s)] / run.pipeline().chunks;
            return action.kind == PipelineAction::Kind::forward    ? all / 3
                   : action.kind == PipelineAction::Kind::backward ? all * 2 / 3
                                                                   : 0.0;
          });
      CHECK(step.pipeline == doctest::Approx(whole.makespan).epsilon(0.03));
      CHECK(step.pipeline >= whole.makespan * 0.999);
    }
  }
}
