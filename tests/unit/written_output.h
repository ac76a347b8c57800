// A PredictionOutput in memory.
#pragma once

#include <string>
#include <string_view>

#include "tasks/evaluator.h"

namespace finetune::test {

class WrittenOutput final : public PredictionOutput {
 public:
  // Appends to `text`, which must outlive this.
  explicit WrittenOutput(std::string& text) : text_(text) {}
  void write(std::string_view more) override { text_ += more; }
  void flush() override {}
  void complete() override {}
  void commit() override {}

 private:
  std::string& text_;
};

}  // namespace finetune::test
