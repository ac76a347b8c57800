// A new head that begins as a linear fit to the features of the frozen encoder.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/pooled_weights.h"
#include "train/training_run.h"

namespace finetune {

// The head is on every process, the rest on rank 0.
struct HeadFit {
  LinearHead head;
  std::vector<float> out_of_fold;  // with --folds: logits (samples, outputs), see fold_fits.h
  std::string line;                // for the log
  double loss = 0, seconds = 0;
  int64_t tokens = 0;
};

// The weights of a run whose head is fitted; before the fit, without `head`, with a head of zeros.
// Null for other runs, and without `encoder`, which must outlive the result.
std::unique_ptr<WeightSource> weights_to_start_with(const Settings& settings,
                                                    const WeightSource* encoder,
                                                    const LinearHead* head);

// The encoder with `head` on its pooled features, on this process, for inference. `source`: as
// fit_head's. Collective.
std::unique_ptr<Engine> make_pooled_engine(const Machine& machine, const Settings& settings,
                                           const WeightSource* source, const LinearHead& head);

// Computes the features of the training samples and fits the head to them, and to `names` as
// fit_named_head() does: Task::label_names() on rank 0, or nothing. `source`: null where another
// process reads the weights for this one. `pooling`: of the features, for the log: the encoder may
// pool in a layer that the run trains. `check_stop` throws if rank 0 was told to stop. Collective.
HeadFit fit_head(const Machine& machine, const Settings& settings, const TrainingArrays& arrays,
                 const SampleView& names, const WeightSource* source, Pooling pooling,
                 const std::function<void()>& check_stop);

// The state of --recipe quick after the fit, which counts as the run's one step over all rows.
void take_fit(const HeadFit& fit, int64_t samples, CheckpointState& state);

}  // namespace finetune
