// The SHA-256 of a model's weights, computed on a thread of its own beside the inference.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <thread>

#include "model/parameters.h"
#include "weights/weights.h"

namespace finetune {

class WeightsSum {
 public:
  // Reads the tensors of `table`, which describes the whole model, one by one.
  WeightsSum(ParameterTable table, std::unique_ptr<WeightSource> source);
  ~WeightsSum();
  WeightsSum(const WeightsSum&) = delete;
  WeightsSum& operator=(const WeightsSum&) = delete;

  // Waits for the SHA-256 that a safetensors file of these weights in f32 would have, and returns
  // it. Error(model): the weights cannot be read any more.
  std::string hex();

 private:
  void compute() noexcept;

  ParameterTable table_;
  std::unique_ptr<WeightSource> source_;
  std::string hex_;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace finetune
