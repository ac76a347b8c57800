// Exchange between the devices of processes that have one each. Exchanges are in one order, the
// same on all processes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>

#include "core/numeric/dtype.h"

namespace finetune {

using PeerId = std::array<char, 128>;  // of a group of processes

class DevicePeers {
 public:
  virtual ~DevicePeers() = default;

  // `count` floats in device memory, sent to, received from or reduced for the process of this
  // rank.
  struct Part {
    int rank;
    float* data;
    int64_t count;
  };
  // exchange() and reduce() return at once; except inside beside(), they are in order with the
  // backend's other work. exchange() is collective among the processes that have parts for each
  // other; parts between two processes match in order. With `wire` bf16 the floats are rounded in
  // transit.
  virtual void exchange(std::span<const Part> out, std::span<const Part> in,
                        DType wire = DType::f32) = 0;
  // Collective: sums each part over all processes into the process of its rank; the part is
  // undefined elsewhere. The order of additions is not fixed. All pass the same ranks and counts.
  virtual void reduce(std::span<const Part> parts) = 0;
  // Records the backend's current progress as `place` (0, 1, ...). It may be part of replayed work
  // (Backend::replay) and then records at each replay.
  virtual void mark(int place) = 0;
  // Calls `work`, whose operations of the backend and of this class run beside the backend's other
  // work: after the progress recorded by mark(place), and one after the other, also across calls.
  // Work that follows the next exchange() or reduce() outside of beside() comes after them.
  virtual void beside(int place, const std::function<void()>& work) = 0;
  // Total seconds that the backend's other work has waited for exchanges, as far as the host has
  // waited for that work.
  virtual double waited() = 0;
};

}  // namespace finetune
