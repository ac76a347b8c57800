// How many checkpoints are on the disk at once, and which stay.
#include <doctest/doctest.h>

#include "../checkpoint_fixture.h"
#include "error_line.h"
#include "temporary_directory.h"
#include "train/plan/disk_forecast.h"

using namespace finetune;
using namespace finetune::test;

namespace {

// The number of checkpoints at once, and whether some stay.
std::pair<int64_t, bool> checkpoints(const TrainOptions& options, int64_t steps, bool has_eval) {
  const ParameterTable table(tiny_config(), Head{HeadKind::sequence, 3});
  const DiskForecast disk = forecast_disk(options, table, steps, 10, has_eval);
  CHECK(disk.peak >= uint64_t(disk.checkpoints) * disk.checkpoint);
  CHECK(disk.peak <= uint64_t(disk.checkpoints) * disk.checkpoint + disk.model);
  return {disk.checkpoints, disk.left > disk.model};
}

}  // namespace

TEST_CASE("checkpoints at once: those kept, the best one, and the one being written") {
  using Found = std::pair<int64_t, bool>;
  TrainOptions options;
  CHECK(checkpoints(options, 10, false) == Found{1, false});  // one epoch
  CHECK(checkpoints(options, 11, false) == Found{2, false});
  CHECK(checkpoints(options, 100, false) == Found{3, false});
  CHECK(checkpoints(options, 100, true) == Found{4, false});
  CHECK(checkpoints(options, 20, true) == Found{2, false});  // evaluated where they are written
  options.eval_every = 5;
  CHECK(checkpoints(options, 20, true) == Found{4, false});
  options.keep_checkpoints = 0;
  CHECK(checkpoints(options, 100, true) == Found{3, false});
  options.keep_checkpoints = 9;
  CHECK(checkpoints(options, 1000, true) == Found{11, true});
  options.save_every = 1;
  CHECK(checkpoints(options, INT64_MAX, true) == Found{11, true});
}

TEST_CASE("too little disk space gives one line; replaced files count as free") {
  test::TemporaryDirectory directory;
  TrainOptions options;
  options.output = (directory / "not/yet/there").string();
  DiskForecast disk;
  disk.peak = 1 << 20;
  require_disk(options, disk);
  disk.peak = uint64_t(1) << 60;
  CHECK_THROWS_WITH_AS(require_disk(options, disk), doctest::Contains("MiB are free"), Error);
  const auto advice_with = [&](std::optional<int64_t> kept) {
    options.keep_checkpoints = kept;
    return test::error_line(ExitCode::model, [&] { require_disk(options, disk); });
  };
  for (const std::optional<int64_t> kept : {std::optional<int64_t>(), {2}}) {
    CHECK(advice_with(kept).ends_with("or keep fewer with --keep-checkpoints"));
  }
  for (int64_t fewest : {0, 1}) CHECK(advice_with(fewest).ends_with("choose another disk"));
  CHECK(!fs::exists(directory / "not"));
}
