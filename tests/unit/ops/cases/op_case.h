// The op table: every operation of ops/backend.h over odd shapes, described once. It drives the
// comparison of a backend with the reference, of the reference's gradients with finite
// differences, of thread counts with each other, and benchmarks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/backend.h"

namespace finetune::test {

class OpData;

// Values that copies share until one changes: the table has many copies of large ones.
class OpValues {
 public:
  OpValues(std::vector<float> values = {})
      : shared_(std::make_shared<std::vector<float>>(std::move(values))) {}
  const std::vector<float>& get() const { return *shared_; }
  std::vector<float>& own() {
    if (shared_.use_count() > 1) shared_ = std::make_shared<std::vector<float>>(*shared_);
    return *shared_;
  }

 private:
  std::shared_ptr<std::vector<float>> shared_;
};

// Memory of a call, as it is before the call.
struct OpBuffer {
  int64_t rows = 0;
  int64_t stride = 0;
  OpValues values;           // (rows, stride)
  DType dtype = DType::f32;  // of that memory, f32 or bf16
};

// An operand: columns [first, first + cols) of a buffer. Operands of one buffer may overlap or be
// adjacent; columns outside of all outputs must not be written.
struct OpView {
  std::string buffer;
  int64_t first = 0;
  int64_t cols = 0;
};

struct OpGradient {
  std::string input;
  std::string gradient;
  bool added = false;  // the operation adds to what is there
};

using OpRun = std::function<void(Backend&, OpData&)>;
using OpOffered = std::function<bool(const Backend&)>;

struct OpCase {
  std::string op;
  std::string shape;
  // The largest root-mean-square error relative to that of the reference values. A single error may
  // be kPeak times as large, relative to the largest reference value.
  double tolerance = 0;
  const char* reason = "";  // of the tolerance
  double work = 0;          // multiplications, about

  std::map<std::string, OpBuffer> buffers;
  std::map<std::string, OpView> views;
  std::map<std::string, std::vector<int32_t>> integers;
  std::optional<Activation> activation;  // if the operation has one
  // whether a backend under test has it; null: all have. The reference has every operation.
  OpOffered offered;
  OpRun run;
  std::vector<std::string> outputs;  // all that `run` writes

  // For gradients: the forward operation, which also fills the values saved for `run`; pairs of its
  // output and that output's gradient; inputs and their gradients as `run` writes them.
  OpRun forward;
  std::vector<std::pair<std::string, std::string>> cotangents;
  std::vector<OpGradient> gradients;
};

constexpr double kPeak = 8;

// A case's operands in a backend's memory, created at first use, since most operations need only
// some.
class OpData {
 public:
  OpData(const OpCase& op_case, Backend& backend) : case_(op_case), backend_(backend) {}

  Tensor operator[](const std::string& view) const;  // empty if the case lacks the operand
  const int32_t* ints(const std::string& name) const;
  const uint32_t* uints(const std::string& name) const;
  RowNames names() const;  // integers "positions" and "samples"
  // With key and step in backend memory if the case asks for that (OpCaseMaker::stream).
  Dropout streamed(Dropout dropout) const;
  Segments segments(const std::string& name) const;  // integers `name` are the offsets
  Activation activation() const { return case_.activation.value(); }
  bool has(const std::string& buffer) const { return memory_.contains(buffer); }
  std::vector<float> buffer(const std::string& name) const;  // downloaded
  std::vector<float> values(const std::string& view) const;  // downloaded, without gaps
  std::vector<double> doubles;                               // results that live on the host

 private:
  const OpCase& case_;
  Backend& backend_;
  mutable std::map<std::string, std::shared_ptr<void>> memory_;

  void* placed(const std::string& name) const;
  void* put(const std::string& name, const void* host, size_t bytes) const;
};

// The elements of a view in its buffer's values.
std::vector<float> without_gaps(const OpCase& op_case, const std::string& view,
                                const std::vector<float>& buffer);

// Builds a case. Inputs are drawn from [-range, range] in multiples of 2^-12, so that a finite
// difference step of a power of two is exact.
class OpCaseMaker {
 public:
  OpCaseMaker(std::string op, std::string shape, double tolerance, const char* reason);

  OpCaseMaker& input(const std::string& name, int64_t rows, int64_t cols, int64_t gap = 0,
                     double range = 1);
  OpCaseMaker& constant(const std::string& name, int64_t rows, int64_t cols, float value);
  // Memory to be overwritten; starts as NaN.
  OpCaseMaker& result(const std::string& name, int64_t rows, int64_t cols, int64_t gap = 0);
  OpCaseMaker& view(const std::string& name, const std::string& buffer, int64_t first,
                    int64_t cols);
  OpCaseMaker& integers(const std::string& name, std::vector<int32_t> values);
  // Positions and samples of packed sequences as integers "positions" and "samples".
  OpCaseMaker& row_names(int64_t rows);
  OpCaseMaker& stream(const Dropout& dropout);
  OpCaseMaker& work(double multiplications);
  OpCaseMaker& run(OpRun run, std::vector<std::string> outputs);
  OpCaseMaker& gradient_of(OpRun forward,
                           std::vector<std::pair<std::string, std::string>> cotangents,
                           std::vector<OpGradient> gradients);

  OpCase& get() { return case_; }
  operator OpCase() const { return case_; }

 private:
  OpCase case_;
  uint32_t stream_ = 0;
};

// The case with these of its buffers in bf16, for backends with bf16 activations only. It has no
// gradients, because finite differences do not work for rounded values. Both sides round their
// results, which may differ by one unit near a tie.
constexpr double kRounded = 1e-3;
constexpr const char* kRoundedReason = "results are rounded to bf16";
OpCase in_bf16(OpCase op_case, const std::vector<std::string>& buffers, double tolerance,
               const char* reason);

// The case for backends alone whose kernels sum the columns of what they write
// (Backend::sums_columns); `tolerance` at least.
OpCase with_sums(OpCase op_case, double tolerance = 0);

// Rounding errors of a float sum of `count` terms of random sign, relative to the sum: a random
// walk gives about 0.2 * eps * sqrt(count); five times that and a little for the operands.
double sum_tolerance(int64_t count);

void add_matrix_cases(std::vector<OpCase>& table);
void add_elementwise_cases(std::vector<OpCase>& table);
void add_row_cases(std::vector<OpCase>& table);
void add_attention_cases(std::vector<OpCase>& table);
void add_pair_cases(std::vector<OpCase>& table);
void add_layer_cases(std::vector<OpCase>& table);
void add_loss_cases(std::vector<OpCase>& table);
void add_optimizer_cases(std::vector<OpCase>& table);
const std::vector<OpCase>& op_table();

// The backends compared with the reference. A new backend is one line in backends.cpp.
enum class Device { cpu, gpu };
struct BackendFactory {
  const char* name;
  Device device;
  std::unique_ptr<Backend> (*make)();  // null if this machine lacks the device
};
const std::vector<BackendFactory>& backends_under_test();

}  // namespace finetune::test
