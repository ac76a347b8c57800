// Opens cuDNN at run time, and wraps its backend descriptors and graphs.
#include <stdexcept>

#include "ops/cuda/attention/cudnn_graph.h"
#include "ops/cuda/module/optional_library.h"

namespace finetune::cuda {
namespace {

// Earlier versions support attention with dropout, padding and packed sequences too, but before
// 9.18 the deterministic gradients were not always identical.
constexpr size_t kLeastVersion = 91800;
constexpr int64_t kAlignment = 16;                   // of tensors, in bytes
constexpr int64_t kFirstBetween = int64_t{1} << 20;  // first number of intermediate tensors

std::string dotted(size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

Cudnn load() {
  static const OptionalLibrary library("libcudnn.so.9", "cuDNN 9 is not installed");
  if (!library.problem().empty()) throw std::runtime_error(library.problem());
  Cudnn c = {};
  auto find = [](auto& function, const char* name) {
    function = library.function<std::remove_pointer_t<std::decay_t<decltype(function)>>>(name);
    if (!function) throw std::runtime_error(std::string("cuDNN has no function ") + name);
  };
  find(c.get_version, "cudnnGetVersion");
  if (c.get_version() < kLeastVersion) {
    throw std::runtime_error("cuDNN " + dotted(c.get_version()) + " is too old, " +
                             dotted(kLeastVersion) + " is needed");
  }
  find(c.get_last_error, "cudnnGetLastErrorString");
  find(c.create, "cudnnCreate");
  find(c.destroy, "cudnnDestroy");
  find(c.set_stream, "cudnnSetStream");
  find(c.create_descriptor, "cudnnBackendCreateDescriptor");
  find(c.destroy_descriptor, "cudnnBackendDestroyDescriptor");
  find(c.set_attribute, "cudnnBackendSetAttribute");
  find(c.get_attribute, "cudnnBackendGetAttribute");
  find(c.finalize, "cudnnBackendFinalize");
  find(c.execute, "cudnnBackendExecute");
  return c;
}

bool deterministic(const CudnnDescriptor& configuration) {
  CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
  cudnnBackendDescriptor_t raw = engine.raw();
  configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  notes.resize(size_t(engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                 int64_t(notes.size()), notes.data())));
  for (const auto note : notes) {
    if (note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) return false;
  }
  return true;
}

}  // namespace

const Cudnn& Cudnn::library() {
  static const Cudnn functions = load();
  return functions;
}

void Cudnn::check(cudnnStatus_t status, const char* what) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char text[512] = "";
  get_last_error(text, sizeof text);
  throw std::runtime_error(std::string("cuDNN, ") + what + ": " + std::to_string(int(status)) +
                           " " + text);
}

std::string cudnn_version() {
  return dotted(Cudnn::library().get_version());
}

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type, const char* name)
    : name_(name) {
  const Cudnn& cudnn = Cudnn::library();
  cudnn.check(cudnn.create_descriptor(type, &raw_), name);
}

CudnnDescriptor::~CudnnDescriptor() {
  if (raw_) Cudnn::library().destroy_descriptor(raw_);
}

CudnnDescriptor& CudnnDescriptor::set(Name name, cudnnBackendAttributeType_t type, int64_t count,
                                      const void* values) {
  const Cudnn& cudnn = Cudnn::library();
  cudnn.check(cudnn.set_attribute(raw_, name, type, count, values), name_);
  return *this;
}
CudnnDescriptor& CudnnDescriptor::set(Name name, int64_t value) {
  return set(name, CUDNN_TYPE_INT64, 1, &value);
}
CudnnDescriptor& CudnnDescriptor::set(Name name, double value) {
  return set(name, CUDNN_TYPE_DOUBLE, 1, &value);
}
CudnnDescriptor& CudnnDescriptor::set(Name name, bool value) {
  return set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
}
CudnnDescriptor& CudnnDescriptor::set(Name name, cudnnDataType_t value) {
  return set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}
CudnnDescriptor& CudnnDescriptor::set(Name name, const std::vector<int64_t>& values) {
  return set(name, CUDNN_TYPE_INT64, int64_t(values.size()), values.data());
}
CudnnDescriptor& CudnnDescriptor::set(Name name, const CudnnDescriptor& value) {
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.raw_);
}

CudnnDescriptor& CudnnDescriptor::finalize() {
  const Cudnn& cudnn = Cudnn::library();
  cudnn.check(cudnn.finalize(raw_), name_);
  return *this;
}

int64_t CudnnDescriptor::get(Name name, cudnnBackendAttributeType_t type, int64_t count,
                             void* values) const {
  const Cudnn& cudnn = Cudnn::library();
  int64_t there = 0;
  cudnn.check(cudnn.get_attribute(raw_, name, type, count, &there, values), name_);
  return there;
}

