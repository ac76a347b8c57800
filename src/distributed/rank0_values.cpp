// Broadcasts rank 0's texts and decisions, and shares arrays within a host.
#include "distributed/rank0_values.h"

#include <algorithm>
#include <vector>

#include "engine/engine.h"

namespace finetune {

std::string broadcast_from_rank0(Communicator& comm, const std::string& text) {
  uint64_t size = text.size();
  comm.broadcast(&size, sizeof size, 0);
  std::string out = comm.rank() == 0 ? text : std::string(size, '\0');
  comm.broadcast(out.data(), out.size(), 0);
  return out;
}

bool all_true(Communicator& comm, bool value) {
  const uint8_t mine = value;
  std::vector<uint8_t> all(size_t(comm.size()));
  comm.all_gather(&mine, 1, all.data());
  return std::all_of(all.begin(), all.end(), [](uint8_t v) { return v != 0; });
}

std::string agreed_device(Communicator& comm, std::string_view device, std::string& remark) {
  std::string unused;
  std::string own = resolved_device(device, &unused);
  const bool all = all_true(comm, own == "cuda");  // also if the device was named explicitly
  remark.clear();
  if (device != "auto") return own;
  if (own == "cuda" && !all) unused = "not every process has one that it can use";
  if (!unused.empty()) remark = concat("an NVIDIA GPU was found but is not used: ", unused);
  return all ? "cuda" : "cpu";
}

std::string agreed_precision(Communicator& comm, std::string_view device, std::string precision) {
  if (precision != "auto") return precision;
  return all_true(comm, multiplies_bf16_fast(device)) ? "bf16" : "fp32";
}

int64_t least_device_bytes(Communicator& comm, const Backend& backend) {
  const int64_t mine = backend.device_memory().total;
  std::vector<int64_t> all(size_t(comm.size()));
  comm.all_gather(&mine, sizeof mine, all.data());
  return *std::min_element(all.begin(), all.end());
}

std::shared_ptr<void> share_with_host(Communicator& comm, const TrainingArrays* own,
                                      TrainingArrays& arrays) {
  const uint64_t mine = own ? block_bytes(*own) : 0;
  std::vector<uint64_t> sizes(size_t(comm.size()));
  comm.all_gather(&mine, sizeof mine, sizes.data());
  if (comm.local_size() == 1) return nullptr;
  std::shared_ptr<void> block = comm.allocate_shared(sizes[size_t(comm.first_rank(comm.host()))]);
  if (own) copy_arrays(*own, block.get());
  comm.host_barrier();
  arrays = arrays_in(block.get());
  return block;
}

}  // namespace finetune
