#include "op_case.h"

namespace finetune::test {

const std::vector<BackendFactory>& backends_under_test() {
  static const std::vector<BackendFactory> backends = {{"CPU", make_cpu_backend}};
  return backends;
}

}  // namespace finetune::test
