// One global order of all messages in a pipeline's step. Pure function. If stages send one message
// at a time and each waits for its receiver, only such an order avoids a deadlock: in 1f1b,
// neighbours that both send before they receive would wait for each other.
#pragma once

#include <vector>

#include "distributed/pipeline/pipeline_schedule.h"

namespace finetune {

// Returns the stage's sends and receives in an order in which all stages' messages can pass one
// after the other, with one outgoing message of each kind buffered per stage. Receives are as in
// pipeline_actions(); a send comes when its receiver has reached it. A stage fills a send's buffer
// before any receive that comes later here, and before the next send of that kind. The slots of
// sends are not set.
std::vector<PipelineAction> message_order(const PipelineShape& shape, int stage);

}  // namespace finetune
