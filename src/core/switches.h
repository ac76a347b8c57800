// The environment variables that the program reads, each once (docs/reference/commands.md).
#pragma once

#include <array>
#include <cstdlib>
#include <string_view>

namespace finetune {

struct Switch {
  const char* name;
  std::string_view values;
  std::string_view meaning;

  // The value; null if it is not set or empty.
  const char* value() const {
    const char* text = std::getenv(name);
    return text && *text ? text : nullptr;
  }
  // For a feature that "0" turns off: whether it is on, which is the default.
  bool is_on() const {
    const char* text = value();
    return !text || std::string_view(text) != "0";
  }
  bool is(std::string_view word) const {
    const char* text = value();
    return text && text == word;
  }
};

inline constexpr Switch kIsaSwitch{"FINETUNE_ISA", "avx2, avx512, avx512_bf16, amx",
                                   "the CPU's code path, in place of the best one"};
inline constexpr Switch kHostsSwitch{"FINETUNE_HOSTS", "N",
                                     "under mpirun: one host's processes as N hosts, for tests"};
inline constexpr Switch kStartLimitSwitch{
    "FINETUNE_START_LIMIT", "SECONDS",
    "under mpirun: seconds for the processes to find each other (120)"};
inline constexpr Switch kCudaAttentionSwitch{"FINETUNE_CUDA_ATTENTION", "own, cudnn",
                                             "the implementation of bf16 attention on a GPU"};
inline constexpr Switch kCudaGraphsSwitch{
    "FINETUNE_CUDA_GRAPHS", "N", "the largest number of CUDA graphs kept; 0: do not use any"};

inline constexpr Switch kCudaStreamsSwitch{
    "FINETUNE_CUDA_STREAMS", "0, 1, 2",
    "training on a GPU: 2 computes weights' gradients beside the rest of the backward pass (2)"};

inline constexpr Switch kCudaNormSwitch{
    "FINETUNE_CUDA_NORM", "0",
    "0: training on a GPU sums the gradients' squares after the backward pass, not during it"};

inline constexpr Switch kCudaKeptSwitch{
    "FINETUNE_CUDA_KEPT", "0",
    "0: training on a GPU never keeps results of activation functions for the backward pass"};

inline constexpr Switch kCudaAlgorithmsSwitch{"FINETUNE_CUDA_ALGORITHMS", "first, timed",
                                              "a GPU's products: cuBLASLt's first algorithm, or "
                                              "the fastest that had its bits when tried, which "
                                              "takes 512 MiB beyond what plan says (first)"};

inline constexpr Switch kCudaLaunchesSwitch{
    "FINETUNE_CUDA_LAUNCHES", "plain, programmatic",
    "whether a GPU's kernels may start before the kernel before them has ended (plain)"};

inline constexpr Switch kBatchesInFlightSwitch{
    "FINETUNE_BATCHES_IN_FLIGHT", "1, 2",
    "evaluation and prediction on a GPU: micro-batches computed while the host works (2)"};

inline constexpr Switch kGpuNodeSwitch{"FINETUNE_GPU_NODE", "PATH",
                                       "a file that stands for a GPU's /dev/nvidiactl, for tests"};

inline constexpr Switch kTimesSwitch{
    "FINETUNE_TIMES", "1", "evaluate, predict: standard error says when each phase ended"};

inline constexpr Switch kCudaMasksSwitch{
    "FINETUNE_CUDA_MASKS", "0",
    "0: bf16 attention on a GPU makes dropout masks twice, and has a block for each head"};
inline constexpr Switch kCudaSumsSwitch{"FINETUNE_CUDA_SUMS", "0",
                                        "0: separate kernels sum the gradients of biases on a GPU"};

inline constexpr std::array kSwitches{
    kIsaSwitch,        kHostsSwitch,           kStartLimitSwitch, kCudaAttentionSwitch,
    kCudaGraphsSwitch, kCudaStreamsSwitch,     kCudaNormSwitch,   kGpuNodeSwitch,
    kTimesSwitch,      kBatchesInFlightSwitch, kCudaKeptSwitch,   kCudaAlgorithmsSwitch,
    kCudaMasksSwitch,  kCudaLaunchesSwitch,    kCudaSumsSwitch};

}  // namespace finetune
