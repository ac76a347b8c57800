// Reduce-scatter of gradients from device to device, bucket by bucket.
#include <algorithm>

#include "core/error.h"
#include "distributed/device/device_exchange.h"
#include "distributed/reduce/local_reduce.h"
#include "distributed/touched_rows.h"

namespace finetune {
namespace {

constexpr int64_t kPiece = int64_t{4} << 20;  // elements of a subtree in flight

using Parts = std::vector<DevicePeers::Part>;

class DeviceReduce final : public GradientReduce {
 public:
  DeviceReduce(Backend& backend, DevicePeers& peers, Communicator& comm,
               const ZeroPartition& partition, int64_t elements, int64_t shards,
               const DeviceExchangeOptions& options)
      : backend_(backend),
        peers_(peers),
        comm_(comm),
        partition_(partition),
        options_(options),
        own_rows_(partition.rows_of(comm)),
        transfer_(backend, partition.row_count(), partition.cols()),
        copy_(backend) {
    std::vector<std::vector<Subtree>> all;
    for (int rank = 0; rank < comm.size(); ++rank) {
      all.push_back(subtrees_of(part(shards, comm.size(), rank)));
    }
    order_ = SubtreeOrder(all);
    const IndexRange own = part(shards, comm.size(), comm.rank());
    const int64_t arenas = std::max<int64_t>(1, LocalReduce::arenas_needed(own));
    const int64_t arena_floats = (elements + 15) / 16 * 16;
    memory_ = allocate(arenas * arena_floats);
    shards_ =
        std::make_unique<LocalReduce>(backend, partition, own, sum(), arena_floats, options.chunks);
    const DeviceExchangeMemory memory =
        device_exchange_memory(partition, comm.size(), shards, own, options);
    packed_ = allocate(memory.packed_gradients);
    incoming_ = allocate(memory.incoming);
  }

  IndexRange shards() const override { return shards_->shards(); }
  float* leaf(int chunk) override { return shards_->leaf(chunk); }
  float* sum() const override { return static_cast<float*>(memory_.get()); }

  void ready(int layer) override {
    if (options_.at_end) return;
    for (int bucket = 0; bucket < buckets(); ++bucket) {
      if (options_.buckets[size_t(bucket)].layer == layer) peers_.mark(bucket);
    }
  }

  void push(const TouchedRows& touched, int chunk) override {
    if (options_.at_end) return shards_->push(touched, chunk);
    const std::vector<Addition> last = shards_->take(chunk);
    backend_.merge_rows(at_element(last, partition_.dense_elements()), touched.list(all_rows()),
                        partition_.cols());
    if (shards_->complete(chunk)) return send_buckets(last);
    backend_.merge(last, partition_.dense_elements());
  }

  void reduce_scatter(const TouchedRows& touched) override {
    if (options_.at_end || shards_->shards().size() == 0) {
      for (int bucket = 0; bucket < buckets(); ++bucket) peers_.mark(bucket);
      send_buckets({});
    }
    if (options_.in_slices()) {
      add_rows(touched);
    } else {
      reduce_rows(touched);
    }
  }

 private:
  std::shared_ptr<void> allocate(int64_t floats) {
    return backend_.allocate(size_t(floats) * sizeof(float));
  }
  float* packed() const { return static_cast<float*>(packed_.get()); }
  Tensor words(float* arena) const {
    return matrix(arena + partition_.dense_elements(), partition_.row_count(), partition_.cols());
  }

  // Exchanges slices of all subtrees: every process receives `count` elements of each subtree.
  // slice_for(own subtree, rank): the slice for that rank. Then adds them; the tree's result tells
  // where the sum is. Own slices are rounded like sent ones, so the bits do not depend on which
  // process adds.
  template <typename Slice>
  float* add_slices(size_t own_subtrees, int64_t count, Slice&& slice_for) {
    const int stays = options_.wire == DType::f32 ? comm_.rank() : SubtreeOrder::kNobody;
    std::vector<float*> own;
    for (size_t i = 0; stays >= 0 && i < own_subtrees; ++i) own.push_back(slice_for(i, stays).data);
    const std::vector<float*> all =
        order_.terms(stays, own, static_cast<float*>(incoming_.get()), count);
    Parts out, in;
    for (int rank = 0; rank < comm_.size(); ++rank) {
      if (rank == stays) continue;
      for (size_t i = 0; i < own_subtrees; ++i) out.push_back(slice_for(i, rank));
      for (float* to : order_.of(rank, all)) in.push_back({rank, to, count});
    }
    peers_.exchange(out, in, options_.wire);
    comm_.count_sent(bytes_to_others(out, comm_.rank(), options_.wire));
    backend_.merge(order_.additions(all), count);
    return all[0];
  }

