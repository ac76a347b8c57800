// The emulated cuBLASLt ends the program if two streams share a workspace.
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kSize = 2, kProducts = 2000;

// Products of 2 x 2 matrices on two streams in turn, each with its own workspace or both with one.
void multiply_on_two_streams(bool shared) {
  ::unsetenv("HOST_CUDA_STREAMS");  // streams advance by turns
  cublasLtMatmulDesc_t product;
  cublasLtMatrixLayout_t layout;
  cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, kSize, kSize, kSize);
  cublasLtMatmulAlgo_t algorithm = {};
  for (uint32_t& alignment : algorithm.alignment) alignment = 4;
  float* values = nullptr;
  char* workspaces = nullptr;
  constexpr size_t kWorkspace = 4096;
  cudaMalloc(reinterpret_cast<void**>(&values), 4 * kSize * kSize * sizeof(float));
  cudaMalloc(reinterpret_cast<void**>(&workspaces), 2 * kWorkspace);
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  const float one = 1, zero = 0;
  for (int i = 0; i < kProducts; ++i) {
    const int place = i % 2;
    float* result = values + (2 + place) * kSize * kSize;
    cublasLtMatmul(nullptr, product, &one, values, layout, values + kSize * kSize, layout, &zero,
                   result, layout, result, layout, &algorithm,
                   workspaces + (shared ? 0 : size_t(place) * kWorkspace), kWorkspace,
                   streams[place]);
  }
  for (cudaStream_t stream : streams) cudaStreamSynchronize(stream);
}

int status_of(bool shared) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    if (const int nowhere = ::open("/dev/null", O_WRONLY); nowhere >= 0) ::dup2(nowhere, 2);
    multiply_on_two_streams(shared);
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace

TEST_CASE("products on two streams of the GPU must not share a workspace") {
  CHECK(status_of(false) == 0);
  const int status = status_of(true);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
}
