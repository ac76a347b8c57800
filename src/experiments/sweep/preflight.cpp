// Orders a sweep's runs by their data, finds their lengths and checks them.
#include "experiments/sweep/preflight.h"

#include <algorithm>
#include <numeric>

#include "comm/agreement.h"
#include "core/log.h"
#include "train/prepare/dry_run.h"

namespace finetune {

std::vector<size_t> in_order_of_data(const Grid& grid, std::vector<size_t> runs) {
  std::vector<std::string> keys;
  auto place = [&](size_t run) {
    const std::string key = SharedInputs::key(grid.runs[run].options);
    const auto found = std::find(keys.begin(), keys.end(), key);
    if (found != keys.end()) return found - keys.begin();
    keys.push_back(key);
    return ptrdiff_t(keys.size()) - 1;
  };
  std::vector<std::pair<ptrdiff_t, size_t>> order;
  for (size_t run : runs) order.emplace_back(place(run), run);
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < runs.size(); ++i) runs[i] = order[i].second;
  return runs;
}

std::vector<RunLength> lengths_of(const Grid& grid, SharedInputs& inputs) {
  std::vector<RunLength> lengths(grid.runs.size());
  std::vector<size_t> all(lengths.size());
  std::iota(all.begin(), all.end(), size_t{0});
  std::string key;
  std::optional<RecipeFacts> facts;
  for (size_t run : in_order_of_data(grid, all)) {
    const TrainOptions& options = grid.runs[run].options;
    const std::string own = SharedInputs::key(options);
    if (own != key) facts = facts_with_evaluation(options, inputs);
    if (!facts) throw usage_error("--halving needs evaluation data: give eval or eval-fraction");
    key = own;
    lengths[run] = length_of(options, *facts);
  }
  return lengths;
}

void check_runs(const Grid& grid, const std::vector<size_t>& runs, Communicator& comm,
                SharedInputs& inputs) {
  if (runs.empty()) return;
  comm.note("reading data and model", -1);
  agree_on_errors(comm, [&] {
    if (comm.local_rank() != 0) return;
    std::vector<NamedRun> named;
    for (size_t run : runs) {
      const SweepRun& one = grid.runs[run];
      named.push_back({one.options, concat(grid.file, ": run ", one.name)});
    }
    check_options_of(named, comm.size(), inputs);
  });
  discard_held_lines();
}

}  // namespace finetune
