// Sums the rows of each label, and compares each row with these sums.
#include "tasks/classification/ngrams/confusable_rows.h"

#include <algorithm>
#include <cmath>

namespace finetune {
namespace {

constexpr int64_t kRareShare = 100;  // an n-gram in at most 1 of 100 rows is rare

struct Weight {
  int32_t label;
  float value;
};

// For each feature, its weight in each label's summed texts; a label's weights have length 1.
struct MeanTexts {
  std::vector<uint64_t> begins;
  std::vector<Weight> weights;

  std::span<const Weight> operator[](int index) const {
    return {weights.data() + begins[size_t(index)], weights.data() + begins[size_t(index) + 1]};
  }
};

std::vector<uint8_t> rare_indices(const DesignMatrix& matrix) {
  std::vector<uint32_t> rows(size_t(matrix.indices) + 1);
  for (int64_t i = 0; i < matrix.rows(); ++i) {
    for (const feature_node& node : matrix.row(i)) ++rows[size_t(node.index)];
  }
  std::vector<uint8_t> rare(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    rare[i] = rows[i] >= 2 && int64_t(rows[i]) <= std::max<int64_t>(2, matrix.rows() / kRareShare);
  }
  return rare;
}

MeanTexts mean_texts(const DesignMatrix& matrix, const RowLabels& labels, int64_t outputs,
                     const std::vector<uint8_t>& rare) {
  // For each index lists (label, value) of every row, then adds the values of equal labels.
  MeanTexts out;
  out.begins.assign(size_t(matrix.indices) + 2, 0);
  for (int64_t i = 0; i < matrix.rows(); ++i) {
    const size_t count = labels[size_t(i)].size();
    for (const feature_node& node : matrix.row(i)) {
      if (rare[size_t(node.index)]) out.begins[size_t(node.index) + 1] += count;
    }
  }
  for (size_t i = 1; i < out.begins.size(); ++i) out.begins[i] += out.begins[i - 1];
  std::vector<Weight> all(out.begins.back());
  std::vector<uint64_t> next = out.begins;
  for (int64_t i = 0; i < matrix.rows(); ++i) {
    for (const feature_node& node : matrix.row(i)) {
      if (!rare[size_t(node.index)]) continue;
      for (int32_t label : labels[size_t(i)]) {
        all[next[size_t(node.index)]++] = {label, float(node.value)};
      }
    }
  }
  std::vector<double> squares(static_cast<size_t>(outputs));
  uint64_t end = 0;
  for (size_t index = 0; index + 1 < out.begins.size(); ++index) {
    const std::span<Weight> own(all.data() + out.begins[index],
                                out.begins[index + 1] - out.begins[index]);
    out.begins[index] = end;
    std::stable_sort(own.begin(), own.end(),
                     [](const Weight& a, const Weight& b) { return a.label < b.label; });
    for (size_t i = 0; i < own.size();) {
      Weight sum = own[i];
      for (++i; i < own.size() && own[i].label == sum.label; ++i) sum.value += own[i].value;
      squares[size_t(sum.label)] += double(sum.value) * double(sum.value);
      all[end++] = sum;
    }
  }
  out.begins.back() = end;
  all.resize(end);
  for (Weight& weight : all) weight.value *= float(1 / std::sqrt(squares[size_t(weight.label)]));
  out.weights = std::move(all);
  return out;
}

}  // namespace

std::vector<std::vector<uint32_t>> rows_near_labels(const DesignMatrix& matrix,
                                                    const RowLabels& labels, int64_t outputs,
                                                    int64_t most) {
  const MeanTexts means = mean_texts(matrix, labels, outputs, rare_indices(matrix));
  std::vector<std::vector<uint32_t>> near(static_cast<size_t>(outputs));
  std::vector<float> scores(static_cast<size_t>(outputs));
  std::vector<int32_t> found;
  for (int64_t i = 0; i < matrix.rows(); ++i) {
    found.clear();
    for (const feature_node& node : matrix.row(i)) {
      for (const Weight& weight : means[node.index]) {
        float& score = scores[size_t(weight.label)];
        if (score == 0) found.push_back(weight.label);
        score += weight.value * float(node.value);
      }
    }
    const auto last = found.begin() + std::min<ptrdiff_t>(most, ptrdiff_t(found.size()));
    std::partial_sort(found.begin(), last, found.end(), [&](int32_t a, int32_t b) {
      const float x = scores[size_t(a)], y = scores[size_t(b)];
      return x != y ? x > y : a < b;
    });
    for (auto label = found.begin(); label != last; ++label) {
      near[size_t(*label)].push_back(uint32_t(i));
    }
    for (int32_t label : found) scores[size_t(label)] = 0;
  }
  return near;
}

}  // namespace finetune
