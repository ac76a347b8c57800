// The list of operations: each has cases in the op table. The profiling backend forwards each
// unchanged.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "op_case.h"
#include "ops/profiling_backend.h"

namespace finetune::test {
namespace {

const std::set<std::string> kOperations = {
#define OPERATION(name, parameters, arguments) #name,
#define LAYER_OPERATION OPERATION
#include "ops/operations.inc"
};

// For a failure to show.
std::string names_of(const std::set<std::string>& operations) {
  std::string names;
  for (const std::string& each : operations) names += each + "\n";
  return names;
}

// The results of a case, and of the forward operation that fills its saved values.
struct Results {
  std::vector<float> values;
  std::vector<double> doubles;
};

Results results_of(const OpCase& c, Backend& backend) {
  OpData data(c, backend);
  if (c.forward) c.forward(backend, data);
  c.run(backend, data);
  Results results{{}, data.doubles};
  for (const auto& [name, buffer] : c.buffers) {
    const std::vector<float> values = data.buffer(name);
    results.values.insert(results.values.end(), values.begin(), values.end());
  }
  return results;
}

bool same_bits(const Results& a, const Results& b) {
  return a.values.size() == b.values.size() && a.doubles == b.doubles &&
         std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("every operation has a case in the op table, and every case is of an operation") {
  std::set<std::string> cases;
  for (const OpCase& c : op_table()) cases.insert(c.op);
  CHECK(names_of(cases) == names_of(kOperations));
}

TEST_CASE("a profiled backend computes what the backend computes, and records it by its name") {
  constexpr double kMostWork = 1e4;
  const auto plain = make_reference_backend();
  ProfilingBackend profiled(make_reference_backend());
  std::set<std::string> recorded;
  for (const OpCase& c : op_table()) {
    if (c.work > kMostWork) continue;
    INFO(c.op, " ", c.shape);
    profiled.clear();
    CHECK(same_bits(results_of(c, profiled), results_of(c, *plain)));
    bool found = false;
    for (const auto& [key, record] : profiled.profile()) {
      if (key.op == c.op && record.calls > 0 && record.bytes > 0) found = true;
    }
    if (found) recorded.insert(c.op);
  }
  std::set<std::string> expected = kOperations;
  expected.erase("adamw_parts");  // recorded as adamw of several parts
  CHECK(names_of(recorded) == names_of(expected));
}

}  // namespace finetune::test
