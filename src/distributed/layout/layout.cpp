// Coordinates of ranks, and the groups of each axis.
#include "distributed/layout/layout.h"

#include <algorithm>

#include "core/error.h"
#include "core/text/text.h"

namespace finetune {
namespace {

constexpr char kLetters[] = {'D', 'P', 'T'};  // in the order of Axis

// An upper bound of processes that keeps the product of the three sizes small.
constexpr int64_t kMostProcesses = int64_t{1} << 24;

}  // namespace

Placement parse_placement(std::string_view word) {
  if (word == "cluster") return kCluster;
  if (word == "spread") return kSpread;
  Placement axes = kCluster;
  std::sort(axes.begin(), axes.end());
  do {
    if (letters_of(axes) == word) return axes;
  } while (std::next_permutation(axes.begin(), axes.end()));
  throw usage_error("--placement ", in_quotes(word),
                    ": must be cluster (DPT), spread (TPD) or a permutation of the letters D, P "
                    "and T, the fastest last");
}

std::string letters_of(const Placement& placement) {
  std::string letters;
  for (Axis axis : placement) letters += kLetters[size_t(axis)];
  return letters;
}

Layout::Layout(int64_t world, int64_t pp, int64_t tp, Placement placement) : placement_(placement) {
  FINETUNE_CHECK(world >= 1 && pp >= 1 && tp >= 1);
  if (world > kMostProcesses) {
    throw usage_error("a world of ", world, " processes is too large: at most ", kMostProcesses,
                      " are possible");
  }
  if (pp > world || tp > world || world % (pp * tp) != 0) {
    throw usage_error(world, world == 1 ? " process is" : " processes are",
                      " not a multiple of --pp ", pp, " times --tp ", tp);
  }
  sizes_ = {int(world / (pp * tp)), int(pp), int(tp)};
}

int Layout::stride(Axis axis) const {
  int stride = 1;
  for (size_t i = placement_.size(); placement_[--i] != axis;) stride *= size(placement_[i]);
  return stride;
}

Coordinates Layout::at(int rank) const {
  FINETUNE_CHECK(rank >= 0 && rank < world());
  auto coordinate = [&](Axis axis) { return rank / stride(axis) % size(axis); };
  return {coordinate(Axis::data), coordinate(Axis::pipeline), coordinate(Axis::tensor)};
}

int Layout::rank_of(Coordinates place) const {
  int rank = 0;
  for (Axis axis : kAxes) {
    FINETUNE_CHECK(place.of(axis) >= 0 && place.of(axis) < size(axis));
    rank += place.of(axis) * stride(axis);
  }
  return rank;
}

std::vector<int> Layout::group(Axis axis, int rank) const {
  const int first = rank - at(rank).of(axis) * stride(axis);
  std::vector<int> members;
  for (int i = 0; i < size(axis); ++i) members.push_back(first + i * stride(axis));
  return members;
}

std::vector<std::vector<int>> Layout::groups(Axis axis) const {
  std::vector<std::vector<int>> all;
  for (int rank = 0; rank < world(); ++rank) {
    if (at(rank).of(axis) == 0) all.push_back(group(axis, rank));
  }
  return all;
}

int host_of(int rank, const std::vector<int>& first_rank) {
  const auto next = std::upper_bound(first_rank.begin(), first_rank.end(), rank);
  FINETUNE_CHECK(next != first_rank.begin() && next != first_rank.end());
  return int(next - first_rank.begin()) - 1;
}

std::vector<int> hosts_of(const std::vector<int>& group, const std::vector<int>& first_rank) {
  std::vector<int> hosts;
  for (int rank : group) hosts.push_back(host_of(rank, first_rank));
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  return hosts;
}

int groups_across_hosts(const Layout& layout, Axis axis, const std::vector<int>& first_rank) {
  const std::vector<std::vector<int>> groups = layout.groups(axis);
  return int(std::count_if(groups.begin(), groups.end(), [&](const std::vector<int>& group) {
    return hosts_of(group, first_rank).size() > 1;
  }));
}

std::string network_warning(const Layout& layout, const std::vector<int>& first_rank) {
  const int across = groups_across_hosts(layout, Axis::tensor, first_rank);
  if (across == 0) return {};
  return concat(across, " of ", layout.world() / layout.tp(),
                " groups of tensor ranks are on several hosts: each layer then waits for the "
                "network at every sum (--placement, or a smaller --tp)");
}

void check_tensor_shards(int64_t tensor_shards, int64_t tp) {
  FINETUNE_CHECK(tensor_shards >= 1 && tp >= 1);
  if (tensor_shards % tp == 0) return;
  throw usage_error("--tp ", tp, " does not divide --tensor-shards ", tensor_shards);
}

void check_tensor_shards(int64_t tensor_shards, int64_t tp, int64_t heads, int64_t intermediate) {
  check_tensor_shards(tensor_shards, tp);
  for (const auto& [count, what] : {std::pair(heads, " attention heads"),
                                    std::pair(intermediate, " columns of the feed-forward part")}) {
    if (count % tensor_shards == 0) continue;
    throw usage_error("the model's ", count, what, " are not a multiple of --tensor-shards ",
                      tensor_shards);
  }
}

}  // namespace finetune
