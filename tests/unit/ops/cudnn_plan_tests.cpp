// Plans of cuDNN attention, made by cuDNN itself for an H100 that is not there.
// The plans are those of src/ops/cuda/attention/cudnn_attention.cu: cuDNN takes a description of a
// device in place of one, finds an engine for the graph and compiles its kernels. host_driver has
// the driver's part. What the kernels compute only a GPU can show.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "ops/cuda/attention/cudnn_attention.h"
#include "shared.h"

namespace finetune::test {
namespace {

using cuda::CudnnDescriptor;
using cuda::FusedShape;

constexpr char kH100[] = R"({"deviceVer": 900, "multiProcessorCount": 132, "warpSize": 32,
  "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
  "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "regsPerBlock": 65536,
  "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048,
  "totalGlobalMem": 85000000000, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000,
  "l2CacheSize": 52428800, "maxBlockSize": [1024, 1024, 64],
  "maxGridSize": [2147483647, 65535, 65535], "supportCoopLaunch": 1, "pciDeviceId": 0,
  "isTccDriver": 0, "cudaDeviceId": 0, "driverVer": 13000, "deviceName": "H100"})";

CudnnDescriptor h100() {
  CudnnDescriptor device(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "device");
  device.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, int64_t(sizeof kH100 - 1),
             kH100);
  return std::move(device.finalize());
}

// As in the model: q, k and v side by side.
FusedShape shape_of(bool backward, int64_t sequences, int64_t length, int64_t heads,
                    int64_t head_size, uint32_t threshold) {
  const int64_t width = heads * head_size;
  return {backward,  sequences, length, heads,  head_size, 3 * width,
          3 * width, 3 * width, width,  0.125f, threshold};
}

int64_t workspace_of(const FusedShape& shape) {
  static const CudnnDescriptor device = h100();
  std::vector<int64_t> numbers;
  const CudnnDescriptor plan = cuda::attention_graph(shape, numbers).plan(nullptr, &device);
  int64_t bytes = -1;
  plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
  std::sort(numbers.begin(), numbers.end());
  CHECK(std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end());
  return bytes;
}

bool have_cudnn() {
  REQUIRE(::dlopen(HOST_DRIVER, RTLD_NOW) != nullptr);
  try {
    cuda::Cudnn::library();
    return true;
  } catch (const std::exception& error) {
    skip(error.what());
    return false;
  }
}

}  // namespace

TEST_CASE("cuDNN has deterministic plans for packed attention with dropout on an H100") {
  if (!have_cudnn()) return;
  struct Model {
    int64_t sequences, length, heads, head_size;
    // only the training plan of a head size that has all four plans: saves seconds
    bool training_alone = false;
  };
  const Model models[] = {{32, 384, 12, 64},       {64, 512, 12, 64, true}, {8, 256, 16, 64, true},
                          {32, 384, 12, 32},       {8, 384, 2, 128},        {8, 256, 4, 24},
                          {10, 256, 12, 64, true}, {40, 384, 12, 64, true}};
  for (const Model& m : models) {
    for (uint32_t threshold : {0u, 6554u}) {
      for (bool backward : {false, true}) {
        if (m.training_alone && (threshold == 0 || !backward)) continue;
        INFO(m.sequences, " sequences of up to ", m.length, ", ", m.heads, " heads of ",
             m.head_size, std::string(threshold ? ", dropout" : ""),
             std::string(backward ? ", backward" : ""));
        int64_t bytes = -1;
        REQUIRE_NOTHROW(bytes = workspace_of(shape_of(backward, m.sequences, m.length, m.heads,
                                                      m.head_size, threshold)));
        // The gradients of all scores, and little else, as `plan` forecasts.
        const int64_t scores = backward ? m.sequences * m.heads * m.length * m.length * 2 : 0;
        CHECK(bytes >= scores);
        CHECK(bytes <= scores + (int64_t{1} << 16));
      }
    }
  }
}

TEST_CASE("attention that cuDNN cannot compute is refused") {
  if (!have_cudnn()) return;
  CHECK_THROWS_AS(workspace_of(shape_of(false, 8, 384, 4, 20, 0)), std::runtime_error);
  CHECK_THROWS_AS(workspace_of(shape_of(true, 8, 384, 4, 20, 0)), std::runtime_error);
  CHECK_THROWS_AS(workspace_of(shape_of(true, 8, 384, 4, 512, 0)), std::runtime_error);
}

}  // namespace finetune::test