CudnnTensor CudnnGraph::tensor(int64_t number, const std::vector<int64_t>& dims,
                               const std::vector<int64_t>& strides, const TensorOptions& options) {
  CudnnDescriptor t(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
  const bool between = number == 0;
  if (between) number = kFirstBetween + int64_t(tensors_.size());
  t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, options.type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, number)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, between)
      .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, options.by_value);
  if (options.ragged) t.set(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, *options.ragged);
  tensors_.push_back(std::make_unique<CudnnDescriptor>(std::move(t.finalize())));
  return tensors_.back().get();
}

void CudnnGraph::matmul(CudnnTensor a, CudnnTensor b, CudnnTensor c, const Sizes& sizes) {
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "matmul");
  CudnnDescriptor how(CUDNN_BACKEND_MATMUL_DESCRIPTOR, "matmul");
  how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finalize();
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how)
      .set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, *a)
      .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, *b)
      .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, *c);
  if (sizes.m) operation.set(CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, *sizes.m);
  if (sizes.n) operation.set(CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, *sizes.n);
  if (sizes.k) operation.set(CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, *sizes.k);
  add(operation);
}

void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, CudnnTensor x, CudnnTensor b, CudnnTensor y,
                           cudnnDataType_t inside, CudnnTensor choice) {
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise");
  CudnnDescriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise");
  how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, inside)
      .finalize();
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *x)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *y);
  if (b) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  if (choice) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *choice);
  add(operation);
}

void CudnnGraph::index(int64_t axis, CudnnTensor x, CudnnTensor y) {
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "index");
  CudnnDescriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "index");
  const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_GEN_INDEX;
  how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_INT32)
      .set(CUDNN_ATTR_POINTWISE_AXIS, axis)
      .finalize();
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  add(operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *x)
          .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *y));
}

void CudnnGraph::reduce(cudnnReduceTensorOp_t mode, CudnnTensor x, CudnnTensor y) {
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "reduction");
  CudnnDescriptor how(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "reduction");
  how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode)
      .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .finalize();
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
  add(operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, *x)
          .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, *y));
}

void CudnnGraph::reshape(CudnnTensor x, CudnnTensor y) {
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "reshape");
  add(operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, *x)
          .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, *y));
}

void CudnnGraph::bernoulli(double probability, CudnnTensor seed, CudnnTensor offset,
                           CudnnTensor y) {
  CudnnDescriptor operation(CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR, "random numbers");
  CudnnDescriptor how(CUDNN_BACKEND_RNG_DESCRIPTOR, "random numbers");
  const cudnnRngDistribution_t distribution = CUDNN_RNG_DISTRIBUTION_BERNOULLI;
  how.set(CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION, 1, &distribution)
      .set(CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, probability)
      .finalize();
  operation.set(CUDNN_ATTR_OPERATION_RNG_DESC, how);
  add(operation.set(CUDNN_ATTR_OPERATION_RNG_YDESC, *y)
          .set(CUDNN_ATTR_OPERATION_RNG_SEED, *seed)
          .set(CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC, *offset));
}

CudnnDescriptor CudnnGraph::plan(cudnnHandle_t handle, const CudnnDescriptor* device) const {
  std::vector<cudnnBackendDescriptor_t> operations;
  for (const CudnnDescriptor& operation : operations_) operations.push_back(operation.raw());
  CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "graph");
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            int64_t(operations.size()), operations.data());
  if (handle) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  graph.finalize();

  std::string problem;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    CudnnDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "choice of engines");
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
        .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!handle) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *device);
    heuristics.finalize();
    constexpr auto kResults = CUDNN_ATTR_ENGINEHEUR_RESULTS;
    const int64_t proposed = heuristics.get(kResults, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
    std::vector<CudnnDescriptor> configurations;
    std::vector<cudnnBackendDescriptor_t> raw;
    for (int64_t i = 0; i < proposed; ++i) {
      configurations.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "engine");
      raw.push_back(configurations.back().raw());
    }
    const int64_t found =
        heuristics.get(kResults, CUDNN_TYPE_BACKEND_DESCRIPTOR, proposed, raw.data());
    for (int64_t i = 0; i < found; ++i) {
      try {
        if (!deterministic(configurations[size_t(i)])) continue;
        CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "plan");
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configurations[size_t(i)]);
        if (handle) {
          plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
        } else {
          plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *device);
        }
        plan.finalize();
        return plan;
      } catch (const std::runtime_error& error) {
        problem = error.what();  // the next engine may work
      }
    }
  }
  if (problem.empty()) {  // no engine was proposed, for example because libnvrtc is missing
    char text[2048] = "";
    Cudnn::library().get_last_error(text, sizeof text);
    problem = std::string("no engine for it: ") + text;
  }
  throw std::runtime_error(problem);
}

}  // namespace finetune::cuda
