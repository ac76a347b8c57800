// Reads rows, then trains labels in worker processes.
#include "tasks/classification/ngrams/training.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>

#include "core/error.h"
#include "core/failure.h"
#include "core/files/descriptor.h"
#include "core/files/files.h"
#include "tasks/classification/ngrams/confusable_rows.h"
#include "tasks/classification/rows/folds.h"

namespace finetune {
namespace {

// Chosen on the development rows of five data sets together (docs/reference/results.md).
constexpr double kCost = 1, kTolerance = 1, kRegressionTube = 0.1;
// For regression the tolerance is relative to the first pass's slope: 1 would end after it.
constexpr double kRegressionTolerance = 0.01;
// A label that is not trained against all rows gets kOthersOfARow other rows for each own row, so
// that frequent labels are not preferred. Of further rows 1 / kCompetitorShare are competitors.
constexpr int64_t kOthersOfARow = 10, kCompetitorShare = 2;

struct TrainingRows {
  DesignMatrix matrix;
  RowLabels labels;
  std::vector<double> targets;
};

// Trains one support vector machine on some rows. The seed is always the same, so that the result
// does not depend on earlier trainings.
OutputWeights train_one(DesignMatrix& matrix, std::vector<double>& y, int solver, int32_t output) {
  std::vector<feature_node*> rows;
  for (int64_t i = 0; i < matrix.rows(); ++i) rows.push_back(matrix.begin_of(i));
  problem data{};
  data.l = int(rows.size());
  data.n = int(matrix.indices);
  data.y = y.data();
  data.x = rows.data();
  data.bias = -1;  // the bias is a feature
  parameter options{};
  options.solver_type = solver;
  options.C = kCost;
  options.eps = solver == L2R_L2LOSS_SVR_DUAL ? kRegressionTolerance : kTolerance;
  options.p = kRegressionTube;
  std::srand(1);
  const std::unique_ptr<model, void (*)(model*)> trained(
      train(&data, &options), [](model* m) { free_and_destroy_model(&m); });
  OutputWeights out;
  out.output = output;
  // liblinear's positive class is the first one in the data.
  const double sign = solver == L2R_L2LOSS_SVC_DUAL && trained->label[0] != 1 ? -1 : 1;
  out.bias = float(sign * trained->w[DesignMatrix::kBias - 1]);
  for (int index = DesignMatrix::kFirstFeature; index <= data.n; ++index) {
    const auto weight = float(sign * trained->w[index - 1]);
    if (weight == 0) continue;
    out.weights.push_back({uint32_t(index - DesignMatrix::kFirstFeature), weight});
  }
  return out;
}

// Trains single outputs.
class Trainer {
 public:
  Trainer(TrainingRows& rows, const NgramTraining& training);
  OutputWeights train_output(int32_t output);

 private:
  OutputWeights train_label(int32_t label);
  OutputWeights train_selected(int32_t label, int64_t own, const std::vector<uint8_t>& has_label);
  OutputWeights train_number();

