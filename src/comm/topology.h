// Which processes are on one host, and their ranks.
#pragma once

#include <string>
#include <vector>

namespace finetune {

// Ranks: hosts are ordered by their lowest launcher rank, the processes of a host by launcher rank.
// So rank 0 is the launcher's rank 0.
struct Topology {
  int rank = 0;  // this process's
  int host = 0;
  int local_rank = 0;
  std::vector<int> launcher_rank;  // by rank
  std::vector<int> first_rank;     // by host, and size() last

  int size() const { return int(launcher_rank.size()); }
  int hosts() const { return int(first_rank.size()) - 1; }
  int local_size(int of_host) const {
    return first_rank[size_t(of_host) + 1] - first_rank[size_t(of_host)];
  }
  int local_size() const { return local_size(host); }
  int host_of(int of_rank) const;
  int columns() const;  // local ranks that every host has
};

// hosts[i]: the key of the host of launcher rank i.
Topology number_processes(const std::vector<std::string>& hosts, int launcher_rank);

// The topology of a group: `ranks` in ascending order, including `whole.rank`. Ranks and hosts are
// numbered anew in the same order.
Topology subset(const Topology& whole, const std::vector<int>& ranks);

// Cuts the processes of each host into up to `groups` neighbouring groups of about equal size and
// names each as a host: simulates several hosts on one machine.
std::vector<std::string> cut_hosts(std::vector<std::string> hosts, int groups);

// Equal in two processes if they run on the same booted machine, see each other in /proc and belong
// to the same user.
std::string host_key();

}  // namespace finetune
