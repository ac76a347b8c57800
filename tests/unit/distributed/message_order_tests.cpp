// The global order of a pipeline's messages does not deadlock when they are sent one at a time.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "core/text/text.h"
#include "distributed/pipeline/pipeline_simulation.h"

using namespace finetune;
using Kind = PipelineAction::Kind;

namespace {

bool is_send(const PipelineAction& a) {
  return a.kind == Kind::send_activation || a.kind == Kind::send_gradient;
}

bool is_pass(const PipelineAction& a) {
  return a.kind == Kind::forward || a.kind == Kind::backward;
}

bool is_same(const PipelineAction& a, const PipelineAction& b) {
  return a.kind == b.kind && a.micro == b.micro && a.chunk == b.chunk && a.peer == b.peer;
}

// The actions of a device in order: passes and transfers. A transfer completes for both its ends at
// once. Requests are as in DeviceMessages, with passes that exchange data in the same order.
std::vector<PipelineAction> on_device(const PipelineShape& shape, int stage) {
  const std::vector<PipelineAction> order = message_order(shape, stage);
  std::map<Kind, std::vector<PipelineAction>> filled;
  size_t next = 0;
  std::vector<PipelineAction> all;
  auto send_filled = [&] {
    for (; next < order.size() && is_send(order[next]); ++next) {
      auto& box = filled[order[next].kind];
      if (box.empty()) return;
      REQUIRE(is_same(box.front(), order[next]));
      box.clear();
      all.push_back(order[next]);
    }
  };
  for (const PipelineAction& action : pipeline_actions(shape, stage)) {
    if (is_pass(action)) {
      all.push_back(action);
    } else if (is_send(action)) {
      REQUIRE(filled[action.kind].empty());  // its place must be free
      filled[action.kind].push_back(action);
      send_filled();
    } else {
      REQUIRE(next < order.size());
      REQUIRE(is_same(order[next++], action));
      all.push_back(action);
      send_filled();
    }
  }
  CHECK(next == order.size());
  return all;
}

// Whether two stages are the ends of one message.
bool meet(int a, const PipelineAction& at_a, int b, const PipelineAction& at_b,
          const PipelineShape& shape) {
  if (!is_send(at_a) || at_a.peer != b || at_b.peer != a || at_a.micro != at_b.micro) return false;
  const bool up = at_a.kind == Kind::send_activation;
  if (at_b.kind != (up ? Kind::receive_activation : Kind::receive_gradient)) return false;
  const int from = at_a.chunk * shape.stages + a, to = at_b.chunk * shape.stages + b;
  return to == from + (up ? 1 : -1);
}

// False: a stage waits forever.
bool ends(const PipelineShape& shape) {
  std::vector<std::vector<PipelineAction>> queues;
  for (int s = 0; s < shape.stages; ++s) queues.push_back(on_device(shape, s));
  std::vector<size_t> at(queues.size(), 0);
  auto front = [&](int s) -> const PipelineAction* {
    return at[size_t(s)] < queues[size_t(s)].size() ? &queues[size_t(s)][at[size_t(s)]] : nullptr;
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (int s = 0; s < shape.stages; ++s) {
      const PipelineAction* action = front(s);
      if (!action) continue;
      if (is_pass(*action)) {
        ++at[size_t(s)];
        progress = true;
      } else if (is_send(*action)) {
        const PipelineAction* other = front(action->peer);
        if (!other || !meet(s, *action, action->peer, *other, shape)) continue;
        ++at[size_t(action->peer)];
        ++at[size_t(s)];
        progress = true;
      }
    }
  }
  for (int s = 0; s < shape.stages; ++s) {
    if (front(s)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("messages of two stages that can be read") {
  std::string text;
  for (const PipelineAction& a : message_order({PipelineKind::one_f_one_b, 2, 1, 3, 0}, 0)) {
    text += concat(text.empty() ? "" : " ", is_send(a) ? "activation " : "gradient ", a.micro);
  }
  CHECK(text == "activation 0 gradient 0 activation 1 gradient 1 activation 2 gradient 2");
  CHECK(message_order({PipelineKind::gpipe, 1, 1, 3, 0}, 0).empty());
}

TEST_CASE("stages that hand over one message at a time never wait for each other") {
  for (PipelineKind kind :
       {PipelineKind::one_f_one_b, PipelineKind::gpipe, PipelineKind::interleaved}) {
    for (int p = 2; p <= 8; ++p) {
      for (int c = 1; c <= chunks_of(kind, p, 4); ++c) {
        for (int m : {1, 2, 3, 4, 5, 7, 8, 9, 16}) {
          for (int lowest : {0, p / 2, p * c}) {
            CAPTURE(name_of(kind));
            CAPTURE(p);
            CAPTURE(c);
            CAPTURE(m);
            CAPTURE(lowest);
            REQUIRE(ends({kind, p, c, m, lowest}));
          }
        }
      }
    }
  }
}
