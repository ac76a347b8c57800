// NCCL's functions between processes of one host, through files.
#include <nccl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

struct ncclComm {
  fs::path folder;
  int rank, size;
  std::vector<int> sent, received;  // messages so far, by peer
  ncclResult_t state = ncclSuccess;
};

namespace {

// The rank that a test wants to fail; -1: none.
int rank_in(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? std::atoi(value) : -1;
}

int own_rank = -1;

fs::path message(const ncclComm& comm, int from, int to, int number) {
  return comm.folder /
         (std::to_string(from) + "-" + std::to_string(to) + "-" + std::to_string(number));
}

// The message stays until it is received.
fs::path put(ncclComm& comm, int to, const std::vector<char>& data) {
  const fs::path path = message(comm, comm.rank, to, comm.sent[size_t(to)]++);
  const fs::path unfinished = path.string() + "-unfinished";
  std::ofstream(unfinished, std::ios::binary).write(data.data(), std::streamsize(data.size()));
  fs::rename(unfinished, path);
  return path;
}

// Returns false if its size differs.
bool get(ncclComm& comm, int from, std::vector<char>& data) {
  const fs::path path = message(comm, from, comm.rank, comm.received[size_t(from)]++);
  while (!fs::exists(path)) usleep(50);
  const bool fits = fs::file_size(path) == data.size();
  std::ifstream(path, std::ios::binary).read(data.data(), std::streamsize(data.size()));
  fs::remove(path);
  return fits;
}

// Announces this process. Returns true once all are present.
bool show(const ncclComm& comm, const std::string& where) {
  std::ofstream(comm.folder / (where + std::to_string(comm.rank))) << 1;
  int there = 0;
  for (int rank = 0; rank < comm.size; ++rank) {
    there += fs::exists(comm.folder / (where + std::to_string(rank)));
  }
  return there == comm.size;
}

void meet(const ncclComm& comm, const std::string& where) {
  while (!show(comm, where)) usleep(50);
}

struct Transfer {
  enum { send, receive, reduce } kind;
  ncclComm* comm;
  char* data;
  size_t bytes;
  int other;
  cudaStream_t stream;
};
std::vector<Transfer> group;

ncclResult_t join(Transfer transfer) {
  if (transfer.other < 0 || transfer.other >= transfer.comm->size) return ncclInvalidArgument;
  group.push_back(transfer);
  return ncclSuccess;
}

size_t bytes(size_t count, ncclDataType_t type) {
  return count * (type == ncclFloat32 ? 4 : 2);
}

char* writable(const void* data) {
  return static_cast<char*>(const_cast<void*>(data));
}

std::vector<char> contents(const Transfer& t) {
  const host_cuda::DeviceAccess access;
  return {t.data, t.data + t.bytes};
}

ncclResult_t receive(const Transfer& t) {
  std::vector<char> data(t.bytes);
  if (!get(*t.comm, t.other, data)) return ncclInvalidArgument;
  const host_cuda::DeviceAccess access;
  std::memcpy(t.data, data.data(), t.bytes);
  return ncclSuccess;
}

// The root adds from the last process to the first, which is no tree's order.
ncclResult_t reduce(const Transfer& t) {
  std::vector<char> data(t.bytes);
  for (int from = t.comm->size - 1; from >= 0; --from) {
    if (from == t.comm->rank) continue;
    if (!get(*t.comm, from, data)) return ncclInvalidArgument;
    const host_cuda::DeviceAccess access;
    auto* to = reinterpret_cast<float*>(t.data);
    const auto* term = reinterpret_cast<const float*>(data.data());
    for (size_t i = 0; i < t.bytes / 4; ++i) to[i] += term[i];
  }
  return ncclSuccess;
}

// All operations of a group are in flight together; later work on the stream waits until all are
// received, as the library may do.
ncclResult_t carry_out(const std::vector<Transfer>& transfers) {
  std::vector<fs::path> sent;
  for (const Transfer& t : transfers) {
    const bool root = t.kind == Transfer::reduce && t.other == t.comm->rank;
    if (t.kind != Transfer::receive && !root) sent.push_back(put(*t.comm, t.other, contents(t)));
  }
  for (const Transfer& t : transfers) {
    ncclResult_t result = ncclSuccess;
    if (t.kind == Transfer::receive) result = receive(t);
    if (t.kind == Transfer::reduce && t.other == t.comm->rank) result = reduce(t);
    if (result != ncclSuccess) return result;
  }
  for (const fs::path& path : sent) {
    while (fs::exists(path)) usleep(50);
  }
  return ncclSuccess;
}

}  // namespace

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const char* folder = std::getenv("HOST_NCCL_FOLDER");
  const fs::path place = folder ? fs::path(folder) : fs::temp_directory_path();
  std::string name = (place / "host-nccl-XXXXXX").string();
  if (name.size() >= sizeof id->internal || !mkdtemp(name.data())) return ncclSystemError;
  std::strcpy(id->internal, name.c_str());
  return ncclSuccess;
}

// Returns when all have called it, like the library's function. Rank HOST_NCCL_ABSENT never does.
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  own_rank = rank;
  while (rank == rank_in("HOST_NCCL_ABSENT")) sleep(1);
  *comm = new ncclComm{id.internal, rank, size, std::vector<int>(size_t(size)),
                       std::vector<int>(size_t(size))};
  meet(**comm, "connects-");
  return ncclSuccess;
}

// Returns when all have called it, as the library's may. The last one removes the folder.
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  meet(*comm, "comes-");
  std::error_code ignored;
  if (show(*comm, "goes-")) fs::remove_all(comm->folder, ignored);
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = rank_in("HOST_NCCL_FAILS") == comm->rank ? ncclRemoteError : comm->state;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "unhandled error";
}

ncclResult_t ncclGroupStart() {
  group.clear();
  return ncclSuccess;
}

// All work of a group is on one stream, in order: only that work waits for the data to be sent.
ncclResult_t ncclGroupEnd() {
  if (group.empty()) return ncclSuccess;
  cudaStream_t stream = group[0].stream;
  for (const Transfer& t : group) {
    if (t.stream != stream) return ncclInvalidArgument;
  }
  if (rank_in("HOST_NCCL_STALLS") == own_rank) host_cuda::get_stuck(stream);
  host_cuda::enqueue(stream, [stream, transfers = group] {
    host_cuda::count_transfer(stream);
    const ncclResult_t result = carry_out(transfers);
    if (result != ncclSuccess) transfers[0].comm->state = result;
  });
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int to, ncclComm_t comm,
                      cudaStream_t stream) {
  return join({Transfer::send, comm, writable(data), bytes(count, type), to, stream});
}

ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int from, ncclComm_t comm,
                      cudaStream_t stream) {
  return join({Transfer::receive, comm, writable(data), bytes(count, type), from, stream});
}

// Only in-place float reductions are used.
ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  if (from != to || type != ncclFloat32) return ncclInvalidArgument;
  return join({Transfer::reduce, comm, writable(to), bytes(count, type), root, stream});
}
