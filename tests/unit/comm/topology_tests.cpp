// How processes are numbered over hosts and divided into groups.
#include <doctest/doctest.h>

#include "comm/topology.h"

using namespace finetune;
using Hosts = std::vector<std::string>;

TEST_CASE("processes are numbered host by host, in the launcher's order inside each") {
  // Ranks placed on the hosts in turn, as by mpirun --map-by node.
  const Hosts hosts = {"b", "a", "c", "b", "a", "b"};
  const Topology t = number_processes(hosts, 4);
  CHECK(t.launcher_rank == std::vector{0, 3, 5, 1, 4, 2});
  CHECK(t.first_rank == std::vector{0, 3, 5, 6});
  CHECK(t.size() == 6);
  CHECK(t.hosts() == 3);
  CHECK(t.rank == 4);
  CHECK(t.host == 1);
  CHECK(t.local_rank == 1);
  CHECK(t.local_size() == 2);
  CHECK(t.local_size(0) == 3);
  CHECK(t.columns() == 1);
  CHECK(number_processes(hosts, 0).rank == 0);
}

TEST_CASE("one host") {
  const Topology t = number_processes({"a", "a", "a"}, 2);
  CHECK(t.launcher_rank == std::vector{0, 1, 2});
  CHECK(t.hosts() == 1);
  CHECK(t.rank == 2);
  CHECK(t.columns() == 3);
}

TEST_CASE("hosts are cut into groups of neighbours") {
  CHECK(cut_hosts({"a", "a", "a", "a"}, 2) == Hosts{"a#0", "a#0", "a#1", "a#1"});
  CHECK(cut_hosts({"a", "a", "a"}, 2) == Hosts{"a#0", "a#0", "a#1"});
  CHECK(cut_hosts({"a", "b", "a", "b"}, 2) == Hosts{"a#0", "b#0", "a#1", "b#1"});
  CHECK(cut_hosts({"a", "a"}, 3) == Hosts{"a#0", "a#1"});
  CHECK(cut_hosts({"a", "a"}, 1) == Hosts{"a#0", "a#0"});
}

TEST_CASE("the key of a host is the same each time") {
  CHECK(host_key() == host_key());
  CHECK(host_key().size() > 40);
  CHECK(host_key().size() < 512);
}

TEST_CASE("a group's ranks and hosts are numbered anew, in the same order") {
  // Ranks 0, 1 | 2, 3, 4 | 5 on three hosts; this process is rank 4.
  const Topology whole = number_processes({"a", "a", "b", "b", "b", "c"}, 4);
  CHECK(whole.host_of(0) == 0);
  CHECK(whole.host_of(1) == 0);
  CHECK(whole.host_of(2) == 1);
  CHECK(whole.host_of(4) == 1);
  CHECK(whole.host_of(5) == 2);

  const Topology across = subset(whole, {1, 2, 4, 5});
  CHECK(across.first_rank == std::vector{0, 1, 3, 4});
  CHECK(across.launcher_rank == std::vector{1, 2, 4, 5});
  CHECK(across.rank == 2);
  CHECK(across.host == 1);
  CHECK(across.local_rank == 1);
  CHECK(across.columns() == 1);

  const Topology inside = subset(whole, {2, 4});  // the first host has no member
  CHECK(inside.first_rank == std::vector{0, 2});
  CHECK(inside.hosts() == 1);
  CHECK(inside.rank == 1);
  CHECK(inside.host == 0);
  CHECK(inside.local_rank == 1);

  const Topology again = subset(across, {0, 2});  // a group of a group
  CHECK(again.launcher_rank == std::vector{1, 4});
  CHECK(again.first_rank == std::vector{0, 1, 2});
  CHECK(again.rank == 1);
  CHECK(again.host == 1);
  CHECK(again.local_rank == 0);

  const Topology alone = subset(whole, {4});
  CHECK(alone.size() == 1);
  CHECK(alone.rank == 0);
  CHECK(alone.columns() == 1);
}
