// One order of all messages of a pipeline's step. Who hands messages over one at a time, and waits
// for the other end of each, comes to an end only if every stage takes its messages in such an
// order: in 1f1b, neighbours that both send before they receive would wait for each other. Pure.
#pragma once

#include <vector>

#include "distributed/pipeline/pipeline_schedule.h"

namespace finetune {

// The stage's sends and receives, in the order in which all stages' messages can pass one after the
// other where each stage has room for one message of a kind on its way out: receives as in
// pipeline_actions(), a send when its receiver has come to it. The stage comes to a send before any
// receive that stands behind it here, and to the next send of that kind, or beyond a receive, after
// all that stands before it. Slots of sends are not told.
std::vector<PipelineAction> message_order(const PipelineShape& shape, int stage);

}  // namespace finetune
