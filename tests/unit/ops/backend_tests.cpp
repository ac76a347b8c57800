// Every backend against the reference, and against itself with other thread counts.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "core/numeric/dtype.h"
#include "core/text/text.h"
#include "core/threads/parallel.h"
#include "op_case.h"
#include "ops/cpu/gemm/bf16_gemm.h"
#include "ops/cpu/isa.h"
#include "shared.h"

namespace finetune::test {
namespace {

struct Difference {
  double rms = 0;   // relative to the root mean square of the reference
  double peak = 0;  // largest, relative to the largest value of the reference
};

template <typename T>
Difference compare(const std::vector<T>& got, const std::vector<T>& expected) {
  double errors = 0, squares = 0, largest_error = 0, largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    double error = double(got[i]) - double(expected[i]);
    if (!std::isfinite(error)) error = std::numeric_limits<double>::infinity();
    errors += error * error;
    squares += double(expected[i]) * double(expected[i]);
    largest_error = std::max(largest_error, std::abs(error));
    largest = std::max(largest, std::abs(double(expected[i])));
  }
  // Gradients that are mathematically zero (softmax over one key) are compared absolutely: operands
  // are of the order of one.
  auto ratio = [](double error, double size) { return size == 0 ? error : error / size; };
  if (squares == 0) errors /= double(got.size());
  return {ratio(std::sqrt(errors), std::sqrt(squares)), ratio(largest_error, largest)};
}

// The case, with the forward operation's saved values filled in by the reference.
OpCase with_kept_values(const OpCase& c, Backend& reference) {
  OpCase out = c;
  if (!c.forward) return out;
  OpData data(c, reference);
  c.forward(reference, data);
  for (auto& [name, buffer] : out.buffers) {
    bool is_output = false;
    for (const std::string& output : c.outputs) is_output |= c.views.at(output).buffer == name;
    if (!is_output && data.has(name)) buffer.values = data.buffer(name);
  }
  return out;
}

// Rounds operands of matrix products to bf16, so that a bf16 backend's products are exact and only
// the order of its sums may differ.
bool takes_rounded(const OpCase& c, const Backend& backend) {
  return backend.compute_type() == DType::bf16 && (c.op.rfind("linear", 0) == 0 || c.offered);
}

OpCase with_bf16_operands(OpCase c) {
  for (auto& [name, buffer] : c.buffers) {
    const auto held = [](float value) { return value == float(bfloat16(value)); };
    const std::vector<float>& values = buffer.values.get();
    if (std::all_of(values.begin(), values.end(), held)) continue;
    for (float& value : buffer.values.own()) value = float(bfloat16(value));
  }
  return c;
}

// Elements of a buffer outside of the outputs must keep their bits.
void check_untouched(const OpCase& c, const std::string& name, const std::vector<float>& after) {
  const OpBuffer& buffer = c.buffers.at(name);
  std::vector<bool> written(size_t(buffer.stride), false);
  for (const std::string& output : c.outputs) {
    const OpView& view = c.views.at(output);
    if (view.buffer != name) continue;
    for (int64_t i = 0; i < view.cols; ++i) written[size_t(view.first + i)] = true;
  }
  const float* before = buffer.values.get().data();
  int64_t changed = 0;
  for (size_t row = 0; row < after.size(); row += written.size()) {
    for (size_t col = 0; col < written.size(); ++col) {
      if (written[col]) continue;
      const size_t i = row + col;
      changed += std::bit_cast<uint32_t>(after[i]) != std::bit_cast<uint32_t>(before[i]);
    }
  }
  INFO("buffer ", name);
  CHECK(changed == 0);
}

void check_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  CHECK(a.size() == b.size());
  CHECK((a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0));
}

// A case as given to backends, with the expected result.
struct ExpectedCase {
  OpCase given;
  OpData data;
  ExpectedCase(const OpCase& original, bool rounded, Backend& reference)
      : given(with_kept_values(rounded ? with_bf16_operands(original) : original, reference)),
        data(given, reference) {
    given.run(reference, data);
  }
};

