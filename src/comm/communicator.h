// Between processes. `solo` is one process.
#pragma once

#include <cstdint>
#include <memory>

namespace finetune {

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void barrier() = 0;
  // The largest of all processes' values: agreement on a flag or an error.
  virtual int64_t maximum(int64_t value) = 0;
  // Adds the processes' arrays in a fixed binary tree over ranks; every process gets the sum.
  virtual void all_reduce(float* data, int64_t count) = 0;
  virtual void all_reduce(double* data, int64_t count) = 0;
  virtual void broadcast(void* data, int64_t bytes, int root) = 0;
};

std::unique_ptr<Communicator> make_solo_communicator();

}  // namespace finetune
