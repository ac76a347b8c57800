// Loads pretrained weights into a run's arena, and says what was newly initialised.
// Rules (docs/reference/models.md): every tensor of the encoder must be there with the right shape;
// a missing pooler is newly initialised; a head that fits is kept.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/unused_tensors.h"
#include "model/parameters.h"
#include "weights/weights.h"

namespace finetune {

enum class HeadPolicy {
  fitted,       // all are there, the head from a fit to the frozen encoder (--head-init fit)
  keep_or_new,  // keep a head that fits, start a new one where there is none (train)
  renew_all,    // nothing is read: every weight is new (--reinit)
  renew,        // start a new one whatever there is (--reinit-head); the pooler is kept
  require,      // evaluate, predict: a model without a trained head is an error
};

struct PretrainedReport {
  std::vector<std::string> loaded;       // names in the table
  std::vector<std::string> initialized;  // newly initialised ones
  UnusedTensors unused;                  // tensors of the file
  bool head_kept = false;
  bool pooler_initialized = false;
  std::vector<std::string> lines;  // one sentence each, for the log; without the warning
  std::string warning;             // about unknown tensors of the file; may be empty
};

// `head_rows`, of a kept head with other outputs than the file's: the file's row of each output, or
// -1 for a new one, which is initialised as in a new head. Empty: the outputs are the file's.

// Whether load_pretrained can begin: its errors but those of values, before there is an arena. A
// config alone can ask for any amount of memory; weights that pass have bytes of the file for each
// parameter that is read.
void check_pretrained(const ParameterTable& table, const WeightSource& source, HeadPolicy policy,
                      std::span<const int32_t> head_rows = {});

// Fills `arena` (table.size() floats, zero before) straight from the file, tensors in parallel; new
// parameters by initialize(seed). Error(model) naming tensor, file and shapes: a tensor of the
// encoder is missing, a shape differs (the head's too, unless renewed), integers instead of
// weights, NaN or Inf.
PretrainedReport load_pretrained(const ParameterTable& table, const WeightSource& source,
                                 double initializer_range, uint64_t seed, HeadPolicy policy,
                                 float* arena);
// The same into the arena of a part of the model: of the file only the tensors are read that it has
// something of; those that it has slices of one after the other. The report is the whole model's.
PretrainedReport load_pretrained(const ParameterTable& table, const ParameterTable& held,
                                 const WeightSource& source, double initializer_range,
                                 uint64_t seed, HeadPolicy policy, float* arena,
                                 std::span<const int32_t> head_rows = {});

}  // namespace finetune
