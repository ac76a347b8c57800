// A training run's layout: who is which replica and stage, and what a stage does in a step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/plan/layout_forecast.h"
#include "train/session.h"

namespace finetune {

// Collective: communicators along the axes. Error(usage) where the processes cannot have the
// layout.
void make_groups(Session& session);

// The model's layers cut into stages, the same on all processes. Error(usage) naming the numbers.
StageSplit stages_of(const TrainOptions& options, const BertConfig& config, HeadKind head);
// Of resolved options. Error(usage) also where the schedule and the virtual shards do not fit.
void cut_into_stages(Session& session);
ModelPart own_part(const Session& session);
// Collective over the tensor ranks: their sum, for the largest micro-batches of training and of
// `evaluation` (zeros: none). Null where one process has all tensor shards.
std::unique_ptr<TensorSum> make_tensor_sum(Session& session, const Backend& backend,
                                           BatchSize evaluation);

// Micro-batches of which this process keeps activations at once.
int64_t activation_slots(const Session& session);
// Collective, with the engine there: buffers for the largest micro-batches of training and of
// `evaluation` (zeros: none), and the links between stages for both.
void reserve_buffers(Session& session, BatchSize evaluation);
// What this stage does in a step.
StagePlan stage_plan(const Session& session);

// What of the result follows from the layout at the start: a virtual shard a replica, a tensor
// shard a tensor rank, and with several stages, where nothing says how to cut, about four
// micro-batches a stage.
void take_layout_defaults(TrainOptions& options, const Layout& layout);

// Of a run whose replicas have several processes, by formulas: what layout_table.h tells of it.
LayoutRun layout_run(const Session& session);
std::vector<std::string> host_names(const Communicator& comm);
// Share of a step in which stages wait, from the layers' arithmetic.
double forecast_bubble(const LayoutRun& run);
void write_layout(const Session& session);  // the run's layout.json; none without stages
// Collective: pipeline_bubble, by forecast, and pp_bytes, what all stages have sent to each other
// in each of the last `steps`, on average. Nothing without stages.
void add_pipeline_metrics(Session& session, int64_t steps, Metrics& metrics);

}  // namespace finetune
