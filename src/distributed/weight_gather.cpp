// All-gather of updated weights through host memory.
#include "distributed/weight_gather.h"

#include <cstring>
#include <vector>

#include "distributed/touched_rows.h"

namespace finetune {
namespace {

// One copy per host, in host memory.
class HostGather final : public WeightGather {
 public:
  HostGather(Backend& backend, Communicator& comm, const ZeroPartition& partition, float* weights,
             bool words_move)
      : backend_(backend),
        comm_(comm),
        partition_(partition),
        weights_(weights),
        words_(weights + partition.dense_elements()),
        words_move_(words_move) {}

  void publish() override {
    const auto part_of = [&](int host) { return partition_.dense(owner_on(host)); };
    count_readers([&](int host) { return part_of(host).size(); });
    if (exchanges()) exchange_parts(weights_, part_of);
  }

  void all_gather(const TouchedRows& touched) override {
    if (comm_.size() == 1) return;  // the backend's order suffices
    backend_.synchronize();
    if (words_move_) {
      count_readers([&](int host) {
        return int64_t(touched.within(partition_.rows(owner_on(host))).size()) * partition_.cols();
      });
      if (exchanges()) exchange_rows(touched);
    }
    comm_.host_barrier();
  }

  void all_gather_all() override {
    if (comm_.size() == 1) return;
    backend_.synchronize();
    if (exchanges() && words_move_) {
      exchange_parts(words_, [&](int host) {
        const IndexRange rows = partition_.rows(owner_on(host));
        return IndexRange{rows.begin * partition_.cols(), rows.end * partition_.cols()};
      });
    }
    comm_.host_barrier();
  }

 private:
  bool exchanges() const { return comm_.hosts() > 1 && comm_.local_rank() < comm_.columns(); }
  int owner_on(int host) const { return partition_.owner(host, comm_.local_rank()); }

  // Counts the bytes that the host's other processes read: this process's own part, and the parts
  // that it received from the owners of its column.
  template <typename Elements>
  void count_readers(Elements&& elements_of) {
    if (comm_.local_rank() >= comm_.columns()) return;
    int64_t elements = 0;
    for (int host = 0; host < comm_.hosts(); ++host) elements += elements_of(host);
    comm_.count_sent((comm_.local_size() - 1) * elements * int64_t(sizeof(float)));
  }

  // Sends this process's part to the owners of its column on the other hosts, and receives theirs.
  // part_of(host): elements relative to `base`.
  template <typename PartOf>
  void exchange_parts(float* base, PartOf&& part_of) {
    const IndexRange mine = part_of(comm_.host());
    std::vector<Communicator::Outgoing> out;
    std::vector<Communicator::Incoming> in;
    for (int host = 0; host < comm_.hosts(); ++host) {
      if (host == comm_.host()) continue;
      const IndexRange theirs = part_of(host);
      out.push_back(
          {comm_.column_peer(host), base + mine.begin, size_t(mine.size()) * sizeof(float)});
      in.push_back(
          {comm_.column_peer(host), base + theirs.begin, size_t(theirs.size()) * sizeof(float)});
    }
    comm_.exchange(out, in, {"weights"});
  }

  void exchange_rows(const TouchedRows& touched) {
    const int64_t cols = partition_.cols();
    auto rows_on = [&](int host) { return touched.within(partition_.rows(owner_on(host))); };
    size_t coming = 0;
    for (int host = 0; host < comm_.hosts(); ++host) {
      if (host != comm_.host()) coming += rows_on(host).size();
    }
    outgoing_.clear();
    for (int32_t r : rows_on(comm_.host())) {
      outgoing_.insert(outgoing_.end(), row(r), row(r + 1));
    }
    incoming_.resize(coming * size_t(cols));
    std::vector<Communicator::Outgoing> out;
    std::vector<Communicator::Incoming> in;
    float* to = incoming_.data();
    for (int host = 0; host < comm_.hosts(); ++host) {
      if (host == comm_.host()) continue;
      const size_t floats = rows_on(host).size() * size_t(cols);
      out.push_back({comm_.column_peer(host), outgoing_.data(), outgoing_.size() * sizeof(float)});
      in.push_back({comm_.column_peer(host), to, floats * sizeof(float)});
      to += floats;
    }
    comm_.exchange(out, in, {"weights"});
    const float* from = incoming_.data();
    for (int host = 0; host < comm_.hosts(); ++host) {
      if (host == comm_.host()) continue;
      for (int32_t r : rows_on(host)) {
        std::memcpy(row(r), from, size_t(cols) * sizeof(float));
        from += cols;
      }
    }
  }

