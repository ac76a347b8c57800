// The parts of the model that a planned run's processes have, and the memory of all of them.
#pragma once

#include <cstdint>
#include <functional>

#include "distributed/layout/stage_split.h"
#include "model/head.h"
#include "ops/backend.h"
#include "tasks/task.h"
#include "train/options/options.h"
#include "train/plan/memory_forecast.h"

namespace finetune {

class PlannedParts {
 public:
  // Of resolved options, on the processes of one host. Error(usage) where they cannot have the
  // layout. `backend` and `samples` must outlive this.
  PlannedParts(const TrainOptions& options, const EncoderConfig& config, Head head,
               const Layout& layout, Backend& backend, const SampleView& samples);

  bool whole() const { return layout_.pp() * layout_.tp() == 1; }
  // Of rank 0, which reads the data.
  ModelPart first() const { return part_of(split_, layout_, *options_.tensor_shards, 0); }
  const Layout& layout() const { return layout_; }

  // What each process needs and all together; numbers but those of the part are the same for all.
  // `micro_batches`, where not 0, and `tokens` stand in for the run's. The memory is rank 0's.
  struct Common {
    int lowest_layer;
    std::vector<bool> words;
    int64_t weight_file_bytes, program_bytes, program_file_bytes, data_bytes;
  };
  MemoryForecast forecast(const Common& common, const Workload& work, int64_t micro_batches,
                          int64_t tokens, bool recompute) const;
  // Of a process that computes on a GPU, which has the whole model.
  MemoryForecast forecast_beside_device(const Common& common) const;

 private:
  // forecast(run) of a rank, of activations in so many slots.
  using Forecast = std::function<MemoryForecast(const RunShape& run)>;
  MemoryForecast forecast_of(int rank, const Common& common, int slots,
                             const Forecast& forecast) const;

  TrainOptions options_;
  EncoderConfig config_;
  Head head_;
  Layout layout_;
  StageSplit split_;
  Backend& backend_;
  SampleView samples_;
};

}  // namespace finetune