  TrainingRows& rows_;
  const NgramTraining& training_;
  int64_t others_ = 0;                       // other rows for a label; a frequent label gets more
  std::vector<std::vector<uint32_t>> near_;  // each label's similar rows; empty: all
  RowSelection selection_;
};

Trainer::Trainer(TrainingRows& rows, const NgramTraining& training)
    : rows_(rows), training_(training), selection_(rows.matrix) {
  const int64_t count = rows.matrix.rows(), outputs = training.outputs;
  const int64_t entries = rows.matrix.entries();
  if (training.problem == ProblemType::regression || entries * outputs <= training.most_entries) {
    return;
  }
  // The number of rows that all labels together may read, so that their entries stay in the limit.
  const auto most = int64_t(double(training.most_entries) / double(entries) * double(count));
  others_ = std::max<int64_t>(1, std::max(most - kOthersOfARow * count, most / 2) / outputs);
  const int64_t competitors = others_ / kCompetitorShare;
  near_ = rows_near_labels(rows.matrix, rows.labels, outputs,
                           std::max<int64_t>(1, competitors * outputs / count));
}

OutputWeights Trainer::train_output(int32_t output) {
  return training_.problem == ProblemType::regression ? train_number() : train_label(output);
}

OutputWeights Trainer::train_label(int32_t label) {
  std::vector<uint8_t> has_label(size_t(rows_.matrix.rows()));
  int64_t own = 0;
  for (size_t i = 0; i < has_label.size(); ++i) {
    const auto labels = rows_.labels[i];
    has_label[i] = std::find(labels.begin(), labels.end(), label) != labels.end();
    own += has_label[i];
  }
  const float infinity = std::numeric_limits<float>::infinity();
  if (own == 0) return {label, -infinity, {}};
  if (own == rows_.matrix.rows()) return {label, infinity, {}};
  if (!near_.empty()) return train_selected(label, own, has_label);
  std::vector<double> y(has_label.size());
  for (size_t i = 0; i < y.size(); ++i) y[i] = has_label[i] ? 1 : -1;
  return train_one(rows_.matrix, y, L2R_L2LOSS_SVC_DUAL, label);
}

OutputWeights Trainer::train_selected(int32_t label, int64_t own,
                                      const std::vector<uint8_t>& has_label) {
  std::vector<uint8_t> chosen = has_label;
  const auto& near = near_[size_t(label)];
  for (uint32_t row : near) chosen[row] = 1;
  const int64_t sampled = others_ - others_ / kCompetitorShare + kOthersOfARow * own;
  const int64_t stride = std::max<int64_t>(1, rows_.matrix.rows() / sampled);
  for (int64_t i = label % stride; i < rows_.matrix.rows(); i += stride) chosen[size_t(i)] = 1;
  std::vector<uint32_t> rows;
  std::vector<double> y;
  for (uint32_t i = 0; i < chosen.size(); ++i) {
    if (!chosen[i]) continue;
    rows.push_back(i);
    y.push_back(has_label[i] ? 1 : -1);
  }
  if (int64_t(rows.size()) == rows_.matrix.rows()) {  // avoids a copy of all rows
    return train_one(rows_.matrix, y, L2R_L2LOSS_SVC_DUAL, label);
  }
  OutputWeights out = train_one(selection_.select(rows), y, L2R_L2LOSS_SVC_DUAL, label);
  for (Feature& weight : out.weights) {
    weight.id = uint32_t(selection_.indices()[weight.id + DesignMatrix::kFirstFeature] -
                         DesignMatrix::kFirstFeature);
  }
  return out;
}

// Trains on numbers scaled to mean 0 and variance 1.
OutputWeights Trainer::train_number() {
  std::vector<double> y = rows_.targets;
  double mean = 0, variance = 0;
  for (double target : y) mean += target / double(y.size());
  for (double target : y) variance += (target - mean) * (target - mean) / double(y.size());
  const double scale = std::sqrt(variance);
  if (scale <= 1e-12 * std::abs(mean)) return {0, float(mean), {}};
  for (double& target : y) target = (target - mean) / scale;
  OutputWeights out = train_one(rows_.matrix, y, L2R_L2LOSS_SVR_DUAL, 0);
  for (Feature& weight : out.weights) weight.value = float(double(weight.value) * scale);
  out.bias = float(double(out.bias) * scale + mean);
  return out;
}

// A worker process, and the unnamed file in memory for the weights of its outputs.
struct Worker {
  pid_t pid = -1;
  Descriptor file;
};

void write_weights(int file, const OutputWeights& part) {
  std::string bytes;
  const auto add = [&](const void* data, size_t size) {
    bytes.append(static_cast<const char*>(data), size);
  };
  const uint64_t count = part.weights.size();
  add(&part.output, sizeof part.output);
  add(&part.bias, sizeof part.bias);
  add(&count, sizeof count);
  add(part.weights.data(), count * sizeof(Feature));
  if (!write_all(file, bytes)) throw device_error("weights of n-grams: ", std::strerror(errno));
}

void read_weights(int file, std::vector<OutputWeights>& parts) {
  const MappedFile mapped(concat("/proc/self/fd/", file), ExitCode::device);
  std::string_view rest = mapped.text();
  const auto take = [&](void* out, size_t size) {
    FINETUNE_CHECK(size <= rest.size());
    std::memcpy(out, rest.data(), size);
    rest.remove_prefix(size);
  };
  while (!rest.empty()) {
    OutputWeights part;
    uint64_t count = 0;
    take(&part.output, sizeof part.output);
    take(&part.bias, sizeof part.bias);
    take(&count, sizeof count);
    part.weights.resize(count);
    take(part.weights.data(), count * sizeof(Feature));
    parts.push_back(std::move(part));
  }
}

// Workers get one output at a time, so that they end together.
class WorkerPool {
 public:
  explicit WorkerPool(int count) : workers_(size_t(count)) {
    void* memory = ::mmap(nullptr, sizeof(std::atomic<int32_t>), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw device_error("memory of n-grams: ", start_failure(errno));
    next_ = new (memory) std::atomic<int32_t>(0);
  }
  ~WorkerPool() {
    for (const Worker& worker : workers_) {
      if (worker.pid <= 0) continue;
      ::kill(worker.pid, SIGKILL);
      ::waitpid(worker.pid, nullptr, 0);
    }
    ::munmap(next_, sizeof *next_);
  }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void start(Trainer& trainer, int64_t outputs) {
    for (Worker& worker : workers_) {
      worker.file = Descriptor(::memfd_create("ngrams", MFD_CLOEXEC));
      if (worker.file.number() < 0) throw device_error("memory of n-grams: ", start_failure(errno));
      worker.pid = ::fork();
      if (worker.pid < 0) throw device_error("it cannot start a process: ", start_failure(errno));
      if (worker.pid == 0) work(worker, trainer, outputs);
    }
  }
  std::vector<OutputWeights> wait() {
    for (Worker& worker : workers_) {
      int status = 0;
      ::waitpid(std::exchange(worker.pid, -1), &status, 0);
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        throw device_error(
            "a process that trained the n-gram model failed; memory may be too small");
      }
    }
    std::vector<OutputWeights> parts;
    for (const Worker& worker : workers_) read_weights(worker.file.number(), parts);
    return parts;
  }

