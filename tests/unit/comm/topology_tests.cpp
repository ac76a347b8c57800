// How processes are numbered over hosts and cut into groups.
#include <doctest/doctest.h>

#include "comm/topology.h"

using namespace finetune;
using Hosts = std::vector<std::string>;

TEST_CASE("processes are numbered host by host, in the launcher's order inside each") {
  // Ranks placed on the hosts in turn, as mpirun --map-by node does.
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
