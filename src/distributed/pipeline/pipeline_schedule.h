// Pipeline schedules: what each stage does with each micro-batch, in which order. Pure.
// 1f1b is what SageMaker calls interleaved (backward first), gpipe what it calls simple;
// interleaved is Megatron's: each stage has several chunks of layers. Every schedule goes backward
// in ascending order of micro-batches, so that all give the same bits.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "distributed/pipeline/pipeline_action.h"

namespace finetune {

enum class PipelineKind { one_f_one_b, gpipe, interleaved };

inline constexpr std::string_view kPipelineWords = "1f1b|gpipe|interleaved|simple";

// Error(usage) for a word that is none of them; simple is gpipe.
PipelineKind parse_pipeline_kind(std::string_view word);
std::string_view name_of(PipelineKind kind);

// Chunks of layers that a stage has: `asked` where the schedule is interleaved and there are
// several stages, else 1.
int chunks_of(PipelineKind kind, int stages, int asked);

struct PipelineShape {
  PipelineKind kind = PipelineKind::one_f_one_b;
  int stages = 1;
  int chunks = 1;  // as chunks_of() has it
  int micro_batches = 1;
  // The first block (chunk * stages + stage) that goes backward: blocks below are frozen. As many
  // as there are blocks: nothing does, as in evaluation.
  int lowest_block = 0;

  int blocks() const { return stages * chunks; }
};

// In their order. A link is a pair of stages and a direction of the pass: activations and gradients
// need channels of their own, each with room for one message; then no stage waits for ever, and
// each link is received in the order in which it is sent. One stage alone has F0 B0 F1 B1 ...
std::vector<PipelineAction> pipeline_actions(const PipelineShape& shape, int stage);

// Slots that a stage needs at most: 1f1b min(m, p - s); gpipe m; interleaved
// 2 (p - s - 1) + (C - 1) p + 1, and never more than m C.
int most_slots(const PipelineShape& shape, int stage);
// Those that these actions use.
int slots_of(const std::vector<PipelineAction>& actions);

}  // namespace finetune
