// Pipeline schedules: the order of each stage's passes over micro-batches. Pure functions.
// SageMaker calls 1f1b interleaved (backward first) and gpipe simple; interleaved here is
// Megatron's, with several chunks of layers per stage. Every schedule runs backward passes in
// ascending order of micro-batches, so all give the same bits.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace finetune {

// A pipeline stage's next action: a pass over a micro-batch, or a message to another stage.
struct PipelineAction {
  enum class Kind {
    receive_activation,  // into the slot
    forward,
    send_activation,
    receive_gradient,
    backward,
    send_gradient,
  };

  Kind kind = Kind::forward;
  int micro = 0;
  int chunk = 0;  // index in this stage
  int slot = 0;   // where forward keeps its activations for backward
  int peer = -1;  // the stage at the other end of a message

  friend bool operator==(const PipelineAction&, const PipelineAction&) = default;
};

enum class PipelineKind { one_f_one_b, gpipe, interleaved };

inline constexpr std::string_view kPipelineWords = "1f1b|gpipe|interleaved|simple";

// Error(usage) for an unknown word; simple means gpipe.
PipelineKind parse_pipeline_kind(std::string_view word);
std::string_view name_of(PipelineKind kind);

// The number of chunks of layers per stage: `asked` if the schedule is interleaved and there are
// several stages, else 1.
int chunks_of(PipelineKind kind, int stages, int asked);

struct PipelineShape {
  PipelineKind kind = PipelineKind::one_f_one_b;
  int stages = 1;
  int chunks = 1;  // see chunks_of()
  int micro_batches = 1;
  // The lowest block (chunk * stages + stage) with a backward pass; blocks below are frozen. The
  // number of blocks if there is no backward pass, as in evaluation.
  int lowest_block = 0;

  int blocks() const { return stages * chunks; }
};

// Returns a stage's actions in order. A link is a pair of stages and a direction: activations and
// gradients need separate channels with room for one message each. Then no stage deadlocks, and
// each link receives in the order of its sends. A single stage has F0 B0 F1 B1 ...
std::vector<PipelineAction> pipeline_actions(const PipelineShape& shape, int stage);

// The largest number of slots that a stage needs: 1f1b min(m, p - s); gpipe m; interleaved 2 (p - s
// - 1) + (C - 1) p + 1, at most m C.
int most_slots(const PipelineShape& shape, int stage);

}  // namespace finetune
