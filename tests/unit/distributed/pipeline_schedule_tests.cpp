// Pipeline schedules: they end, in order, with the slots and times that the formulas give.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "core/error.h"
#include "distributed/pipeline/pipeline_simulation.h"

using namespace finetune;
using Kind = PipelineAction::Kind;

namespace {

constexpr PipelineKind kKinds[] = {PipelineKind::one_f_one_b, PipelineKind::gpipe,
                                   PipelineKind::interleaved};

int slots_of(const std::vector<PipelineAction>& actions) {
  int slots = 0;
  for (const PipelineAction& action : actions) slots = std::max(slots, action.slot + 1);
  return slots;
}

void for_each_shape(const std::function<void(const PipelineShape&)>& visit) {
  for (PipelineKind kind : kKinds) {
    for (int p = 1; p <= 8; ++p) {
      for (int c = 1; c <= chunks_of(kind, p, 4); ++c) {
        for (int m = 1; m <= 16; ++m) visit({kind, p, c, m, 0});
      }
    }
  }
}

// "F0 B0 F1 B1": only passes; with several chunks "F0.1" is micro-batch 0 in chunk 1.
std::string passes(const PipelineShape& shape, int stage) {
  std::string text;
  for (const PipelineAction& a : pipeline_actions(shape, stage)) {
    if (a.kind != Kind::forward && a.kind != Kind::backward) continue;
    text += (text.empty() ? "" : " ") + std::string(a.kind == Kind::forward ? "F" : "B") +
            std::to_string(a.micro) + (shape.chunks > 1 ? "." + std::to_string(a.chunk) : "");
  }
  return text;
}

// A backward pass takes twice a forward pass; a stage's chunks share its time.
double pass_seconds(const PipelineShape& shape, const PipelineAction& action) {
  return (action.kind == Kind::forward    ? 1.0
          : action.kind == Kind::backward ? 2.0
                                          : 0.0) /
         shape.chunks;
}

PipelineTimes simulated(const PipelineShape& shape) {
  return simulate(shape, [&](int, const PipelineAction& a) { return pass_seconds(shape, a); });
}

// Messages of a link in order: (micro-batch, receiving block).
using Messages = std::vector<std::pair<int, int>>;

Messages messages(const PipelineShape& shape, int stage, int peer, Kind kind, int to_receiver) {
  Messages found;
  for (const PipelineAction& a : pipeline_actions(shape, stage)) {
    if (a.kind != kind || a.peer != peer) continue;
    found.emplace_back(a.micro, a.chunk * shape.stages + stage + to_receiver);
  }
  return found;
}

}  // namespace

TEST_CASE("orders that can be read") {
  using enum PipelineKind;
  for (PipelineKind kind : kKinds) CHECK(passes({kind, 1, 1, 3, 0}, 0) == "F0 B0 F1 B1 F2 B2");
  CHECK(passes({one_f_one_b, 2, 1, 3, 0}, 0) == "F0 F1 B0 F2 B1 B2");
  CHECK(passes({one_f_one_b, 2, 1, 3, 0}, 1) == "F0 B0 F1 B1 F2 B2");
  CHECK(passes({one_f_one_b, 4, 1, 2, 0}, 0) == "F0 F1 B0 B1");
  CHECK(passes({gpipe, 2, 1, 3, 0}, 1) == "F0 F1 F2 B0 B1 B2");
  CHECK(passes({interleaved, 2, 2, 2, 0}, 1) == "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 B1.0");
  CHECK(passes({interleaved, 2, 2, 1, 0}, 0) == "F0.0 F0.1 B0.1 B0.0");
  CHECK(pipeline_actions({one_f_one_b, 2, 1, 0, 0}, 0).empty());
  CHECK(name_of(parse_pipeline_kind("simple")) == "gpipe");
  CHECK_THROWS_AS(parse_pipeline_kind("1F1B"), Error);
}

TEST_CASE("each micro-batch passes forward and backward through each block once, in order") {
  for_each_shape([](const PipelineShape& shape) {
    CAPTURE(name_of(shape.kind));
    CAPTURE(shape.stages);
    CAPTURE(shape.chunks);
    CAPTURE(shape.micro_batches);
    for (int s = 0; s < shape.stages; ++s) {
      std::vector<int> forward(size_t(shape.chunks), 0),
          backward(forward);                     // next micro-batch
      std::map<int, std::pair<int, int>> slots;  // what each holds
      const auto actions = pipeline_actions(shape, s);
      for (const PipelineAction& a : actions) {
        const std::pair held(a.micro, a.chunk);
        if (a.kind == Kind::receive_activation || a.kind == Kind::forward) {
          const bool is_new = slots.emplace(a.slot, held).second;
          REQUIRE((is_new || slots[a.slot] == held));
        }
        REQUIRE(slots.contains(a.slot) == (a.kind != Kind::send_gradient));
        if (a.kind != Kind::send_gradient) REQUIRE(slots[a.slot] == held);
        if (a.kind == Kind::forward) REQUIRE(forward[size_t(a.chunk)]++ == a.micro);
        if (a.kind != Kind::backward) continue;
        REQUIRE(backward[size_t(a.chunk)]++ == a.micro);
        slots.erase(a.slot);
      }
      CHECK(slots.empty());
      CHECK(forward == std::vector<int>(size_t(shape.chunks), shape.micro_batches));
      CHECK(backward == forward);
      CHECK(slots_of(actions) <= most_slots(shape, s));
    }
  });
}

