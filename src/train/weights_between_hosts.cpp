// Every host has a copy of the weights; their owners send what they have updated.
#include <cstring>

#include "train/training_step.h"

namespace finetune {

void TrainingStep::send_dense() {
  if (!owns()) return;
  float* weights = engine_.weights_as_they_are();
  const IndexRange mine = ownership_.dense(own());
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  for (int host = 0; host < comm_.hosts(); ++host) {
    if (host == comm_.host()) continue;
    const IndexRange theirs = ownership_.dense(ownership_.owner(host, comm_.local_rank()));
    out.push_back({host, weights + mine.begin, size_t(mine.size()) * sizeof(float)});
    in.push_back({host, weights + theirs.begin, size_t(theirs.size()) * sizeof(float)});
  }
  comm_.exchange(out, in);
}

// Rows of the word embedding that have caught up with their updates: those of the batch, or all.
void TrainingStep::send_rows(bool all) {
  if (comm_.hosts() == 1 || !owns() || !words_move_) return;
  const int64_t cols = ownership_.cols();
  const size_t row_bytes = size_t(cols) * sizeof(float);
  float* words = engine_.weights_as_they_are() + words_.offset;
  auto range_of = [&](int host) {
    return ownership_.rows(ownership_.owner(host, comm_.local_rank()));
  };
  std::vector<Communicator::Outgoing> out;
  std::vector<Communicator::Incoming> in;
  const IndexRange mine = range_of(comm_.host());
  size_t coming = 0;
  for (int host = 0; host < comm_.hosts(); ++host) {
    if (host != comm_.host()) coming += needed_.within(range_of(host)).size();
  }
  if (!all) {
    outgoing_.clear();
    for (int32_t row : needed_.within(mine)) {
      outgoing_.insert(outgoing_.end(), words + row * cols, words + (row + 1) * cols);
    }
    incoming_.resize(coming * size_t(cols));
  }
  float* to = incoming_.data();
  for (int host = 0; host < comm_.hosts(); ++host) {
    if (host == comm_.host()) continue;
    const IndexRange theirs = range_of(host);
    if (all) {
      out.push_back({host, words + mine.begin * cols, size_t(mine.size()) * row_bytes});
      in.push_back({host, words + theirs.begin * cols, size_t(theirs.size()) * row_bytes});
      continue;
    }
    const size_t floats = needed_.within(theirs).size() * size_t(cols);
    out.push_back({host, outgoing_.data(), outgoing_.size() * sizeof(float)});
    in.push_back({host, to, floats * sizeof(float)});
    to += floats;
  }
  comm_.exchange(out, in);
  if (all) return;
  const float* from = incoming_.data();
  for (int host = 0; host < comm_.hosts(); ++host) {
    if (host == comm_.host()) continue;
    for (int32_t row : needed_.within(range_of(host))) {
      std::memcpy(words + row * cols, from, row_bytes);
      from += cols;
    }
  }
}

}  // namespace finetune