  int buckets() const { return int(options_.buckets.size()); }
  static IndexRange all_rows() { return {0, INT32_MAX}; }
  IndexRange slice_of(int rank, int bucket) const {
    return partition_.dense_of(comm_, rank, bucket);
  }

  // Handles every bucket during the backward pass, once it is ready: the last shard's additions,
  // the exchange, the sum.
  void send_buckets(const std::vector<Addition>& last) {
    subtrees_ = shards_->finish();
    for (int bucket = 0; bucket < buckets(); ++bucket) {
      peers_.beside(bucket, [&] {
        const IndexRange elements = options_.buckets[size_t(bucket)].elements;
        backend_.merge(at_element(last, elements.begin), elements.size());
        if (options_.in_slices()) {
          add_slices_of(bucket);
        } else {
          gather_subtrees(elements);
          reduce_slices_of(bucket);
        }
      });
    }
  }

  void add_slices_of(int bucket) {
    auto piece_of = [&](int rank, int64_t begin) {
      const IndexRange whole = slice_of(rank, bucket);
      const int64_t from = std::min(whole.end, whole.begin + begin);
      return IndexRange{from, std::min(whole.end, from + kPiece)};
    };
    int64_t longest = 0;
    for (int rank = 0; rank < comm_.size(); ++rank) {
      longest = std::max(longest, slice_of(rank, bucket).size());
    }
    for (int64_t begin = 0; begin < longest; begin += kPiece) {
      const IndexRange own = piece_of(comm_.rank(), begin);
      float* result = add_slices(subtrees_.size(), own.size(), [&](size_t subtree, int rank) {
        const IndexRange piece = piece_of(rank, begin);
        return DevicePeers::Part{rank, subtrees_[subtree] + piece.begin, piece.size()};
      });
      float* home = sum() + own.begin;
      if (result == home || own.size() == 0) continue;
      copy_(result, home, own.size());
    }
  }

  // Packs a subtree's touched rows and sets them to zero in the subtree.
  float* pack(float* subtree, size_t number, const TouchedRows& touched) {
    const IndexRange all{0, partition_.row_count()};
    const RowList list = touched.list(all);
    float* to = packed() + int64_t(number) * list.count * partition_.cols();
    backend_.gather_rows(words(subtree), list.rows, matrix(to, list.count, partition_.cols()));
    transfer_.clear(touched, all, words(subtree).f32());
    return to;
  }

  void unpack_own(float* from, const TouchedRows& touched) {
    const RowList own = touched.list(own_rows_);
    backend_.scatter_rows(matrix(from, own.count, partition_.cols()), own.rows, words(sum()));
  }

  void add_rows(const TouchedRows& touched) {
    FINETUNE_CHECK(touched.list(all_rows()).count <= options_.most_rows);
    std::vector<float*> rows;
    for (float* subtree : subtrees_) rows.push_back(pack(subtree, rows.size(), touched));
    const int64_t count = touched.list(own_rows_).count * partition_.cols();
    float* result = add_slices(rows.size(), count, [&](size_t subtree, int rank) {
      return packed_rows(partition_, comm_, touched, rows[subtree], rank);
    });
    unpack_own(result, touched);
  }

  // Copies own subtrees to the sum's arena, or zeros if the process has none.
  void gather_subtrees(IndexRange elements) {
    if (subtrees_.empty()) {
      backend_.fill_zero(vector(sum() + elements.begin, elements.size()));
      return;
    }
    backend_.merge(at_element(additions_of_subtrees(), elements.begin), elements.size());
  }

