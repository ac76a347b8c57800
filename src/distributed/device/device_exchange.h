// Reduce-scatter of gradients and all-gather of weights from device to device. If each process has
// its own device (ops/device_peers.h), these implement the step's two interfaces
// (gradient_reduce.h, weight_gather.h) without the host.
#pragma once

#include <memory>

#include "core/numeric/packed_batch.h"
#include "distributed/reduce/gradient_reduce.h"
#include "distributed/weight_gather.h"
#include "distributed/zero_partition.h"

namespace finetune {

// The largest number of word embedding rows that a batch can touch.
int64_t most_rows(const ZeroPartition& partition, const SampleView& samples, int64_t batch_size);

struct DeviceExchangeOptions {
  int64_t most_rows = 0;        // see most_rows()
  bool deterministic = true;    // add in the tree's order, else in the library's
  DType wire = DType::f32;      // of gradients in transit; bf16 implies the tree's order
  std::vector<Bucket> buckets;  // of the trained parameters; the partition has the same buckets
  // For a stage of a pipeline: elements_of_chunks(). Its buckets are sent after all passes, behind
  // the messages that other stages wait for.
  std::vector<IndexRange> chunks = {};
  bool at_end = false;

  bool in_slices() const { return deterministic || wire == DType::bf16; }
};

// Floats of memory for the exchange in a process with `own` of K `shards`: word embedding rows
// packed for gradients and for weights, slices of all subtrees, and bf16 send and receive buffers.
struct DeviceExchangeMemory {
  int64_t packed_gradients = 0, packed_weights = 0, incoming = 0, wire = 0;
};
DeviceExchangeMemory device_exchange_memory(const ZeroPartition& partition, int processes,
                                            int64_t shards, IndexRange own,
                                            const DeviceExchangeOptions& options);

// Bytes that the outgoing parts bring to other processes than this one.
int64_t bytes_to_others(std::span<const DevicePeers::Part> out, int own_rank,
                        DType wire = DType::f32);

// The part of the packed word embedding rows of a batch that this rank owns; these rows are
// adjacent.
DevicePeers::Part packed_rows(const ZeroPartition& partition, const Communicator& comm,
                              const TouchedRows& touched, float* packed, int rank);

// Every owner receives its slice of each process's subtrees (subtree_reduce.h) and adds the slices
// in the tree's order. `comm` counts the bytes sent, except for sums of the library. Unless
// `at_end`, dense buckets are sent while the process's last backward pass computes the layers
// below.
std::unique_ptr<GradientReduce> make_device_reduce(Backend& backend, DevicePeers& peers,
                                                   Communicator& comm,
                                                   const ZeroPartition& partition, int64_t elements,
                                                   int64_t shards,
                                                   const DeviceExchangeOptions& options);
std::unique_ptr<WeightGather> make_device_gather(Backend& backend, DevicePeers& peers,
                                                 Communicator& comm, const ZeroPartition& partition,
                                                 float* weights, bool words_move,
                                                 const DeviceExchangeOptions& options);

}  // namespace finetune
