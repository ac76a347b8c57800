// NCCL, loaded when processes with a GPU each are connected: one GPU does not need it. These are
// the functions of nccl.h that peers.cu calls; each forwards to the library's function.
#include <nccl.h>

#include "ops/cuda/module/optional_library.h"

namespace {

const finetune::cuda::OptionalLibrary& library() {
  static const finetune::cuda::OptionalLibrary nccl(
      "libnccl.so.2", "NCCL is needed where each process has a GPU of its own: install it");
  return nccl;
}

template <class... Arguments>
ncclResult_t call(const char* name, Arguments... arguments) {
  auto* function = library().function<ncclResult_t(Arguments...)>(name);
  return function ? function(arguments...) : ncclSystemError;
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  return call("ncclGetVersion", version);
}

const char* ncclGetErrorString(ncclResult_t result) {
  auto* function = library().function<const char*(ncclResult_t)>("ncclGetErrorString");
  return function ? function(result) : library().problem().c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return call("ncclGetUniqueId", id);
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  return call("ncclCommInitRank", comm, size, id, rank);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return call("ncclCommDestroy", comm);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  return call("ncclCommGetAsyncError", comm, state);
}

ncclResult_t ncclGroupStart() {
  return call("ncclGroupStart");
}

ncclResult_t ncclGroupEnd() {
  return call("ncclGroupEnd");
}

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int to, ncclComm_t comm,
                      cudaStream_t stream) {
  return call("ncclSend", data, count, type, to, comm, stream);
}

ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int from, ncclComm_t comm,
                      cudaStream_t stream) {
  return call("ncclRecv", data, count, type, from, comm, stream);
}

ncclResult_t ncclReduce(const void* data, void* sums, size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int to, ncclComm_t comm, cudaStream_t stream) {
  return call("ncclReduce", data, sums, count, type, operation, to, comm, stream);
}
