// Adds up the losses and ranks of hidden pieces.
#include "tasks/masked_language/masked_evaluator.h"

#include <algorithm>
#include <cmath>

#include "tasks/evaluator.h"

namespace finetune {

void MaskedEvaluator::add(const PackedBatch& batch, const float* scores) {
  for (size_t i = 0; i < batch.scored.size(); ++i) {
    const float loss = scores[2 * i], rank = scores[2 * i + 1];
    if (!std::isfinite(loss)) throw not_finite("a hidden word");
    loss_ += double(loss);
    first_ += rank < 1;
    among_five_ += rank < 5;
  }
  count_ += int64_t(batch.scored.size());
}

Metrics MaskedEvaluator::metrics() {
  const double count = double(std::max<int64_t>(1, count_));
  return {{"eval_loss", loss_ / count},
          {"eval_perplexity", std::exp(loss_ / count)},
          {"eval_accuracy", double(first_) / count},
          {"eval_top5_accuracy", double(among_five_) / count}};
}

std::vector<std::string> masked_metric_names() {
  return {"eval_accuracy", "eval_loss", "eval_perplexity", "eval_top5_accuracy"};
}

}  // namespace finetune
