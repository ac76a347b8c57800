// The entry of finetune_cuda.so.
#include <cstring>
#include <exception>
#include <string>

#include "ops/cuda/module/describe.h"
#include "ops/cuda/module/devices.h"
#include "ops/cuda/module/functions.h"
#include "ops/cuda/module/module.h"

namespace {

void put(char* buffer, size_t size, const std::string& text) {
  if (size == 0) return;
  const size_t count = text.size() < size - 1 ? text.size() : size - 1;
  std::memcpy(buffer, text.data(), count);
  buffer[count] = '\0';
}

// Wraps kQuery(text) so that no exception leaves it; the result is then `failed`.
template <auto kQuery>
int answer(char* buffer, size_t size, int failed) {
  std::string text;
  int result = failed;
  try {
    result = int(kQuery(text));
  } catch (const std::exception& error) {
    text = error.what();
  }
  put(buffer, size, text);
  return result;
}

int describe(char* text, size_t size) {
  return answer<finetune::cuda::describe>(text, size, 0) == 0;
}

int number_of_devices(std::string& problem) {
  return int(finetune::cuda::usable_devices(problem).size());
}

int count_devices(char* message, size_t size) {
  return answer<number_of_devices>(message, size, 0);
}

int self_test(char* message, size_t size) {
  return answer<finetune::cuda::self_test>(message, size, 0) == 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const FinetuneCudaModule* finetune_cuda_module(
    const FinetuneHostServices* services) {
  static const FinetuneCudaModule module = {kFinetuneCudaAbi, describe, count_devices, self_test,
                                            &finetune::cuda::functions()};
  return services && services->abi == kFinetuneCudaAbi ? &module : nullptr;
}