// Against the reference, and against a second run of the same backend.
void check_case(ExpectedCase& expected, Backend& backend) {
  const OpCase& c = expected.given;
  OpData got(c, backend), again(c, backend);
  c.run(backend, got);
  c.run(backend, again);
  backend.synchronize();
  auto check = [&](const std::string& output, Difference d) {
    INFO(output, ": rms ", d.rms, " peak ", d.peak, " tolerance ", c.tolerance, " ",
         std::string(c.reason));
    CHECK(d.rms <= c.tolerance);
    CHECK(d.peak <= kPeak * c.tolerance);
  };
  std::map<std::string, std::vector<float>> after;
  for (const auto& [name, buffer] : c.buffers) {
    if (got.has(name)) after[name] = got.buffer(name);
  }
  for (const std::string& output : c.outputs) {
    const std::vector<float> values = without_gaps(c, output, after.at(c.views.at(output).buffer));
    check(output, compare(values, expected.data.values(output)));
  }
  CHECK(got.doubles == again.doubles);
  const std::vector<double>& doubles = expected.data.doubles;
  if (!doubles.empty()) check("doubles", compare(got.doubles, doubles));
  for (const auto& [name, values] : after) {
    check_untouched(c, name, values);
    check_same_bits(values, again.buffer(name));
  }
}

struct Tested {
  const char* name;
  std::unique_ptr<Backend> backend;
};

// A missing device is a skip.
std::vector<Tested> backends_of(Device device) {
  std::vector<Tested> all;
  for (const BackendFactory& factory : backends_under_test()) {
    if (factory.device != device) continue;
    if (auto backend = factory.make()) all.push_back({factory.name, std::move(backend)});
  }
  if (all.empty()) skip(device == Device::gpu ? "no CUDA device" : "no backend of the CPU");
  return all;
}

template <typename Body>
void for_each_backend(Device device, Body&& body) {
  for (const auto& [name, backend] : backends_of(device)) {
    INFO("backend ", name, ": ", backend->description());
    body(*backend);
  }
}

// Whether OP_TABLE_OPS, beginnings of names separated by commas, asks for this operation. Tools
// that make each case slow run some of the table (scripts/gpu/gpu_day.sh).
bool is_wanted(const OpCase& c) {
  const char* given = std::getenv("OP_TABLE_OPS");
  if (!given) return true;
  for (std::string_view beginning : split(given, ',')) {
    if (c.op.starts_with(beginning)) return true;
  }
  return false;
}

// Backends with the same inputs share the expected result.
void check_table(const std::vector<Tested>& backends) {
  auto reference = make_reference_backend();
  int64_t wanted_cases = 0;
  for (const OpCase& c : op_table()) {
    if (!is_wanted(c)) continue;
    ++wanted_cases;
    std::optional<ExpectedCase> expected, expected_of_rounded;
    for (const auto& [name, backend] : backends) {
      if (c.offered && !c.offered(*backend)) continue;
      INFO("backend ", name, ": ", backend->description());
      INFO(c.op, " ", c.shape);
      const bool rounded = takes_rounded(c, *backend);
      std::optional<ExpectedCase>& wanted = rounded ? expected_of_rounded : expected;
      if (!wanted) wanted.emplace(c, rounded, *reference);
      check_case(*wanted, *backend);
    }
  }
  CHECK(wanted_cases > 0);
}

// A case's results: its outputs one after the other, then host values.
struct Outcome {
  std::vector<float> values;
  std::vector<double> doubles;
};

Outcome outcome_of(const OpCase& c, Backend& backend) {
  OpData data(c, backend);
  c.run(backend, data);
  Outcome outcome{{}, data.doubles};
  for (const std::string& output : c.outputs) {
    const std::vector<float> values = data.values(output);
    outcome.values.insert(outcome.values.end(), values.begin(), values.end());
  }
  return outcome;
}

bool same_bits(const Outcome& a, const Outcome& b) {
  return a.values.size() == b.values.size() && a.doubles == b.doubles &&
         (a.values.empty() ||
          std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(float)) == 0);
}

// Operations without freedom in the order of sums, and with prescribed rounding.
const std::set<std::string> kSameBitsEverywhere = {
    "add",          "dropout",     "gather_rows",    "scatter_rows_add",
    "scatter_rows", "embed",       "merge",          "adamw",
    "merge_rows",   "adamw_rows",  "adamw_catch_up", "add_losses",
    "step_outcome", "adamw_parts",
};

}  // namespace

TEST_CASE("bf16 products in vector registers, where tile registers are the rule") {
  if (select_isa() != Isa::amx) return skip("no AMX: vector registers are the rule, or no bf16");
  std::vector<Tested> backends;
  backends.push_back({"CPU, bf16, no tile registers", make_cpu_backend(DType::bf16)});
  struct Restore {
    ~Restore() { cpu::use_tile_registers(true); }
  } restore;
  cpu::use_tile_registers(false);
  check_table(backends);
}

