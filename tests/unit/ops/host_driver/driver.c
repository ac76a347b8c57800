// In place of NVIDIA's driver (libcuda.so.1), on machines without a GPU.
// There is no device, but what cuDNN has compiled for one can be loaded. So its plans can be made,
// and not run.
#include <stddef.h>

enum { kSuccess = 0, kNoDevice = 100 };
static int a_handle;

int cuInit(unsigned flags) {
  (void)flags;
  return kNoDevice;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
int cuDeviceGetCount(int* count) {
  *count = 0;
  return kNoDevice;
}
int cuGetErrorString(int error, const char** text) {
  *text = error == kSuccess ? "no error" : "no CUDA-capable device is detected";
  return kSuccess;
}
int cuLibraryLoadData(void** library, const void* code) {
  *library = code ? &a_handle : NULL;
  return code ? kSuccess : kNoDevice;
}
int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  *kernel = library && name ? &a_handle : NULL;
  return *kernel ? kSuccess : kNoDevice;
}
int cuLibraryUnload(void* library) {
  (void)library;
  return kSuccess;
}

// cuDNN wants these to be there, and calls none of them while it makes a plan.
#define NOT_HERE(name) \
  int name(void) {     \
    return kNoDevice;  \
  }
NOT_HERE(cuCtxGetCurrent)
NOT_HERE(cuCtxGetLimit)
NOT_HERE(cuCtxPopCurrent)
NOT_HERE(cuCtxPushCurrent)
NOT_HERE(cuDeviceGet)
NOT_HERE(cuGetErrorName)
NOT_HERE(cuKernelGetAttribute)
NOT_HERE(cuKernelGetFunction)
NOT_HERE(cuKernelSetAttribute)
NOT_HERE(cuLaunchCooperativeKernel)
NOT_HERE(cuLaunchKernel)
NOT_HERE(cuLaunchKernelEx)
NOT_HERE(cuLibraryLoadFromFile)
NOT_HERE(cuLinkAddData)
NOT_HERE(cuLinkComplete)
NOT_HERE(cuLinkCreate)
NOT_HERE(cuLinkDestroy)
NOT_HERE(cuOccupancyMaxPotentialClusterSize)
NOT_HERE(cuStreamGetCtx)
