// All-gather of updated weights from device to device.
#include <vector>

#include "core/error.h"
#include "distributed/device/device_exchange.h"

namespace finetune {
namespace {

using Parts = std::vector<DevicePeers::Part>;

class DeviceGather final : public WeightGather {
 public:
  DeviceGather(Backend& backend, DevicePeers& peers, Communicator& comm,
               const ZeroPartition& partition, float* weights, bool words_move,
               const DeviceExchangeOptions& options)
      : backend_(backend),
        peers_(peers),
        comm_(comm),
        partition_(partition),
        options_(options),
        weights_(weights),
        words_(
            matrix(weights + partition.dense_elements(), partition.row_count(), partition.cols())),
        words_move_(words_move),
        packed_(backend.allocate(size_t(options.most_rows * partition.cols()) * sizeof(float))) {}

  void publish() override {
    published_ = true;
    int64_t elements = 0;
    for (int bucket = 0; bucket < partition_.buckets(); ++bucket) {
      elements += dense_of(comm_.rank(), bucket).count;
    }
    count_sent(elements);  // counted in this step, although sent when the next one begins
  }

  void all_gather(const TouchedRows& touched) override {
    const int64_t cols = partition_.cols();
    auto* packed = static_cast<float*>(packed_.get());
    const RowList all = touched.list({0, partition_.row_count()});
    FINETUNE_CHECK(all.count <= options_.most_rows);
    auto part_of = [&](int rank) { return packed_rows(partition_, comm_, touched, packed, rank); };
    if (words_move_) {
      const RowList own = touched.list(partition_.rows_of(comm_));
      backend_.gather_rows(words_, own.rows, matrix(part_of(comm_.rank()).data, own.count, cols));
      count_sent(own.count * cols);
    }
    exchange(part_of);
    if (words_move_) backend_.scatter_rows(matrix(packed, all.count, cols), all.rows, words_);
  }

  void all_gather_all() override {
    exchange([&](int rank) {
      const IndexRange rows = partition_.rows_of(comm_, rank);
      const int64_t cols = partition_.cols();
      return DevicePeers::Part{rank, words_.f32() + rows.begin * cols, rows.size() * cols};
    });
    backend_.synchronize();
  }

 private:
  void count_sent(int64_t elements) {
    comm_.count_sent((comm_.size() - 1) * elements * int64_t(sizeof(float)));
  }
  // Sends each process's part of the rows, and of the dense part if it changed, to all others.
  template <typename RowsOf>
  void exchange(RowsOf&& rows_of) {
    Parts out, in;
    for (int rank = 0; rank < comm_.size(); ++rank) {
      if (rank == comm_.rank()) continue;
      for (int bucket = 0; published_ && bucket < partition_.buckets(); ++bucket) {
        out.push_back(to(rank, dense_of(comm_.rank(), bucket)));
        in.push_back(dense_of(rank, bucket));
      }
      if (words_move_) {
        out.push_back(to(rank, rows_of(comm_.rank())));
        in.push_back(rows_of(rank));
      }
    }
    published_ = false;
    peers_.exchange(out, in);
  }
  static DevicePeers::Part to(int rank, DevicePeers::Part part) {
    return {rank, part.data, part.count};
  }
  DevicePeers::Part dense_of(int rank, int bucket) const {
    const IndexRange range = partition_.dense_of(comm_, rank, bucket);
    return {rank, weights_ + range.begin, range.size()};
  }

  Backend& backend_;
  DevicePeers& peers_;
  Communicator& comm_;
  const ZeroPartition& partition_;
  DeviceExchangeOptions options_;
  float* weights_;
  Tensor words_;
  bool words_move_;
  std::shared_ptr<void> packed_;  // (most_rows, cols)
  bool published_ = false;
};

}  // namespace

std::unique_ptr<WeightGather> make_device_gather(Backend& backend, DevicePeers& peers,
                                                 Communicator& comm, const ZeroPartition& partition,
                                                 float* weights, bool words_move,
                                                 const DeviceExchangeOptions& options) {
  return std::make_unique<DeviceGather>(backend, peers, comm, partition, weights, words_move,
                                        options);
}

}  // namespace finetune
