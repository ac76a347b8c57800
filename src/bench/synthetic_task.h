// A task of random samples, for benchmarks without data or vocabulary. Token ids follow Zipf's law,
// so that a batch repeats frequent tokens as text does; labels and answers are arbitrary.
#pragma once

#include <memory>

#include "bench/lengths.h"
#include "tasks/task.h"

namespace finetune {

// Makes `count` samples, the same in every run. Targets fit the task's head: one of 24 classes, or
// a token of the sequence, which is then a pair of texts.
std::unique_ptr<Task> make_synthetic_task(TaskKind kind, const LengthDistribution& lengths,
                                          int64_t count, int64_t vocabulary_size);

}  // namespace finetune