 private:
  [[noreturn]] void work(const Worker& worker, Trainer& trainer, int64_t outputs) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      for (int32_t output; (output = next_->fetch_add(1)) < outputs;) {
        write_weights(worker.file.number(), trainer.train_output(output));
      }
    } catch (...) {
      ::_exit(int(ExitCode::device));
    }
    ::_exit(0);
  }

  std::vector<Worker> workers_;
  std::atomic<int32_t>* next_ = nullptr;
};

NgramTable count_ngrams(int rows, const ColumnCounts& counts) {
  NgramTable table;
  NgramCutter cutter;
  Ngrams ngrams;
  SideColumns columns{column_scales(rows, counts), counts.categories};
  ScaleSums sums(columns.numbers);
  TextRowReader reader(rows);
  for (TextRow row; reader.next(row);) {
    const SideRow side = split_columns(row.text, counts);
    cutter.cut(side.text, ngrams);
    table.add(ngrams, side_features(side, columns));  // hashes do not depend on scales
    sums.add(side);
  }
  table.number();
  columns.numbers = sums.scales();
  table.set_columns(std::move(columns));
  return table;
}

TrainingRows read_rows(int file, const NgramTable& table) {
  TrainingRows rows;
  Vectorizer vectorizer(table);
  TextRowReader reader(file);
  for (TextRow row; reader.next(row);) {
    rows.matrix.add(vectorizer(row.text));
    rows.labels.add(row.labels);
    rows.targets.push_back(row.target);
  }
  return rows;
}

