// Copies beside a GPU's other work, through the module's functions.
#include "ops/cuda/host/cuda_backend.h"

namespace finetune {

class CudaBackend::Copies final : public HostCopies {
 public:
  Copies(const CudaBackend& backend, cuda::HostCopies* copies)
      : backend_(backend), copies_(copies, backend.functions_.drop_host_copies) {}

  void store(int number, void* host, const void* from, size_t bytes) override {
    backend_.call("copying to the host", backend_.functions_.store_copy, copies_.get(), number,
                  host, from, bytes);
  }
  void load(int number, void* to, const void* host, size_t bytes) override {
    backend_.call("copying from the host", backend_.functions_.load_copy, copies_.get(), number, to,
                  host, bytes);
  }
  void wait(int number) override {
    backend_.call("waiting for a copy", backend_.functions_.wait_for_copy, copies_.get(), number);
  }

 private:
  const CudaBackend& backend_;
  std::unique_ptr<cuda::HostCopies, void (*)(cuda::HostCopies*)> copies_;
};

std::unique_ptr<HostCopies> CudaBackend::make_host_copies(int numbers) {
  cuda::HostCopies* copies = nullptr;
  call("making copies to the host", functions_.make_host_copies, numbers, &copies);
  return std::make_unique<Copies>(*this, copies);
}

}  // namespace finetune
