// Each owner adds its part of all subtrees' gradients in the tree's order. Between hosts each
// process sends the parts that others own there, in bounded pieces, and adds the parts it receives;
// a host sends and receives as many bytes as in a ring.
#include "distributed/reduce/subtree_reduce.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/error.h"
#include "distributed/reduce/local_reduce.h"
#include "engine/host_memory.h"

namespace finetune {

ProcessArenas arenas_of_shards(IndexRange shards) {
  TreeCounter counter(shards);
  for (int64_t leaf = shards.begin; leaf < shards.end; ++leaf) {
    counter.leaf();
    counter.push();
  }
  return {LocalReduce::arenas_needed(shards), counter.slots()};
}

ProcessArenas arenas_of_subtrees(IndexRange shards) {
  ProcessArenas arenas;
  arenas.subtrees.resize(subtrees_of(shards).size());
  std::iota(arenas.subtrees.begin(), arenas.subtrees.end(), 0);
  arenas.count = int64_t(arenas.subtrees.size());
  return arenas;
}

SubtreeReduce::SubtreeReduce(Backend& backend, Communicator& comm, const ZeroPartition& partition,
                             int64_t elements, int64_t shards,
                             ProcessArenas (*arenas_of)(IndexRange))
    : backend_(backend),
      comm_(comm),
      partition_(partition),
      arena_floats_((elements + 15) / 16 * 16) {
  // The subtrees of every process and host; computed identically everywhere.
  std::vector<std::vector<Subtree>> remaining;
  for (int h = 0; h < comm.hosts(); ++h) {
    std::vector<Subtree> roots;
    std::vector<int64_t> places;
    int64_t first = 0;
    for (int rank = comm.first_rank(h); rank < comm.first_rank(h + 1); ++rank) {
      const IndexRange range = part(shards, comm.size(), rank);
      if (rank == comm.rank()) first_slot_ = first;
      const ProcessArenas arenas = arenas_of(range);
      for (Subtree subtree : subtrees_of(range)) roots.push_back(subtree);
      if (rank == comm.rank()) own_subtrees_ = int64_t(arenas.subtrees.size());
      for (int place : arenas.subtrees) places.push_back(first + place);
      first += arenas.count;
    }
    const TreeCombination combined = combine_subtrees(roots, comm.hosts() == 1);
    remaining.push_back(combined.subtrees);
    if (h != comm.host()) continue;
    for (int left : combined.left) subtree_slots_.push_back(places[size_t(left)]);
    if (!places.empty()) sum_slot_ = places[0];
    // a host without shards needs memory for sums too
    const int64_t arenas = std::max<int64_t>(first, 1);
    memory_ = allocate_for_host(backend, comm, size_t(arenas * arena_floats_) * sizeof(float));
    for (const TreeAddition& a : combined.additions) {
      host_additions_.push_back({at(places[size_t(a.to)]), at(places[size_t(a.from)])});
    }
  }
  hosts_ = SubtreeOrder(remaining);
}

RowList SubtreeReduce::rows_of(int owner, const TouchedRows& touched) const {
  const IndexRange rows = partition_.rows(owner);
  return backend_.uses_host_memory() ? touched.list_on_host(rows) : touched.list(rows);
}

// Counts the bytes of this process's subtrees that other processes of this host read, for
// themselves and for other hosts.
void SubtreeReduce::count_handed_on(const TouchedRows& touched) {
  int64_t elements = 0;
  for (int column = 0; column < comm_.columns(); ++column) {
    if (column == comm_.local_rank()) continue;
    for (int host = 0; host < comm_.hosts(); ++host) {
      const int owner = partition_.owner(host, column);
      elements += partition_.dense(owner).size() +
                  int64_t(touched.within(partition_.rows(owner)).size()) * partition_.cols();
    }
  }
  comm_.count_sent(own_subtrees_ * elements * int64_t(sizeof(float)));
}

void SubtreeReduce::reduce_scatter(const TouchedRows& touched) {
  if (comm_.size() > 1) {
    backend_.synchronize();
    comm_.host_barrier();  // the gradients of all processes of the host are ready
    count_handed_on(touched);
  }
  if (comm_.local_rank() >= comm_.columns()) return;
  for (int host = 0; host < comm_.hosts(); ++host) {
    const int owner = partition_.owner(host, comm_.local_rank());
    add_arenas(backend_, partition_, host_additions_, partition_.dense(owner),
               rows_of(owner, touched));
  }
  if (comm_.hosts() == 1) return;
  add_hosts_dense();
  add_hosts_rows(touched);
}

namespace {

constexpr int64_t kHostsPiece = 1 << 20;  // elements of a subtree in flight

}  // namespace

void SubtreeReduce::add_hosts_dense() {
  const int column = comm_.local_rank();
  auto piece_of = [&](int host, int64_t begin) {
    const IndexRange whole = partition_.dense(partition_.owner(host, column));
    const int64_t from = std::min(whole.end, whole.begin + begin);
    return IndexRange{from, std::min(whole.end, from + kHostsPiece)};
  };
  int64_t longest = 0;
  for (int host = 0; host < comm_.hosts(); ++host) {
    longest = std::max(longest, partition_.dense(partition_.owner(host, column)).size());
  }
  for (int64_t begin = 0; begin < longest; begin += kHostsPiece) {
    const IndexRange own = piece_of(comm_.host(), begin);
    std::vector<Communicator::Outgoing> out;
    std::vector<Communicator::Incoming> in;
    incoming_.resize(size_t(own.size() * hosts_.incoming(comm_.host())));
    std::vector<float*> here;
    for (int64_t place : subtree_slots_) here.push_back(at(place) + own.begin);
    const std::vector<float*> terms =
        hosts_.terms(comm_.host(), here, incoming_.data(), own.size());
    for (int host = 0; host < comm_.hosts(); ++host) {
      if (host == comm_.host()) continue;
      const IndexRange theirs = piece_of(host, begin);
      for (int64_t place : subtree_slots_) {
        out.push_back({comm_.column_peer(host), at(place) + theirs.begin,
                       size_t(theirs.size()) * sizeof(float)});
      }
      for (float* to : hosts_.of(host, terms)) {
        in.push_back({comm_.column_peer(host), to, size_t(own.size()) * sizeof(float)});
      }
    }
    comm_.exchange(out, in, {"gradients"});
    backend_.merge(hosts_.additions(terms), own.size());
    float* home = sum() + own.begin;
    if (terms[0] != home) std::memcpy(home, terms[0], size_t(own.size()) * sizeof(float));
  }
}

void SubtreeReduce::add_hosts_rows(const TouchedRows& touched) {
  const int column = comm_.local_rank();
  const int64_t cols = partition_.cols(), words = partition_.dense_elements();
  const size_t row_bytes = size_t(cols) * sizeof(float);
  auto rows_of = [&](int host) {
    return touched.within(partition_.rows(partition_.owner(host, column)));
  };
  // Packs these rows of this host's subtrees and sets them to zero.
  auto take = [&](std::span<const int32_t> rows, float* to) {
    for (int64_t place : subtree_slots_) {
      for (int32_t row : rows) {
        float* from = at(place) + words + row * cols;
        std::memcpy(to, from, row_bytes);
        std::memset(from, 0, row_bytes);
        to += cols;
      }
    }
  };
  const std::span<const int32_t> own = rows_of(comm_.host());
  const int64_t count = int64_t(own.size()) * cols;
  size_t sent_rows = 0;
  for (int host = 0; host < comm_.hosts(); ++host) {
    if (host != comm_.host()) sent_rows += rows_of(host).size();
  }
  outgoing_.resize(sent_rows * subtree_slots_.size() * size_t(cols));
  incoming_.resize(size_t(hosts_.incoming(comm_.host()) * count));
  local_.resize(subtree_slots_.size() * size_t(count));
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  float* from = outgoing_.data();
  float* to = incoming_.data();
  for (int host = 0; host < comm_.hosts(); ++host) {
    if (host == comm_.host()) continue;
    const std::span<const int32_t> theirs = rows_of(host);
    const size_t floats = theirs.size() * subtree_slots_.size() * size_t(cols);
    take(theirs, from);
    out.push_back({comm_.column_peer(host), from, floats * sizeof(float)});
    from += floats;
    const size_t coming = size_t(hosts_.count(host) * count);
    in.push_back({comm_.column_peer(host), to, coming * sizeof(float)});
    to += coming;
  }
  comm_.exchange(out, in, {"gradients"});
  take(own, local_.data());
  std::vector<float*> here;
  for (size_t i = 0; i < subtree_slots_.size(); ++i) {
    here.push_back(local_.data() + i * size_t(count));
  }
  const std::vector<float*> terms = hosts_.terms(comm_.host(), here, incoming_.data(), count);
  backend_.merge(hosts_.additions(terms), count);
  for (size_t i = 0; i < own.size(); ++i) {
    std::memcpy(sum() + words + own[i] * cols, terms[0] + int64_t(i) * cols, row_bytes);
  }
}

}  // namespace finetune
