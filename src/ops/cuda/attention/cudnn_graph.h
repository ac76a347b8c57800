// A wrapper of cuDNN's backend API: owned descriptors, and graphs of operations. The library is
// opened at first use; building needs only its headers.
#pragma once

#include <cudnn.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace finetune::cuda {

// The library's functions.
struct Cudnn {
  decltype(&cudnnGetVersion) get_version;
  decltype(&cudnnGetLastErrorString) get_last_error;
  decltype(&cudnnCreate) create;
  decltype(&cudnnDestroy) destroy;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&cudnnBackendSetAttribute) set_attribute;
  decltype(&cudnnBackendGetAttribute) get_attribute;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendExecute) execute;

  // Throws std::runtime_error if the library is missing or too old.
  static const Cudnn& library();
  // Throws std::runtime_error with cuDNN's message.
  void check(cudnnStatus_t status, const char* what) const;
};
std::string cudnn_version();  // "9.19.0"

class CudnnDescriptor {
 public:
  CudnnDescriptor(cudnnBackendDescriptorType_t type, const char* name);
  CudnnDescriptor(CudnnDescriptor&& other) noexcept
      : name_(other.name_), raw_(std::exchange(other.raw_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(name_, other.name_);
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~CudnnDescriptor();

  using Name = cudnnBackendAttributeName_t;
  CudnnDescriptor& set(Name name, cudnnBackendAttributeType_t type, int64_t count,
                       const void* values);
  CudnnDescriptor& set(Name name, int64_t value);
  CudnnDescriptor& set(Name name, double value);
  CudnnDescriptor& set(Name name, bool value);
  CudnnDescriptor& set(Name name, cudnnDataType_t value);
  CudnnDescriptor& set(Name name, const std::vector<int64_t>& values);
  CudnnDescriptor& set(Name name, const CudnnDescriptor& value);
  CudnnDescriptor& finalize();
  // Returns the number of values and writes up to `count` of them.
  int64_t get(Name name, cudnnBackendAttributeType_t type, int64_t count, void* values) const;
  cudnnBackendDescriptor_t raw() const { return raw_; }

 private:
  const char* name_;
  cudnnBackendDescriptor_t raw_ = nullptr;
};

using CudnnTensor = const CudnnDescriptor*;

// Operations in the order of their addition, by which cuDNN's engines recognise a graph.
class CudnnGraph {
 public:
  struct TensorOptions {
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    CudnnTensor ragged = nullptr;  // offsets of its parts
    bool by_value = false;
  };
  // A tensor in memory that a call provides or, with `number` 0, an intermediate tensor.
  CudnnTensor tensor(int64_t number, const std::vector<int64_t>& dims,
                     const std::vector<int64_t>& strides, const TensorOptions& options);

  // The rows, columns and products that count, by sequence; may be null.
  struct Sizes {
    CudnnTensor m = nullptr, n = nullptr, k = nullptr;
  };
  void matmul(CudnnTensor a, CudnnTensor b, CudnnTensor c, const Sizes& sizes);
  void pointwise(cudnnPointwiseMode_t mode, CudnnTensor x, CudnnTensor b, CudnnTensor y,
                 cudnnDataType_t inside = CUDNN_DATA_FLOAT, CudnnTensor choice = nullptr);
  void index(int64_t axis, CudnnTensor x, CudnnTensor y);  // each element's index along the axis
  void reduce(cudnnReduceTensorOp_t mode, CudnnTensor x, CudnnTensor y);
  void reshape(CudnnTensor x, CudnnTensor y);
  // 1 with this probability, else 0
  void bernoulli(double probability, CudnnTensor seed, CudnnTensor offset, CudnnTensor y);

  // Returns the first plan proposed by cuDNN that is deterministic and works, for the handle's
  // device or, without a handle, for the one that `device` describes. Throws std::runtime_error.
  CudnnDescriptor plan(cudnnHandle_t handle, const CudnnDescriptor* device) const;

 private:
  void add(CudnnDescriptor& operation) { operations_.push_back(std::move(operation.finalize())); }

  std::vector<std::unique_ptr<CudnnDescriptor>> tensors_;
  std::vector<CudnnDescriptor> operations_;
};

}  // namespace finetune::cuda
