// Trains the n-gram baseline in its own process. So its memory is returned to the system, and this
// process's threads and MPI are not affected.
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
  const TextRows& predictions;        // empty file: gets a row without text for each row of `eval`
  const Descriptor* model = nullptr;  // empty file: gets the model (mix/ngram_file.h)
};

// Starts this program again as another process and waits for it. Only SIGKILL and the end of this
// process end it, so that a run that is told to stop first completes it. Returns the peak memory of
// its processes in MiB. Error(device) if it fails, with the reason.
double predict_with_ngrams(const NgramJob& job);

// Scores rows with one label each: (rows, outputs). Each row's model is trained without the rows of
// its fold (see out_of_fold_scores()). Runs in its own process as above; Error(device).
struct FoldJob {
  int64_t outputs = 0;
  const TextRows& rows;
  int folds;
};
std::vector<float> scores_out_of_fold(const FoldJob& job);

// main() calls this first. In a process that predict_with_ngrams() started it does the work and
// returns the exit status. In any other process it returns -1, and from then on
// predict_with_ngrams() may be called.
int serve_ngram_process(int argc, char** argv);
// Whether this program can start such a process.
bool has_ngram_process();

}  // namespace finetune
