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
  fitted,       // all weights exist; the head was fitted to the frozen encoder (--head-init fit)
  keep_or_new,  // keep a head that fits, start a new one if there is none (train)
  renew_all,    // nothing is read: every weight is new (--reinit)
  renew,        // start a new head even if there is one (--reinit-head); the pooler is kept
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

// `head_rows` is for a kept head with other outputs than the file's: the file's row for each
// output, or -1 for a new output, initialised as in a new head. Empty: the file's outputs.

// Throws load_pretrained's errors, except those about values, before the arena is allocated. A
// config alone can ask for any amount of memory; after this check the file is known to have bytes
// for each parameter that is read.
void check_pretrained(const ParameterTable& table, const WeightSource& source, HeadPolicy policy,
                      std::span<const int32_t> head_rows = {});

// Fills `arena` (table.size() floats, zero before) straight from the file, tensors in parallel; new
// parameters get initialize(seed). Error(model) naming tensor, file and shapes: a tensor of the
// encoder is missing, a shape differs (also the head's, unless it is renewed), weights are
// integers, NaN or Inf.
PretrainedReport load_pretrained(const ParameterTable& table, const WeightSource& source,
                                 double initializer_range, uint64_t seed, HeadPolicy policy,
                                 float* arena);
// The same for a part of the model (`held`). Reads only the tensors that the part needs; tensors of
// which it has slices are read one after the other. The report is about the whole model.
PretrainedReport load_pretrained(const ParameterTable& table, const ParameterTable& held,
                                 const WeightSource& source, double initializer_range,
                                 uint64_t seed, HeadPolicy policy, float* arena,
                                 std::span<const int32_t> head_rows = {});

}  // namespace finetune
