// Replaces ../backends.cpp: the backend with tile registers.
#include "op_case.h"

namespace finetune::test {

const std::vector<BackendFactory>& backends_under_test() {
  static const std::vector<BackendFactory> backends = {
      {"CPU, bf16", Device::cpu, [] { return make_cpu_backend(DType::bf16); }},
  };
  return backends;
}

}  // namespace finetune::test
