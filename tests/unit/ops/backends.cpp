#include "op_case.h"

namespace finetune::test {

const std::vector<BackendFactory>& backends_under_test() {
  static const std::vector<BackendFactory> backends = {
      {"CPU", [] { return make_cpu_backend(); }},
      {"CPU, bf16", [] { return make_cpu_backend(DType::bf16); }},
  };
  return backends;
}

}  // namespace finetune::test
