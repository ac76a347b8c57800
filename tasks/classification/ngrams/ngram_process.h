// Trains the n-gram baseline in a process of its own: its memory is given back, and neither
// threads nor MPI of this one are disturbed.
#pragma once

#include <cstdint>

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

// Begins the process, this program again with other words, and waits for it. Signals do not end it,
// but for SIGKILL and the end of this process: a run that stops on one is complete by then, and the
// same with or without. Error(device) if it fails, saying how.
// The result: most memory that one of its processes had, in MiB.
double predict_with_ngrams(const NgramJob& job);

// The program's own main() calls this first of all. Of such a process it does the work and gives
// its exit status, of any other -1; from then on predict_with_ngrams may be called.
int serve_ngram_process(int argc, char** argv);
// Whether this program can begin one.
bool has_ngram_process();

}  // namespace finetune