  float* row(int64_t number) const { return words_ + number * partition_.cols(); }

  Backend& backend_;
  Communicator& comm_;
  const ZeroPartition& partition_;
  float* weights_;
  float* words_;
  bool words_move_;
  std::vector<float> outgoing_, incoming_;
};

// One copy per process on its device, and one in host memory for exchanging parts.
class StagedGather final : public WeightGather {
 public:
  StagedGather(Backend& backend, Communicator& comm, const ZeroPartition& partition, float* weights,
               bool words_move)
      : backend_(backend),
        dense_{0, partition.dense_elements()},
        rows_{0, partition.row_count()},
        own_dense_(partition.dense_of(comm)),
        own_rows_(partition.rows_of(comm)),
        cols_(partition.cols()),
        weights_(weights),
        words_move_(words_move),
        memory_(comm.allocate_shared(size_t(dense_.end + rows_.end * cols_) * sizeof(float))),
        staged_(static_cast<float*>(memory_.get())),
        host_(backend, comm, partition, staged_, words_move),
        transfer_(backend, rows_.end, cols_) {}

  void publish() override {
    download(own_dense_);
    host_.publish();
    published_ = true;
  }

  void all_gather(const TouchedRows& touched) override {
    if (words_move_) transfer_.download(touched, own_rows_, words(weights_), words(staged_));
    host_.all_gather(touched);
    take_published();
    if (!words_move_) return;
    for (IndexRange others : besides(own_rows_, rows_)) {
      transfer_.upload(touched, others, words(staged_), words(weights_));
    }
  }

  void all_gather_all() override {
    if (words_move_) download(elements(own_rows_));
    host_.all_gather_all();
    take_published();
    if (!words_move_) return;
    for (IndexRange others : besides(own_rows_, rows_)) upload(elements(others));
  }

 private:
  // The ranges before and behind `own`.
  static std::vector<IndexRange> besides(IndexRange own, IndexRange all) {
    return {{all.begin, own.begin}, {own.end, all.end}};
  }
  float* words(float* arena) const { return arena + dense_.end; }
  IndexRange elements(IndexRange rows) const {
    return {dense_.end + rows.begin * cols_, dense_.end + rows.end * cols_};
  }
  void download(IndexRange range) {
    backend_.download(staged_ + range.begin, weights_ + range.begin,
                      size_t(range.size()) * sizeof(float));
  }
  void upload(IndexRange range) {
    backend_.upload(weights_ + range.begin, staged_ + range.begin,
                    size_t(range.size()) * sizeof(float));
  }
  void take_published() {
    if (!published_) return;
    for (IndexRange others : besides(own_dense_, dense_)) upload(others);
    published_ = false;
  }

  Backend& backend_;
  IndexRange dense_, rows_, own_dense_, own_rows_;
  int64_t cols_;
  float* weights_;
  bool words_move_;
  std::shared_ptr<void> memory_;
  float* staged_;
  HostGather host_;
  RowTransfer transfer_;
  bool published_ = false;
};

}  // namespace

std::unique_ptr<WeightGather> make_weight_gather(Backend& backend, Communicator& comm,
                                                 const ZeroPartition& partition, float* weights,
                                                 bool words_move, bool staged) {
  if (staged) {
    return std::make_unique<StagedGather>(backend, comm, partition, weights, words_move);
  }
  return std::make_unique<HostGather>(backend, comm, partition, weights, words_move);
}

}  // namespace finetune