  std::vector<Addition> additions_of_subtrees() const {
    FINETUNE_CHECK(subtrees_[0] == sum());
    std::vector<Addition> additions;
    for (size_t i = 1; i < subtrees_.size(); ++i) additions.push_back({sum(), subtrees_[i]});
    return additions;
  }

  void reduce_slices_of(int bucket) {
    Parts parts;
    for (int rank = 0; rank < comm_.size(); ++rank) {
      const IndexRange theirs = slice_of(rank, bucket);
      parts.push_back({rank, sum() + theirs.begin, theirs.size()});
    }
    peers_.reduce(parts);
  }

  void reduce_rows(const TouchedRows& touched) {
    if (!subtrees_.empty()) {
      backend_.merge_rows(at_element(additions_of_subtrees(), partition_.dense_elements()),
                          touched.list(all_rows()), partition_.cols());
    }
    float* rows = pack(sum(), 0, touched);
    Parts parts;
    for (int rank = 0; rank < comm_.size(); ++rank) {
      parts.push_back(packed_rows(partition_, comm_, touched, rows, rank));
    }
    peers_.reduce(parts);
    unpack_own(parts[size_t(comm_.rank())].data, touched);
  }

  Backend& backend_;
  DevicePeers& peers_;
  Communicator& comm_;
  const ZeroPartition& partition_;
  DeviceExchangeOptions options_;
  IndexRange own_rows_;
  RowTransfer transfer_;
  DeviceCopy copy_;
  SubtreeOrder order_;            // of all processes
  std::shared_ptr<void> memory_;  // arenas of shards; the first receives the sums
  std::unique_ptr<LocalReduce> shards_;
  std::vector<float*> subtrees_;  // after the last push
  std::shared_ptr<void> packed_, incoming_;
};

}  // namespace

int64_t most_rows(const ZeroPartition& partition, const SampleView& samples, int64_t batch_size) {
  return std::min(partition.row_count(), batch_size * samples.longest());
}

DeviceExchangeMemory device_exchange_memory(const ZeroPartition& partition, int processes,
                                            int64_t shards, IndexRange own,
                                            const DeviceExchangeOptions& options) {
  const int64_t cols = partition.cols();
  int64_t subtrees = 0, slice = 0;
  for (int process = 0; process < processes; ++process) {
    subtrees += int64_t(subtrees_of(part(shards, processes, process)).size());
  }
  for (int owner = 0; owner < partition.owners(); ++owner) {
    slice = std::max(slice, std::min(options.most_rows, partition.rows(owner).size()) * cols);
    for (size_t bucket = 0; bucket < options.buckets.size(); ++bucket) {
      slice = std::max(slice, std::min(kPiece, partition.dense(owner, int(bucket)).size()));
    }
  }
  DeviceExchangeMemory memory;
  memory.packed_weights = options.most_rows * cols;
  memory.packed_gradients =
      std::max<int64_t>(1, int64_t(subtrees_of(own).size())) * memory.packed_weights;
  memory.incoming = options.in_slices() ? subtrees * slice : 0;
  if (options.wire == DType::bf16) {
    memory.wire = (processes * int64_t(subtrees_of(own).size()) + subtrees) * slice / 2;
  }
  return memory;
}

int64_t bytes_to_others(std::span<const DevicePeers::Part> out, int own_rank, DType wire) {
  int64_t count = 0;
  for (const DevicePeers::Part& part : out) count += part.rank == own_rank ? 0 : part.count;
  return count * int64_t(size_of(wire));
}

DevicePeers::Part packed_rows(const ZeroPartition& partition, const Communicator& comm,
                              const TouchedRows& touched, float* packed, int rank) {
  const IndexRange rows = partition.rows_of(comm, rank);
  const int64_t before = touched.list({0, rows.begin}).count, cols = partition.cols();
  return {rank, packed + before * cols, touched.list(rows).count * cols};
}

std::unique_ptr<GradientReduce> make_device_reduce(Backend& backend, DevicePeers& peers,
                                                   Communicator& comm,
                                                   const ZeroPartition& partition, int64_t elements,
                                                   int64_t shards,
                                                   const DeviceExchangeOptions& options) {
  return std::make_unique<DeviceReduce>(backend, peers, comm, partition, elements, shards, options);
}

}  // namespace finetune