TEST_CASE("each stage receives its neighbour's messages in the order of sending") {
  for_each_shape([](const PipelineShape& shape) {
    if (shape.stages == 1) return;
    size_t count = 0;
    for (int s = 0; s < shape.stages; ++s) {
      const int next = (s + 1) % shape.stages;
      const Messages activations = messages(shape, s, next, Kind::send_activation, 1);
      const Messages gradients = messages(shape, next, s, Kind::send_gradient, -1);
      REQUIRE(activations == messages(shape, next, s, Kind::receive_activation, 0));
      REQUIRE(gradients == messages(shape, s, next, Kind::receive_gradient, 0));
      count += activations.size() + gradients.size();
    }
    CHECK(count == size_t(2 * (shape.blocks() - 1) * shape.micro_batches));
  });
}

TEST_CASE("links with room for one message are enough, and the makespan is the formula's") {
  for_each_shape([](const PipelineShape& shape) {
    CAPTURE(name_of(shape.kind));
    CAPTURE(shape.stages);
    CAPTURE(shape.chunks);
    CAPTURE(shape.micro_batches);
    const PipelineTimes times = simulated(shape);  // a CHECK fails on a deadlock
    const int m = shape.micro_batches, p = shape.stages;
    for (int s = 0; s < p; ++s) {
      CHECK(times.busy[size_t(s)] == doctest::Approx(3.0 * m));
      CHECK(times.idle[size_t(s)] == doctest::Approx(times.makespan - 3.0 * m));
    }
    if (shape.kind == PipelineKind::interleaved && m % p != 0) {
      // At most as long as full rounds.
      const int rounded_up = (m + p - 1) / p * p;
      CHECK(times.makespan <= 3.0 * (rounded_up + (p - 1.0) / shape.chunks) + 1e-9);
      return;
    }
    CHECK(times.makespan == doctest::Approx(3.0 * (m + (p - 1.0) / shape.chunks)));
    CHECK(times.bubble == doctest::Approx((p - 1.0) / (shape.chunks * m + p - 1.0)));
  });
}

TEST_CASE("messages take their time, the slowest stage sets the pace") {
  const PipelineShape shape{PipelineKind::one_f_one_b, 2, 1, 4, 0};
  // One micro-batch: there and back again.
  const auto seconds = [](int, const PipelineAction& a) {
    return a.kind == Kind::forward ? 1.0 : a.kind == Kind::backward ? 2.0 : 0.25;
  };
  CHECK(simulate({PipelineKind::one_f_one_b, 3, 1, 1, 0}, seconds).makespan == 9 + 4 * 0.25);
  const PipelineTimes uneven = simulate(
      shape, [&](int s, const PipelineAction& a) { return seconds(s, a) * (s == 0 ? 1 : 3); });
  CHECK(uneven.busy == std::vector{12.0, 36.0});
  CHECK(uneven.makespan == 1 + 0.25 + 36 + 0.75 + 2);
}

TEST_CASE("frozen blocks have no backward pass, and evaluation none at all") {
  for_each_shape([](PipelineShape shape) {
    for (int lowest = 1; lowest <= shape.blocks(); ++lowest) {
      shape.lowest_block = lowest;
      CAPTURE(lowest);
      const PipelineTimes times = simulated(shape);
      CHECK(times.makespan > 0);
      size_t backward = 0, gradients = 0;
      for (int s = 0; s < shape.stages; ++s) {
        const auto actions = pipeline_actions(shape, s);
        CHECK(slots_of(actions) <= most_slots(shape, s));
        for (const PipelineAction& a : actions) {
          backward += a.kind == Kind::backward;
          gradients += a.kind == Kind::send_gradient;
          if (a.kind == Kind::backward) REQUIRE(a.chunk * shape.stages + s >= lowest);
        }
        if (lowest == shape.blocks()) CHECK(slots_of(actions) == 1);
      }
      const int trained = shape.blocks() - lowest;
      CHECK(backward == size_t(trained * shape.micro_batches));
      CHECK(gradients == size_t(std::max(0, trained - 1) * shape.micro_batches));
    }
  });
}