SparseWeights trained_weights(TrainingRows& rows, const NgramTraining& training, int64_t features) {
  Trainer trainer(rows, training);
  const int64_t outputs = training.problem == ProblemType::regression ? 1 : training.outputs;
  WorkerPool pool(int(std::clamp<int64_t>(training.workers, 1, outputs)));
  pool.start(trainer, outputs);
  const std::vector<OutputWeights> parts = pool.wait();
  return {features, std::max<int64_t>(1, training.outputs), parts};
}

void features_of(const DesignMatrix& matrix, size_t row, std::vector<Feature>& out) {
  out.clear();
  for (const feature_node& node : matrix.row(int64_t(row))) {
    out.push_back({uint32_t(node.index - DesignMatrix::kFirstFeature), float(node.value)});
  }
}

// Sums that are equal if the model cannot tell the texts apart.
std::vector<uint64_t> vector_sums(const DesignMatrix& matrix) {
  std::vector<uint64_t> sums;
  for (int64_t row = 0; row < matrix.rows(); ++row) {
    uint64_t sum = 0xCBF29CE484222325;  // FNV-1a
    for (const feature_node& node : matrix.row(row)) {
      sum = (sum ^ uint64_t(node.index)) * 0x100000001B3;
      sum = (sum ^ std::bit_cast<uint32_t>(float(node.value))) * 0x100000001B3;
    }
    sums.push_back(sum);
  }
  return sums;
}

TrainingRows rows_outside(const TrainingRows& all, std::span<const int32_t> fold_of, int32_t fold) {
  TrainingRows out;
  std::vector<Feature> features;
  for (size_t row = 0; row < fold_of.size(); ++row) {
    if (fold_of[row] == fold) continue;
    features_of(all.matrix, row, features);
    out.matrix.add(features);
    out.labels.add(all.labels[row]);
    out.targets.push_back(all.targets[row]);
  }
  return out;
}

}  // namespace

NgramModel train_ngram_model(int rows, const NgramTraining& training) {
  set_print_string_function([](const char*) {});
  NgramTable table = count_ngrams(rows, training.columns);
  const int64_t features = table.size();
  SparseWeights weights;
  {
    TrainingRows data = read_rows(rows, table);
    weights = trained_weights(data, training, features);
  }
  return {std::make_unique<const NgramTable>(std::move(table)), std::move(weights)};
}

std::vector<float> out_of_fold_scores(int file, const NgramTraining& training, int folds) {
  set_print_string_function([](const char*) {});
  const NgramTable table = count_ngrams(file, training.columns);
  const TrainingRows all = read_rows(file, table);
  const std::vector<int32_t> fold_of = folds_of(vector_sums(all.matrix), all.labels, folds);
  const auto outputs = size_t(training.outputs);
  std::vector<float> out(fold_of.size() * outputs, -kUnseenScore);
  std::vector<double> scores(outputs);
  std::vector<Feature> features;
  for (int32_t fold = 0; fold < folds; ++fold) {
    TrainingRows others = rows_outside(all, fold_of, fold);
    if (others.targets.empty() || others.targets.size() == fold_of.size()) continue;
    const SparseWeights weights = trained_weights(others, training, table.size());
    for (size_t row = 0; row < fold_of.size(); ++row) {
      if (fold_of[row] != fold) continue;
      features_of(all.matrix, row, features);
      weights.score(features, scores);
      std::transform(scores.begin(), scores.end(), out.begin() + int64_t(row * outputs),
                     [](double score) {
                       return float(std::clamp<double>(score, -kUnseenScore, kUnseenScore));
                     });
    }
  }
  return out;
}

std::vector<int32_t> labels_of_scores(std::span<const double> scores, ProblemType problem) {
  if (problem == ProblemType::single_label) {
    return {int32_t(std::max_element(scores.begin(), scores.end()) - scores.begin())};
  }
  std::vector<int32_t> labels;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > 0) labels.push_back(int32_t(i));
  }
  return labels;
}

}  // namespace finetune