TEST_CASE("the GPU drops cached plans of products if there are too many shapes") {
  for_each_backend(Device::gpu, [](Backend& backend) {
    if (backend.compute_type() != DType::f32) return;
    constexpr int64_t kMost = 102;
    std::vector<float> x, y(2 * kMost);
    for (int64_t i = 0; i < kMost; ++i) x.push_back(1 + float(i) / 128);
    const auto from = backend.allocate(x.size() * sizeof(float));
    const auto to = backend.allocate(size_t(kMost * kMost) * sizeof(float));
    backend.upload(from.get(), x.data(), x.size() * sizeof(float));
    auto multiply = [&](int64_t rows, int64_t out) {
      float* values = static_cast<float*>(from.get());
      backend.linear(matrix(values, rows, 1), matrix(values, out, 1), {},
                     matrix(static_cast<float*>(to.get()), rows, out));
    };
    for (int64_t rows = 1; rows <= kMost; ++rows) {
      for (int64_t out = 2; out <= kMost; ++out) multiply(rows, out);
    }
    multiply(2, kMost);
    backend.download(y.data(), to.get(), y.size() * sizeof(float));
    for (int64_t i = 0; i < 2 * kMost; ++i) {
      CHECK(y[size_t(i)] == x[size_t(i / kMost)] * x[size_t(i % kMost)]);
    }
  });
}

TEST_CASE("every op of the CPU's backends equals the reference") {
  check_table(backends_of(Device::cpu));
}

TEST_CASE("every op of the GPU's backends equals the reference") {
  check_table(backends_of(Device::gpu));
}

TEST_CASE("attention by a library on the GPU equals the reference") {
  const auto reference = make_reference_backend();
  int64_t checked = 0;
  for_each_backend(Device::gpu, [&](Backend& backend) {
    if (!backend.library_attention()) return;
    for (const OpCase& c : op_table()) {
      if (c.op.rfind("attention", 0) != 0 || !c.offered || !c.offered(backend)) continue;
      INFO(c.op, " ", c.shape);
      ExpectedCase expected(c, takes_rounded(c, backend), *reference);
      check_case(expected, backend);
      ++checked;
    }
  });
  if (checked == 0) skip("no GPU whose attention is a library's (FINETUNE_CUDA_ATTENTION=cudnn)");
}

// If a backend confused two similar functions, some case in fp32 and in bf16 would fail.
TEST_CASE("the op table tells activations apart") {
  auto reference = make_reference_backend();
  std::map<std::string, bool> told;
  for (const OpCase& c : op_table()) {
    if (!c.activation) continue;
    const std::string kind = concat(c.op, c.offered ? " bf16 " : " ", int(*c.activation), " as ");
    std::vector<float> expected;
    for (Activation other : {Activation::gelu, Activation::gelu_tanh, Activation::relu,
                             Activation::silu, Activation::tanh}) {
      bool& done = told[kind + std::to_string(int(other))];
      if (done |= other == *c.activation) continue;
      if (expected.empty()) expected = outcome_of(c, *reference).values;
      OpCase wrong = c;
      wrong.activation = other;
      const Difference d = compare(outcome_of(wrong, *reference).values, expected);
      done = d.rms > 2 * c.tolerance || d.peak > 2 * kPeak * c.tolerance;
    }
  }
  CHECK(told.size() == size_t(2 * 2 * 5 * 5 + 4 * 5 + 2 * 2 * 3 * 5));
  for (const auto& kind : told) {
    INFO(kind.first);
    CHECK(kind.second);
  }
}

TEST_CASE("results do not depend on the number of threads") {
  auto reference = make_reference_backend();
  const int before = threads();
  const auto backends = backends_of(Device::cpu);
  for (const OpCase& original : op_table()) {
    const OpCase c = with_kept_values(original, *reference);
    for (const auto& [name, backend] : backends) {
      if (c.offered && !c.offered(*backend)) continue;
      INFO("backend ", name, ": ", backend->description());
      INFO(c.op, " ", c.shape);
      Outcome first;
      for (int count : {1, 3, 16}) {
        set_threads(count);
        const Outcome outcome = outcome_of(c, *backend);
        if (count == 1) first = outcome;
        INFO("with ", count, " threads");
        CHECK(same_bits(outcome, first));
      }
    }
  }
  set_threads(before);
}

TEST_CASE("the GPU's updates, masks and copies have the CPU's bits") {
  auto cpu = make_cpu_backend();
  for_each_backend(Device::gpu, [&](Backend& backend) {
    for (const OpCase& c : op_table()) {
      if (!kSameBitsEverywhere.contains(c.op)) continue;
      INFO(c.op, " ", c.shape);
      CHECK(same_bits(outcome_of(c, backend), outcome_of(c, *cpu)));
    }
  });
}

}  // namespace finetune::test
