// NCCL as far as src/comm/nccl uses it, between processes of one host.
// Messages are files in a folder that the unique id names; who sends waits for the other end, as it
// may with the library. Tests ask for faults by the environment:
// HOST_NCCL_FAILS=R, rank R hears of a failed peer; HOST_NCCL_STALLS=R, rank R's device never comes
// to an end; HOST_NCCL_ABSENT=R, rank R never connects.
#pragma once

#include <cuda_runtime.h>

struct ncclComm;
using ncclComm_t = ncclComm*;
struct ncclUniqueId {
  char internal[128];
};
enum ncclResult_t { ncclSuccess, ncclSystemError, ncclInvalidArgument, ncclRemoteError };
enum ncclDataType_t { ncclFloat32, ncclBfloat16 };
enum ncclRedOp_t { ncclSum };

ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state);
const char* ncclGetErrorString(ncclResult_t result);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int to, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int from, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);
