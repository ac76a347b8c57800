// Orders a stage's forward and backward passes and adds messages and slots.
#include "distributed/pipeline/pipeline_schedule.h"

#include <algorithm>

#include "core/error.h"
#include "core/text/text.h"

namespace finetune {
namespace {

// A forward or backward pass.
struct Pass {
  bool forward = true;
  int micro = 0, chunk = 0;
};

// Micro-batches in rounds of `stages`; each round goes through all chunks.
std::vector<Pass> in_rounds(int stages, int chunks, int micro_batches, bool forward) {
  std::vector<Pass> passes;
  for (int round = 0; round < micro_batches; round += stages) {
    for (int i = 0; i < chunks; ++i) {
      for (int micro = round; micro < round + stages; ++micro) {
        passes.push_back({forward, micro, forward ? i : chunks - 1 - i});
      }
    }
  }
  return passes;
}

// `ahead` forward passes, then forward and backward passes alternate.
std::vector<Pass> in_turn(const std::vector<Pass>& forward, const std::vector<Pass>& backward,
                          size_t ahead) {
  ahead = std::min(ahead, forward.size());
  std::vector<Pass> passes(forward.begin(), forward.begin() + int64_t(ahead));
  for (size_t i = 0; i < backward.size(); ++i) {
    if (ahead + i < forward.size()) passes.push_back(forward[ahead + i]);
    passes.push_back(backward[i]);
  }
  return passes;
}

// A last round that is not full is planned as a full one and the missing passes are left out. That
// keeps the order valid, whereas a separate order could deadlock.
std::vector<Pass> passes_of(const PipelineShape& shape, int stage) {
  const int p = shape.stages, last = p - 1 - stage;
  const bool interleaved = shape.kind == PipelineKind::interleaved && p > 1;
  const int round = interleaved ? p : 1;
  const int planned = (shape.micro_batches + round - 1) / round * round;
  const size_t ahead = p == 1                              ? 0
                       : shape.kind == PipelineKind::gpipe ? size_t(planned)
                       : interleaved ? size_t(2 * last + (shape.chunks - 1) * p)
                                     : size_t(last);
  std::vector<Pass> passes = in_turn(in_rounds(round, shape.chunks, planned, true),
                                     in_rounds(round, shape.chunks, planned, false), ahead);
  std::erase_if(passes, [&](const Pass& pass) { return pass.micro >= shape.micro_batches; });
  return passes;
}

class ActionList {
 public:
  ActionList(const PipelineShape& shape, int stage) : shape_(shape), stage_(stage) {}

  void add(const Pass& pass) {
    const int block = pass.chunk * shape_.stages + stage_;
    if (pass.forward) {
      forward(pass, block);
    } else if (block >= shape_.lowest_block) {
      backward(pass, block);
    }
  }
  std::vector<PipelineAction> take() { return std::move(actions_); }

 private:
  using Kind = PipelineAction::Kind;
  static constexpr int kFree = -1;

  void forward(const Pass& pass, int block) {
    const int slot = take_slot(pass);
    if (block > 0) put(Kind::receive_activation, pass, slot, previous());
    put(Kind::forward, pass, slot, -1);
    if (block + 1 < shape_.blocks()) put(Kind::send_activation, pass, slot, next());
    if (block < shape_.lowest_block) slots_[size_t(slot)] = kFree;
  }

  void backward(const Pass& pass, int block) {
    const auto found = std::find(slots_.begin(), slots_.end(), key(pass));
    FINETUNE_CHECK(found != slots_.end());
    const int slot = int(found - slots_.begin());
    if (block + 1 < shape_.blocks()) put(Kind::receive_gradient, pass, slot, next());
    put(Kind::backward, pass, slot, -1);
    if (block > shape_.lowest_block) put(Kind::send_gradient, pass, slot, previous());
    *found = kFree;
  }

  int take_slot(const Pass& pass) {
    auto place = std::find(slots_.begin(), slots_.end(), kFree);
    if (place == slots_.end()) place = slots_.insert(slots_.end(), kFree);
    *place = key(pass);
    return int(place - slots_.begin());
  }

  int key(const Pass& pass) const { return pass.micro * shape_.chunks + pass.chunk; }
  int previous() const { return (stage_ + shape_.stages - 1) % shape_.stages; }
  int next() const { return (stage_ + 1) % shape_.stages; }
  void put(Kind kind, const Pass& pass, int slot, int peer) {
    actions_.push_back({kind, pass.micro, pass.chunk, slot, peer});
  }

  const PipelineShape& shape_;
  int stage_;
  std::vector<int> slots_;  // the pass that each slot holds
  std::vector<PipelineAction> actions_;
};

}  // namespace

PipelineKind parse_pipeline_kind(std::string_view word) {
  for (PipelineKind kind :
       {PipelineKind::one_f_one_b, PipelineKind::gpipe, PipelineKind::interleaved}) {
    if (word == name_of(kind)) return kind;
  }
  if (word == "simple") return PipelineKind::gpipe;
  throw usage_error("--pipeline-schedule ", in_quotes(word),
                    ": must be 1f1b, gpipe (or simple) or interleaved");
}

std::string_view name_of(PipelineKind kind) {
  return kind == PipelineKind::one_f_one_b ? "1f1b"
         : kind == PipelineKind::gpipe     ? "gpipe"
                                           : "interleaved";
}

int chunks_of(PipelineKind kind, int stages, int asked) {
  return kind == PipelineKind::interleaved && stages > 1 ? asked : 1;
}

std::vector<PipelineAction> pipeline_actions(const PipelineShape& shape, int stage) {
  FINETUNE_CHECK(stage >= 0 && stage < shape.stages && shape.micro_batches >= 0);
  FINETUNE_CHECK(shape.chunks == chunks_of(shape.kind, shape.stages, shape.chunks));
  ActionList actions(shape, stage);
  for (const Pass& pass : passes_of(shape, stage)) actions.add(pass);
  return actions.take();
}

int most_slots(const PipelineShape& shape, int stage) {
  const int p = shape.stages, m = shape.micro_batches;
  if (p == 1) return std::min(m, 1);
  if (shape.kind == PipelineKind::gpipe) return m;
  if (shape.kind == PipelineKind::one_f_one_b) return std::min(m, p - stage);
  return std::min(m * shape.chunks, 2 * (p - stage - 1) + (shape.chunks - 1) * p + 1);
}

}  // namespace finetune
