// Cuts samples in memory into chunks, names files in a directory, and tells of non-finite outputs.
#include "tasks/evaluator.h"

#include <algorithm>
#include <cmath>

#include "core/files/files.h"
#include "data/packing.h"
#include "tasks/baseline.h"

namespace finetune {
namespace {

constexpr int64_t kChunkRows = 1024;

class FileOutput final : public PredictionOutput {
 public:
  explicit FileOutput(const std::filesystem::path& path) : file_(path) {}
  void write(std::string_view text) override { file_.write(text); }
  void flush() override {}
  void complete() override { file_.complete(); }
  void commit() override { file_.commit(); }

 private:
  AtomicFile file_;
};

}  // namespace

int64_t SampleSetChunks::rows() const {
  return set_.first_window.empty() ? set_.samples.size() : int64_t(set_.first_window.size()) - 1;
}

double SampleSetChunks::share() const {
  return rows() == 0 ? 1 : double(given_) / double(rows());
}

std::optional<SampleChunk> SampleSetChunks::next() {
  const int64_t begin = given_;
  if (begin == rows()) return std::nullopt;
  given_ = std::min(rows(), begin + kChunkRows);
  if (set_.first_window.empty()) return SampleChunk{slice(set_.samples, {begin, given_})};
  const auto windows =
      std::span(set_.first_window).subspan(size_t(begin), size_t(given_ - begin) + 1);
  return SampleChunk{slice(set_.samples, {windows.front(), windows.back()}), windows};
}

OpenOutput files_in(const std::filesystem::path& directory) {
  return [directory](const std::string& path) {
    return std::make_unique<FileOutput>(directory / path);
  };
}

bool all_finite(std::span<const float> outputs) {
  return std::all_of(outputs.begin(), outputs.end(), [](float x) { return std::isfinite(x); });
}

Error not_finite(const std::string& of) {
  return Error(ExitCode::diverged, concat("the model's outputs are not finite, first those for ",
                                          of, ": its weights have diverged or are damaged"));
}

Baselines Evaluator::baselines() {
  return {};
}

}  // namespace finetune
