// The second baseline of a classifier: a linear head on the features of the frozen encoder.
#pragma once

#include "tasks/task.h"
#include "train/run/run_setup.h"

namespace finetune {

struct FrozenBaseline {
  // Of the evaluation rows: "eval_accuracy", ... `with_ngrams` is what --recipe quick reports;
  // empty without n-grams, for numbers and for several labels a row.
  Metrics alone, with_ngrams;
  double processor_seconds = 0;  // of reading, features, fits and the n-grams' process
};

// Fits what --recipe quick fits, on this process's CPU, and writes no files. Rows that cannot be
// used are left out. Without evaluation files options.eval_fraction of the rows are held out.
FrozenBaseline measure_frozen_baseline(TrainOptions options, const DataFiles& files);

}  // namespace finetune
