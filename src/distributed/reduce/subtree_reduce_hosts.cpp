// Reduce-scatter of gradients between hosts, in bounded pieces, in the tree's order. Each process
// sends the parts that others own there and adds the parts it receives. A host sends and receives
// as many bytes as in a ring.
#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "distributed/reduce/subtree_reduce.h"

namespace finetune {
namespace {

constexpr int64_t kHostsPiece = 1 << 20;  // elements of a subtree in flight

// The subtrees of all hosts in order: `own` for this host, the others as received, one after the
// other with `count` elements each.
std::vector<float*> in_order(const Communicator& comm, const std::vector<int>& subtrees_of_host,
                             const std::vector<float*>& own, float* others, int64_t count) {
  std::vector<float*> subtrees;
  for (int host = 0; host < comm.hosts(); ++host) {
    if (host == comm.host()) {
      subtrees.insert(subtrees.end(), own.begin(), own.end());
      continue;
    }
    for (int i = 0; i < subtrees_of_host[size_t(host)]; ++i, others += count)
      subtrees.push_back(others);
  }
  return subtrees;
}

std::vector<Addition> between(const std::vector<TreeAddition>& additions,
                              const std::vector<float*>& subtrees) {
  std::vector<Addition> out;
  for (const TreeAddition& a : additions)
    out.push_back({subtrees[size_t(a.to)], subtrees[size_t(a.from)]});
  return out;
}

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
    incoming_.resize(size_t(own.size()) * (last_additions_.size() + 1));
    float* to = incoming_.data();
    for (int host = 0; host < comm_.hosts(); ++host) {
      if (host == comm_.host()) continue;
      const IndexRange theirs = piece_of(host, begin);
      for (int64_t place : subtree_slots_) {
        out.push_back({comm_.column_peer(host), at(place) + theirs.begin,
                       size_t(theirs.size()) * sizeof(float)});
      }
      for (int i = 0; i < subtrees_of_host_[size_t(host)]; ++i, to += own.size()) {
        in.push_back({comm_.column_peer(host), to, size_t(own.size()) * sizeof(float)});
      }
    }
    comm_.exchange(out, in, {"gradients"});
    std::vector<float*> here;
    for (int64_t place : subtree_slots_) here.push_back(at(place) + own.begin);
    auto subtrees = in_order(comm_, subtrees_of_host_, here, incoming_.data(), own.size());
    backend_.merge(between(last_additions_, subtrees), own.size());
    float* home = sum() + own.begin;
    if (subtrees[0] != home) std::memcpy(home, subtrees[0], size_t(own.size()) * sizeof(float));
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
  size_t sent_rows = 0, received_subtrees = 0;
  for (int host = 0; host < comm_.hosts(); ++host) {
    if (host == comm_.host()) continue;
    sent_rows += rows_of(host).size();
    received_subtrees += size_t(subtrees_of_host_[size_t(host)]);
  }
  outgoing_.resize(sent_rows * subtree_slots_.size() * size_t(cols));
  incoming_.resize(received_subtrees * size_t(count));
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
    const size_t coming = size_t(subtrees_of_host_[size_t(host)]) * size_t(count);
    in.push_back({comm_.column_peer(host), to, coming * sizeof(float)});
    to += coming;
  }
  comm_.exchange(out, in, {"gradients"});
  take(own, local_.data());
  std::vector<float*> here;
  for (size_t i = 0; i < subtree_slots_.size(); ++i)
    here.push_back(local_.data() + i * size_t(count));
  auto subtrees = in_order(comm_, subtrees_of_host_, here, incoming_.data(), count);
  backend_.merge(between(last_additions_, subtrees), count);
  for (size_t i = 0; i < own.size(); ++i) {
    std::memcpy(sum() + words + own[i] * cols, subtrees[0] + int64_t(i) * cols, row_bytes);
  }
}

}  // namespace finetune
