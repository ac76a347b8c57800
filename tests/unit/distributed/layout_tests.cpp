// Layout: the six placement tables, groups and errors.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "../contains.h"
#include "core/error.h"
#include "distributed/layout/layout.h"
#include "error_line.h"

using namespace finetune;
using test::contains;

namespace {

using Groups = std::vector<std::vector<int>>;

// "01 23 45 67"
Groups groups_from(const std::string& digits) {
  Groups groups(1);
  for (char c : digits) {
    if (c == ' ') {
      groups.emplace_back();
    } else {
      groups.back().push_back(c - '0');
    }
  }
  return groups;
}

std::string message_of(auto&& act) {
  return test::error_line(ExitCode::usage, act);
}

}  // namespace

TEST_CASE("the six placements of 2 x 2 x 2 match SageMaker's tables") {
  struct Row {
    const char *word, *places, *tensor, *pipeline, *data;
  };
  constexpr Row rows[] = {
      {"DPT", "000 001 010 011 100 101 110 111", "01 23 45 67", "02 13 46 57", "04 15 26 37"},
      {"DTP", "000 010 001 011 100 110 101 111", "02 13 46 57", "01 23 45 67", "04 15 26 37"},
      {"PDT", "000 001 100 101 010 011 110 111", "01 23 45 67", "04 15 26 37", "02 13 46 57"},
      {"PTD", "000 100 001 101 010 110 011 111", "02 13 46 57", "04 15 26 37", "01 23 45 67"},
      {"TDP", "000 010 100 110 001 011 101 111", "04 15 26 37", "01 23 45 67", "02 13 46 57"},
      {"TPD", "000 100 010 110 001 101 011 111", "04 15 26 37", "02 13 46 57", "01 23 45 67"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.word);
    const Layout layout(8, 2, 2, parse_placement(row.word));
    CHECK(letters_of(layout.placement()) == row.word);
    std::string places;
    for (int rank = 0; rank < 8; ++rank) {
      const Coordinates at = layout.at(rank);
      places += std::to_string(at.d) + std::to_string(at.p) + std::to_string(at.t) +
                (rank < 7 ? " " : "");
      CHECK(layout.rank_of(at) == rank);
    }
    CHECK(places == row.places);
    CHECK(layout.groups(Axis::tensor) == groups_from(row.tensor));
    CHECK(layout.groups(Axis::pipeline) == groups_from(row.pipeline));
    CHECK(layout.groups(Axis::data) == groups_from(row.data));
  }
  CHECK(parse_placement("cluster") == parse_placement("DPT"));
  CHECK(parse_placement("spread") == parse_placement("TPD"));
}

TEST_CASE("without tensor ranks spread and cluster match SageMaker's example") {
  const Layout spread(8, 2, 1, kSpread), cluster(8, 2, 1, kCluster);
  CHECK(spread.groups(Axis::pipeline) == groups_from("04 15 26 37"));
  CHECK(spread.groups(Axis::data) == groups_from("0123 4567"));
  CHECK(cluster.groups(Axis::pipeline) == groups_from("01 23 45 67"));
  CHECK(cluster.groups(Axis::data) == groups_from("0246 1357"));
}

TEST_CASE("coordinates and ranks are one to one, and groups cut the world") {
  for (const char* word : {"DPT", "DTP", "PDT", "PTD", "TDP", "TPD"}) {
    const Layout layout(2 * 3 * 5, 3, 5, parse_placement(word));
    CHECK(layout.dp() == 2);
    CHECK(layout.world() == 30);
    std::set<int> ranks;
    for (int d = 0; d < 2; ++d) {
      for (int p = 0; p < 3; ++p) {
        for (int t = 0; t < 5; ++t) {
          const int rank = layout.rank_of({d, p, t});
          ranks.insert(rank);
          CHECK(layout.at(rank) == Coordinates{d, p, t});
          // A rank's index in its group is its coordinate.
          for (Axis axis : kAxes) {
            const std::vector<int> group = layout.group(axis, rank);
            CHECK(group[size_t(layout.at(rank).of(axis))] == rank);
            CHECK(std::is_sorted(group.begin(), group.end()));
          }
        }
      }
    }
    CHECK(ranks.size() == 30);
    for (Axis axis : kAxes) {
      std::multiset<int> members;
      for (const auto& group : layout.groups(axis)) {
        CHECK(int(group.size()) == layout.size(axis));
        members.insert(group.begin(), group.end());
      }
      CHECK(members.size() == 30);
      CHECK(std::set<int>(members.begin(), members.end()) == ranks);
    }
  }
  CHECK(Layout().world() == 1);
  CHECK(Layout().groups(Axis::data) == Groups{{0}});
}

TEST_CASE("which hosts a group is on") {
  const std::vector<int> hosts = {0, 4, 8};
  CHECK(host_of(3, hosts) == 0);
  CHECK(host_of(4, hosts) == 1);
  CHECK(hosts_of({1, 2}, hosts) == std::vector{0});
  CHECK(hosts_of({7, 3}, hosts) == std::vector{0, 1});
  const Layout cluster(8, 2, 2, kCluster), spread(8, 2, 2, kSpread);
  CHECK(groups_across_hosts(cluster, Axis::tensor, hosts) == 0);
  CHECK(groups_across_hosts(cluster, Axis::pipeline, hosts) == 0);
  CHECK(groups_across_hosts(cluster, Axis::data, hosts) == 4);
  CHECK(groups_across_hosts(spread, Axis::tensor, hosts) == 4);
  CHECK(groups_across_hosts(spread, Axis::data, hosts) == 0);
  // Hosts of different size: 0-2 and 3-7.
  CHECK(groups_across_hosts(cluster, Axis::tensor, {0, 3, 8}) == 1);
}

TEST_CASE("impossible layouts are one line with their numbers") {
  CHECK(contains(message_of([] { Layout(8, 3, 1); }),
                 "8 processes are not a multiple of --pp 3 times --tp 1"));
  CHECK(contains(message_of([] { Layout(1, 1, 2); }),
                 "1 process is not a multiple of --pp 1 times --tp 2"));
  CHECK(contains(message_of([] { Layout(8, int64_t{1} << 40, int64_t{1} << 40); }), "--pp 109951"));
  CHECK(contains(message_of([] { Layout(int64_t{1} << 40, 1, 1); }),
                 "at most 16777216 are possible"));
  for (const char* word : {"", "dpt", "DP", "DPTD", "DDT", "near"}) {
    CHECK(contains(message_of([&] { parse_placement(word); }), "--placement"));
  }
  CHECK(contains(message_of([] { check_tensor_shards(4, 3, 12, 3072); }),
                 "--tp 3 does not divide --tensor-shards 4"));
  CHECK(contains(message_of([] { check_tensor_shards(8, 2, 12, 3072); }),
                 "12 attention heads are not a multiple of --tensor-shards 8"));
  CHECK(contains(message_of([] { check_tensor_shards(4, 2, 12, 3074); }),
                 "3074 columns of the feed-forward part are not a multiple of --tensor-shards 4"));
  check_tensor_shards(4, 2, 12, 3072);
}

TEST_CASE("tensor ranks on several hosts cause a warning") {
  CHECK(network_warning(Layout(4, 1, 2), {0, 2, 4}).empty());
  CHECK(contains(network_warning(Layout(4, 1, 2), {0, 3, 4}), "1 of 2 groups of tensor ranks"));
  CHECK(contains(network_warning(Layout(4, 1, 2, kSpread), {0, 2, 4}), "2 of 2 groups"));
  CHECK(contains(message_of([] { check_tensor_shards(3, 2); }), "--tp 2"));
}
