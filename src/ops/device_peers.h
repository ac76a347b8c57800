// Processes that each have a device of their own, and a way from device to device. What goes
// between them is in one order, the same on all processes.
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

  // `count` floats in device memory, to, from or for the process of this rank.
  struct Part {
    int rank;
    float* data;
    int64_t count;
  };
  // Both are in order with the backend's other work, but where beside() calls them, and return at
  // once. Collective among those that have parts for each other; between two processes parts match
  // in order. With `wire` bf16 the floats are rounded to it on the way.
  virtual void exchange(std::span<const Part> out, std::span<const Part> in,
                        DType wire = DType::f32) = 0;
  // Collective: each part is summed over all processes into that of the process it is for; others'
  // are undefined then. The order of additions is not fixed. All pass the same ranks and counts.
  virtual void reduce(std::span<const Part> parts) = 0;
  // The backend's work, as far as it is now, is what `place` (0, 1, ...) stands for from now on.
  // May be part of work that is replayed (Backend::replay): then each time as it is done.
  virtual void mark(int place) = 0;
  // Calls `work`, whose operations of the backend and of this class are done beside the backend's
  // other work: after what mark(place) says, and one after the other, also from call to call. All
  // that follows the next exchange() or reduce() elsewhere comes after them.
  virtual void beside(int place, const std::function<void()>& work) = 0;
  // Seconds that the backend's other work has waited for exchanges, in all, as far as the host has
  // waited for that work.
  virtual double waited() = 0;
};

}  // namespace finetune
