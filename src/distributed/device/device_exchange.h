// Reduce-scatter of gradients and all-gather of weights from device to device.
// Where each process has a device of its own (ops/device_peers.h): the two interfaces of the step
// (gradient_reduce.h, weight_gather.h) without the host.
#pragma once

#include <memory>

#include "core/numeric/packed_batch.h"
#include "distributed/buckets.h"
#include "distributed/reduce/gradient_reduce.h"
#include "distributed/weight_gather.h"

namespace finetune {

// Collective. Null unless each process has a device of its own and devices can be connected.
// `timeout`: seconds that one waits for another (0: no end).
std::unique_ptr<DevicePeers> connect_devices(Backend& backend, Communicator& comm, double timeout);

// Rows of the word embedding that a batch can have.
int64_t most_rows(const ZeroPartition& partition, const SampleView& samples, int64_t batch_size);

struct DeviceExchangeOptions {
  int64_t most_rows = 0;        // most_rows()
  bool deterministic = true;    // additions in the tree's order, else in the library's
  DType wire = DType::f32;      // of gradients on the way; bf16: additions in the tree's order
  std::vector<Bucket> buckets;  // of what is trained; partition has the same
  // Of a pipeline's stage: elements_of_chunks(). Its buckets wait for the end of all passes: before
  // them go messages that other stages wait for.
  std::vector<IndexRange> chunks = {};
  bool at_end = false;

  bool in_slices() const { return deterministic || wire == DType::bf16; }
};

// Memory of the exchange, of a process with `own` of K `shards`, in floats: rows of the word
// embedding on their way, packed for gradients and for weights; slices of all subtrees; and in bf16
// what goes out and comes in so.
struct DeviceExchangeMemory {
  int64_t packed_gradients = 0, packed_weights = 0, incoming = 0, wire = 0;
};
DeviceExchangeMemory device_exchange_memory(const ZeroPartition& partition, int processes,
                                            int64_t shards, IndexRange own,
                                            const DeviceExchangeOptions& options);

// What parts that go out bring to others than this process, in bytes.
int64_t bytes_to_others(std::span<const DevicePeers::Part> out, int own_rank,
                        DType wire = DType::f32);

// Of the rows of the word embedding that a batch has, packed one after the other: those that the
// process of this rank owns, which are neighbours.
DevicePeers::Part packed_rows(const ZeroPartition& partition, const Communicator& comm,
                              const TouchedRows& touched, float* packed, int rank);

// Of subtrees (subtree_reduce.h) every owner gets its slice from each process and adds the slices
// as the tree says, which is counted as sent by `comm`, but for the library's sums. Buckets of the
// dense part go while the last backward pass of the process computes those below, but for `at_end`.
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
