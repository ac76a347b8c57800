// Keeps the logits of evaluation rows for what is fitted to them after training.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tasks/classification/calibration/held_out_logits.h"
#include "tasks/classification/rows/dataset.h"

namespace finetune {

class KeptLogits {
 public:
  enum class Keeps { nothing, held_out, all };
  static constexpr int64_t kMostLogits = int64_t{1} << 25;  // that Keeps::all keeps

  // `data` must outlive this; its evaluation rows are meant. Regression keeps nothing.
  KeptLogits(const ClassificationData& data, Keeps keeps);
  // The logits of row `row`, each row once, in any order.
  void keep(int64_t row, const float* logits);

  // Whether the logits of all rows are there: Keeps::all, one label a row, and not too many.
  bool has_all() const { return has_all_; }
  std::vector<float> take_all();  // (rows, outputs); afterwards nothing is left

  // The rows that a calibration is fitted to: rows whose label the model knows or, without
  // `of_known_labels`, the others. Of these it returns every k-th, so that there are at most 2^22
  // logits. Rows with several labels all count as known, with the labels that the model knows.
  // `margins`: (rows, outputs) of n-grams, or empty.
  HeldOutLogits held_out(std::span<const float> margins, bool of_known_labels = true) const;

 private:
  const ClassificationData& data_;
  int64_t stride_ = 0;         // of the rows whose logits are kept; 0: none are
  int64_t fitted_stride_ = 0;  // of the rows that a calibration is fitted to
  bool has_all_ = false;
  std::vector<float> logits_;  // (kept rows, outputs)
};

}  // namespace finetune
