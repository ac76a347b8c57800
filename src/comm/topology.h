// Which processes are on one host, and the numbers that follow from that.
#pragma once

#include <string>
#include <vector>

namespace finetune {

// Numbers of processes: hosts in order of their lowest launcher's number, inside a host by the
// launcher's number. So rank 0 is the launcher's rank 0.
struct Topology {
  int rank = 0;  // this process's
  int host = 0;
  int local_rank = 0;
  std::vector<int> launcher_rank;  // of each rank
  std::vector<int> first_rank;     // of each host, and size() last

  int size() const { return int(launcher_rank.size()); }
  int hosts() const { return int(first_rank.size()) - 1; }
  int local_size(int of_host) const {
    return first_rank[size_t(of_host) + 1] - first_rank[size_t(of_host)];
  }
  int local_size() const { return local_size(host); }
  int host_of(int of_rank) const;
  int columns() const;  // local ranks that every host has
};

// hosts[i]: what names the host of the launcher's rank i.
Topology number_processes(const std::vector<std::string>& hosts, int launcher_rank);

// Of the group of these ranks, in ascending order, `whole.rank` among them: ranks and hosts are
// numbered anew in the same order.
Topology subset(const Topology& whole, const std::vector<int>& ranks);

// Cuts the processes of each host into up to `groups` neighbouring groups, as even as can be, each
// named as if it were a host: several hosts on one machine.
std::vector<std::string> cut_hosts(std::vector<std::string> hosts, int groups);

// Equal in two processes if they run on one booted machine, see each other's numbers in /proc, and
// are the same user's.
std::string host_key();

}  // namespace finetune
