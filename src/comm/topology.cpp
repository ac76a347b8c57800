// Numbers processes host by host, and identifies a host by its kernel's ids.
#include "comm/topology.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "core/text/text.h"

namespace finetune {
namespace {

uint64_t namespace_number(const char* path) {
  struct stat info {};
  return ::stat(path, &info) == 0 ? uint64_t(info.st_ino) : 0;
}

}  // namespace

int Topology::columns() const {
  int least = size();
  for (int h = 0; h < hosts(); ++h) least = std::min(least, local_size(h));
  return least;
}

int Topology::host_of(int of_rank) const {
  const auto after = std::upper_bound(first_rank.begin(), first_rank.end(), of_rank);
  return int(after - first_rank.begin()) - 1;
}

Topology number_processes(const std::vector<std::string>& hosts, int launcher_rank) {
  std::map<std::string, int> number;
  std::vector<std::vector<int>> members;
  for (int i = 0; i < int(hosts.size()); ++i) {
    const auto [at, is_new] = number.try_emplace(hosts[size_t(i)], int(members.size()));
    if (is_new) members.emplace_back();
    members[size_t(at->second)].push_back(i);
  }
  Topology topology;
  for (int h = 0; h < int(members.size()); ++h) {
    topology.first_rank.push_back(topology.size());
    for (int i = 0; i < int(members[size_t(h)].size()); ++i) {
      const int launchers = members[size_t(h)][size_t(i)];
      if (launchers == launcher_rank) {
        topology.rank = topology.size();
        topology.host = h;
        topology.local_rank = i;
      }
      topology.launcher_rank.push_back(launchers);
    }
  }
  topology.first_rank.push_back(topology.size());
  return topology;
}

Topology subset(const Topology& whole, const std::vector<int>& ranks) {
  Topology group;
  int last_host = -1;
  for (int rank : ranks) {
    if (const int host = whole.host_of(rank); host != last_host) {
      group.first_rank.push_back(group.size());
      last_host = host;
    }
    if (rank == whole.rank) {
      group.rank = group.size();
      group.host = group.hosts();
      group.local_rank = group.rank - group.first_rank.back();
    }
    group.launcher_rank.push_back(whole.launcher_rank[size_t(rank)]);
  }
  group.first_rank.push_back(group.size());
  return group;
}

std::vector<std::string> cut_hosts(std::vector<std::string> hosts, int groups) {
  std::map<std::string, int> processes, seen;
  for (const std::string& host : hosts) ++processes[host];
  for (std::string& host : hosts) {
    const int size = processes[host], place = seen[host]++, parts = std::min(groups, size);
    host += concat("#", place * parts / size);
  }
  return hosts;
}

std::string host_key() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  utsname names{};
  ::uname(&names);
  return concat(boot, " ", namespace_number("/proc/self/ns/pid"), " ",
                namespace_number("/proc/self/ns/net"), " ", ::getuid(), " ", names.nodename);
}

}  // namespace finetune
