// Programmatic launches: a kernel's blocks may start before the kernel before it has ended.
#pragma once

namespace finetune::cuda {

// Every kernel begins with it, in all of its threads: waits until the kernels before it have ended
// and what they wrote is there. Free of cost where nothing started early.
__device__ inline void wait_for_earlier_kernels() {
#if __CUDA_ARCH__ >= 900  // older GPUs start none early
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace finetune::cuda
