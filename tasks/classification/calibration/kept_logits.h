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
  static constexpr int64_t kMostLogits = int64_t{1} << 25;  // the limit of Keeps::all

  // `data` must outlive this; its evaluation rows are used. Regression keeps nothing.
  KeptLogits(const ClassificationData& data, Keeps keeps);
  // Keeps the logits of row `row`. Call once for each row, in any order.
  void keep(int64_t row, const float* logits);

  // Whether the logits of all rows are kept: Keeps::all, one label per row, and within the limit.
  bool has_all() const { return has_all_; }
  std::vector<float> take_all();  // (rows, outputs); removes them

  // The rows to fit a calibration to: rows whose label the model knows or, if not
  // `of_known_labels`, the other rows. Of these it returns every k-th, so that there are at most
  // 2^22 logits. Rows with several labels all count as known, and have the labels that the model
  // knows. `margins`: (rows, outputs) of n-grams, or empty.
  HeldOutLogits held_out(std::span<const float> margins, bool of_known_labels = true) const;

 private:
  const ClassificationData& data_;
  int64_t stride_ = 0;         // of the rows whose logits are kept; 0: none
  int64_t fitted_stride_ = 0;  // of the rows that a calibration is fitted to
  bool has_all_ = false;
  std::vector<float> logits_;  // (kept rows, outputs)
};

}  // namespace finetune
