// Layout: which rank is which replica, pipeline stage and tensor rank. Pure arithmetic.
// world = dp * pp * tp. A placement orders the three axes; coordinates of the right-most one vary
// fastest over ranks, which are sorted by host (comm/topology.h). Same words and tables as
// SageMaker's model-parallel library.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace finetune {

enum class Axis { data, pipeline, tensor };

inline constexpr std::array<Axis, 3> kAxes{Axis::data, Axis::pipeline, Axis::tensor};

using Placement = std::array<Axis, 3>;  // slowest first

inline constexpr Placement kCluster{Axis::data, Axis::pipeline, Axis::tensor};  // DPT
inline constexpr Placement kSpread{Axis::tensor, Axis::pipeline, Axis::data};   // TPD

// "cluster", "spread" or a permutation of the letters D, P and T. Error(usage) for another word.
Placement parse_placement(std::string_view word);
std::string letters_of(const Placement& placement);  // "DPT"

struct Coordinates {
  int d = 0, p = 0, t = 0;  // replica, stage, tensor rank

  int of(Axis axis) const { return axis == Axis::data ? d : axis == Axis::pipeline ? p : t; }
  friend bool operator==(const Coordinates&, const Coordinates&) = default;
};

class Layout {
 public:
  // One process.
  Layout() = default;
  // Error(usage) where `world` is not a multiple of pp * tp, naming the numbers.
  Layout(int64_t world, int64_t pp, int64_t tp, Placement placement = kCluster);

  int world() const { return dp() * pp() * tp(); }
  int dp() const { return size(Axis::data); }
  int pp() const { return size(Axis::pipeline); }
  int tp() const { return size(Axis::tensor); }
  int size(Axis axis) const { return sizes_[size_t(axis)]; }
  const Placement& placement() const { return placement_; }

  Coordinates at(int rank) const;
  int rank_of(Coordinates place) const;
  // Ranks that differ from `rank` in `axis` alone, itself among them. They rise with the
  // coordinate, so that a rank's number in its group is its coordinate.
  std::vector<int> group(Axis axis, int rank) const;
  // All groups of an axis, by their lowest rank.
  std::vector<std::vector<int>> groups(Axis axis) const;

 private:
  int stride(Axis axis) const;

  std::array<int, 3> sizes_{1, 1, 1};  // in the order of Axis
  Placement placement_ = kCluster;
};

// `first_rank` of each host, and the world's size last, as Topology has it.
int host_of(int rank, const std::vector<int>& first_rank);
// Hosts that have members of the group, in order.
std::vector<int> hosts_of(const std::vector<int>& group, const std::vector<int>& first_rank);
// Groups of the axis that have members on several hosts.
int groups_across_hosts(const Layout& layout, Axis axis, const std::vector<int>& first_rank);

// A warning where groups of tensor ranks have members on several hosts; else empty.
std::string network_warning(const Layout& layout, const std::vector<int>& first_rank);

// Error(usage), naming the numbers, where tensor shards cannot be dealt to tensor ranks, or heads
// and the feed-forward's columns not to tensor shards.
void check_tensor_shards(int64_t tensor_shards, int64_t tp);
void check_tensor_shards(int64_t tensor_shards, int64_t tp, int64_t heads, int64_t intermediate);

}  // namespace finetune
