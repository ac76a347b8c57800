// Layout: the replica, pipeline stage and tensor rank of each rank. Pure arithmetic: world = dp *
// pp * tp. A placement orders the three axes; the coordinate of the right-most axis varies fastest
// over ranks, which are sorted by host (comm/topology.h). The words and tables are those of
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

// "cluster", "spread" or a permutation of the letters D, P and T. Error(usage) for any other word.
Placement parse_placement(std::string_view word);
std::string letters_of(const Placement& placement);  // "DPT"

struct Coordinates {
  int d = 0, p = 0, t = 0;  // replica, stage, tensor rank

  int of(Axis axis) const { return axis == Axis::data ? d : axis == Axis::pipeline ? p : t; }
  friend bool operator==(const Coordinates&, const Coordinates&) = default;
};

class Layout {
 public:
  // A single process.
  Layout() = default;
  // Error(usage) with the numbers if `world` is not a multiple of pp * tp.
  Layout(int64_t world, int64_t pp, int64_t tp, Placement placement = kCluster);

  int world() const { return dp() * pp() * tp(); }
  int dp() const { return size(Axis::data); }
  int pp() const { return size(Axis::pipeline); }
  int tp() const { return size(Axis::tensor); }
  int size(Axis axis) const { return sizes_[size_t(axis)]; }
  const Placement& placement() const { return placement_; }

  Coordinates at(int rank) const;
  int rank_of(Coordinates place) const;
  // The ranks that differ from `rank` at most in `axis`. They ascend with the coordinate, so a
  // rank's index in its group is its coordinate.
  std::vector<int> group(Axis axis, int rank) const;
  // All groups of an axis, ordered by their lowest rank.
  std::vector<std::vector<int>> groups(Axis axis) const;

 private:
  int stride(Axis axis) const;

  std::array<int, 3> sizes_{1, 1, 1};  // in the order of Axis
  Placement placement_ = kCluster;
};

// `first_rank`: of each host, and the world's size last, as in Topology.
int host_of(int rank, const std::vector<int>& first_rank);
// The hosts of the group's members, in order.
std::vector<int> hosts_of(const std::vector<int>& group, const std::vector<int>& first_rank);
// The number of groups of the axis that span several hosts.
int groups_across_hosts(const Layout& layout, Axis axis, const std::vector<int>& first_rank);

// Returns a warning if groups of tensor ranks span several hosts, else "".
std::string network_warning(const Layout& layout, const std::vector<int>& first_rank);

// Error(usage) with the numbers if tensor shards cannot be divided evenly among tensor ranks, or
// heads and feed-forward columns among tensor shards.
void check_tensor_shards(int64_t tensor_shards, int64_t tp);
void check_tensor_shards(int64_t tensor_shards, int64_t tp, int64_t heads, int64_t intermediate);

}  // namespace finetune
