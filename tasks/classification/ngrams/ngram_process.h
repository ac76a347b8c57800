// Trains the n-gram baseline in a process of its own: its memory is given back, and neither
// threads nor MPI of this one are disturbed.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/classification/ngrams/text_rows.h"
#include "tasks/classification/rows/dataset.h"

namespace finetune {

struct NgramJob {
  ProblemType problem = ProblemType::single_label;
  int64_t outputs = 0;
  const TextRows& train;
  const TextRows& eval;
  const TextRows& predictions;        // empty: gets a row without text for each of `eval`
  const Descriptor* model = nullptr;  // empty: gets the model, as a file (mix/ngram_file.h)
};

// Starts this program again as another process and waits for it. Only SIGKILL and the end of this
// process end it, not other signals, so that a run which is told to stop is complete first.
// Returns the peak memory of its processes in MiB. Error(device) if it fails, saying how.
double predict_with_ngrams(const NgramJob& job);

// Scores of rows with one label, each by a linear model that was trained without the row and those
// of its fold: (rows, outputs), see out_of_fold_scores(). In a process as the above; Error(device).
struct FoldJob {
  int64_t outputs = 0;
  const TextRows& rows;
  int folds;
};
std::vector<float> scores_out_of_fold(const FoldJob& job);

// main() calls this first. In a process that predict_with_ngrams() began it does the work and
// returns the exit status; in any other process it returns -1, and predict_with_ngrams() may be
// called from then on.
int serve_ngram_process(int argc, char** argv);
// Whether this program can begin one.
bool has_ngram_process();

}  // namespace finetune
