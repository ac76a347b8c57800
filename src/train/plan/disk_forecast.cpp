// Counts the checkpoints of a run and checks the free disk space.
#include "train/plan/disk_forecast.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/files/files.h"
#include "train/checkpoint/checkpoint_store.h"

namespace finetune {
namespace {

constexpr uint64_t kMebibyte = 1 << 20;

int64_t times(int64_t steps, int64_t every) {
  return (steps - 1) / every + 1;  // the last step always counts
}

// An upper bound: the checkpoints at regular steps, and one for each evaluation.
int64_t written_checkpoints(const TrainOptions& o, int64_t steps, int64_t epoch_steps,
                            bool has_eval) {
  const int64_t save = o.save_every.value_or(epoch_steps);
  const int64_t evaluate = o.eval_every.value_or(epoch_steps);
  const int64_t saves = times(steps, save);
  if (!has_eval || evaluate % save == 0) return saves;
  const int64_t evaluations = times(steps, evaluate);
  return save % evaluate == 0 ? evaluations : std::min(steps, saves + evaluations);
}

uint64_t stored_bytes(const fs::path& file) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(file, error);
  return error ? 0 : uint64_t(bytes);
}

// Bytes of an earlier run in --output that count as free: they are replaced, or part of the need.
uint64_t reusable_bytes(const TrainOptions& o) {
  const fs::path output = o.output;
  uint64_t bytes = 0;
  for (const CheckpointFile& file : find_checkpoints(output / "checkpoints")) {
    bytes += stored_bytes(file.path);
  }
  if (o.overwrite) bytes += stored_bytes(output / "model" / "model.safetensors");
  return bytes;
}

std::optional<uint64_t> free_bytes(fs::path directory) {
  struct statvfs info {};
  directory = fs::absolute(directory);
  while (::statvfs(directory.c_str(), &info) != 0) {
    if (!directory.has_relative_path()) return std::nullopt;  // unknown: do not refuse
    directory = directory.parent_path();
  }
  return uint64_t(info.f_bavail) * info.f_frsize;
}

}  // namespace

DiskForecast forecast_disk(const TrainOptions& o, const ParameterTable& table, int64_t steps,
                           int64_t epoch_steps, bool has_eval) {
  const uint64_t weights = uint64_t(table.count()) * sizeof(float);
  const int64_t written = written_checkpoints(o, steps, epoch_steps, has_eval);
  auto kept = [&](int64_t newest) { return std::min(written, newest + (has_eval ? 1 : 0)); };
  const int64_t during = kept(std::max<int64_t>(1, o.keep_checkpoints.value_or(kKeptDuringRun)));
  DiskForecast out;
  out.checkpoint = 3 * weights + kMebibyte;
  out.model = weights + kMebibyte;
  out.checkpoints = std::min(written, during + 1);
  out.peak = std::max(uint64_t(out.checkpoints) * out.checkpoint,
                      uint64_t(during) * out.checkpoint + out.model);
  const int64_t asked = o.keep_checkpoints.value_or(0);
  out.left = out.model + (asked > 0 ? uint64_t(kept(asked)) * out.checkpoint : 0);
  return out;
}

void require_disk(const TrainOptions& o, const DiskForecast& forecast) {
  const std::optional<uint64_t> available = free_bytes(o.output);
  if (!available || *available + reusable_bytes(o) >= forecast.peak) return;
  // The newest and the best checkpoint are always kept during the run.
  const bool can_keep_fewer = o.keep_checkpoints.value_or(kKeptDuringRun) > 1;
  throw model_error(
      "--output ", o.output, ": the run needs ", forecast.peak / kMebibyte + 1,
      " MiB of disk (up to ", forecast.checkpoints, " x ", forecast.checkpoint / kMebibyte,
      " MiB of checkpoints, a model of ", forecast.model / kMebibyte, " MiB), ",
      (*available + reusable_bytes(o)) / kMebibyte, " MiB are free; choose another disk",
      can_keep_fewer ? ", or keep fewer with --keep-checkpoints" : "");
}

}  // namespace finetune
