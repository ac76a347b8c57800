// The SHA-256 of a model's weights, computed on a thread of its own beside the inference.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <thread>

#include "model/parameters.h"

namespace finetune {

class WeightsSum {
 public:
  // `arena`: of `table`, in memory of the host; it must not change before hex() returns.
  WeightsSum(ParameterTable table, std::shared_ptr<float> arena);
  ~WeightsSum();
  WeightsSum(const WeightsSum&) = delete;
  WeightsSum& operator=(const WeightsSum&) = delete;

  // Waits for the sum of the safetensors file that has these weights in f32, and returns it.
  std::string hex();

 private:
  void compute() noexcept;

  ParameterTable table_;
  std::shared_ptr<float> arena_;
  std::string hex_;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace finetune
