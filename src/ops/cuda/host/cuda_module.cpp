// Finds and loads finetune_cuda.so, and checks its version.
#include "ops/cuda/host/cuda_module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/files/files.h"
#include "core/log.h"
#include "core/switches.h"
#include "core/text/text.h"

namespace finetune {
namespace {

constexpr const char* kName = "finetune_cuda.so";  // FINETUNE_MODULE_FOLDER: meson.build

void log_from_module(const char* line) {
  log_line(line);
}

CudaModule load() {
  std::error_code error;
  const fs::path folder = program_folder();
  std::vector<fs::path> places = {folder / kName, folder / FINETUNE_MODULE_FOLDER / kName};
  fs::path found;
  for (const auto& place : places) {
    if (found.empty() && fs::exists(place, error)) found = place;
  }
  if (found.empty())
    return {nullptr, "built without CUDA (no finetune_cuda.so beside the program)"};
  void* handle = ::dlopen(found.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return {nullptr, concat("cannot be loaded: ", ::dlerror())};
  auto* entry =
      reinterpret_cast<decltype(&finetune_cuda_module)>(::dlsym(handle, "finetune_cuda_module"));
  static const FinetuneHostServices services = {kFinetuneCudaAbi, log_from_module};
  const FinetuneCudaModule* functions = entry ? entry(&services) : nullptr;
  if (!functions || functions->abi != kFinetuneCudaAbi) {
    return {nullptr, concat(found.string(), ": belongs to another version of this program")};
  }
  return {functions, ""};
}

}  // namespace

const CudaModule& cuda_module() {
  static const CudaModule module = load();
  return module;
}

bool gpu_may_be_present() {
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    if (*visible == '\0' || std::string_view(visible) == "-1") return false;
  }
  std::error_code error;
  if (const char* node = kGpuNodeSwitch.value()) return fs::exists(node, error);
  return fs::exists("/dev/nvidiactl", error) || fs::exists("/dev/dxg", error);
}

int count_gpus(std::string& problem) {
  const CudaModule& module = cuda_module();
  problem = module.problem;
  if (!module.functions) return 0;
  char text[512];
  const int devices = module.functions->count_devices(text, sizeof text);
  if (devices == 0) problem = text;
  return devices;
}

}  // namespace finetune
