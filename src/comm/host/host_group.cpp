// Collectives of one host's processes through shared memory.
#include "comm/host/host_group.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "comm/agreement.h"
#include "comm/host/control_block.h"
#include "comm/host/shared_memory.h"
#include "core/error.h"
#include "core/failure.h"

namespace finetune {
namespace {

struct Mapped {
  int32_t failed;
  int32_t descriptor;
  char message[504];
};

}  // namespace

HostGroup::HostGroup(std::shared_ptr<OwnProcess> process, GroupMemory memory,
                     std::vector<int> slots, int own, int number)
    : process_(std::move(process)),
      memory_(std::move(memory)),
      slots_(std::move(slots)),
      own_(own),
      number_(number) {}

void HostGroup::barrier() {
  BarrierState& state = memory_.barrier();
  const uint64_t number = ++barriers_;
  process_->slot().barriers[size_t(number_)].store(number, std::memory_order_relaxed);
  const uint32_t generation = state.generation.load(std::memory_order_relaxed);
  if (state.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == uint32_t(size())) {
    state.arrived.store(0, std::memory_order_relaxed);
    state.generation.store(generation + 1);
    if (state.sleepers.load() != 0) futex_wake_all(state.generation);
    return;
  }
  const auto done = [&] { return state.generation.load(std::memory_order_acquire) != generation; };
  if (process_->spin_until(done)) return;
  sleep_until_not(generation, number);
}

void HostGroup::sleep_until_not(uint32_t generation, uint64_t number) {
  BarrierState& state = memory_.barrier();
  Liveness& liveness = process_->liveness();
  const auto late = [this, number](const ProcessSlot& slot) {
    return slot.barriers[size_t(number_)].load() < number;
  };
  const auto somebody = [&]() -> std::string {
    for (int slot : slots_) {
      if (late(liveness.slot(slot))) return liveness.name(slot);
    }
    return "another process of this host";
  };
  Wait wait(liveness, {slots_, late, kBeyondOthers, somebody, {}});
  while (state.generation.load(std::memory_order_acquire) == generation) {
    const double slice = process_->slice();
    state.sleepers.fetch_add(1);
    if (state.generation.load() == generation) futex_wait(state.generation, generation, slice);
    state.sleepers.fetch_sub(1);
    wait.look();
  }
}

void HostGroup::all_gather(const void* mine, size_t bytes, void* all) {
  for (size_t begin = 0; begin < bytes; begin += kMailboxBytes) {
    const size_t piece = std::min(kMailboxBytes, bytes - begin);
    std::memcpy(mailbox(own_), static_cast<const std::byte*>(mine) + begin, piece);
    barrier();
    for (int i = 0; i < size(); ++i) {
      std::memcpy(static_cast<std::byte*>(all) + size_t(i) * bytes + begin, mailbox(i), piece);
    }
    next_turn();
  }
}

void HostGroup::broadcast(void* data, size_t bytes, int root) {
  for (size_t begin = 0; begin < bytes; begin += kMailboxBytes) {
    const size_t piece = std::min(kMailboxBytes, bytes - begin);
    std::byte* at = static_cast<std::byte*>(data) + begin;
    if (own_ == root) std::memcpy(mailbox(root), at, piece);
    barrier();
    if (own_ != root) std::memcpy(at, mailbox(root), piece);
    next_turn();
  }
}

std::vector<uint8_t> HostGroup::scatter(std::span<const std::vector<uint8_t>> parts) {
  const auto processes = size_t(size());
  std::vector<uint64_t> sizes(processes);
  if (own_ == 0) {
    FINETUNE_CHECK(parts.size() == processes);
    for (size_t i = 0; i < processes; ++i) sizes[i] = parts[i].size();
  }
  broadcast(sizes.data(), processes * sizeof sizes[0], 0);
  const uint64_t most = *std::max_element(sizes.begin(), sizes.end());
  const uint64_t own = sizes[size_t(own_)];
  std::vector<uint8_t> mine(own);
  // Rank 0 fills the others' mailboxes; each reads its own.
  for (uint64_t begin = 0; begin < most; begin += kMailboxBytes) {
    if (own_ == 0) {
      for (size_t i = 1; i < processes; ++i) {
        if (begin >= sizes[i]) continue;
        std::memcpy(mailbox(int(i)), parts[i].data() + begin,
                    std::min<uint64_t>(kMailboxBytes, sizes[i] - begin));
      }
    }
    barrier();
    if (own_ != 0 && begin < own) {
      std::memcpy(mine.data() + begin, mailbox(own_),
                  std::min<uint64_t>(kMailboxBytes, own - begin));
    }
    next_turn();
  }
  if (own_ == 0) mine = parts[0];
  return mine;
}

std::vector<std::vector<uint8_t>> HostGroup::gather(std::span<const uint8_t> mine) {
  const auto processes = size_t(size());
  const uint64_t own = mine.size();
  std::vector<uint64_t> sizes(processes);
  all_gather(&own, sizeof own, sizes.data());
  std::vector<std::vector<uint8_t>> all;
  if (own_ == 0) {
    all.resize(processes);
    for (size_t i = 0; i < processes; ++i) all[i].resize(sizes[i]);
    all[0].assign(mine.begin(), mine.end());
  }
  const uint64_t most = processes > 1 ? *std::max_element(sizes.begin() + 1, sizes.end()) : 0;
  for (uint64_t begin = 0; begin < most; begin += kMailboxBytes) {
    if (own_ != 0 && begin < own) {
      std::memcpy(mailbox(own_), mine.data() + begin,
                  std::min<uint64_t>(kMailboxBytes, own - begin));
    }
    barrier();
    for (size_t i = 1; i < all.size(); ++i) {
      if (begin >= sizes[i]) continue;
      std::memcpy(all[i].data() + begin, mailbox(int(i)),
                  std::min<uint64_t>(kMailboxBytes, sizes[i] - begin));
    }
    next_turn();
  }
  return all;
}

std::shared_ptr<void> HostGroup::allocate(size_t bytes) {
  // All fail if one does, so all exchange their outcomes twice: after one process has created the
  // memory, and after all have opened it.
  const auto attempt = [](Mapped& outcome, auto action) {
    try {
      action();
    } catch (const std::exception& failure) {
      outcome.failed = 1;
      std::strncpy(outcome.message, error_of(failure).what(), sizeof outcome.message - 1);
    }
  };
  Mapped made{};
  std::shared_ptr<void> memory;
  std::unique_ptr<Descriptor> descriptor;
  if (own_ == 0) {
    attempt(made, [&] {
      descriptor = std::make_unique<Descriptor>(create_memory(bytes));
      made.descriptor = descriptor->number();
    });
  }
  broadcast(&made, sizeof made, 0);
  Mapped mapped = made;
  if (!made.failed) {
    attempt(mapped, [&] {
      if (own_ != 0) {
        const int maker = process_->liveness().slot(slots_[0]).pid.load();
        descriptor = std::make_unique<Descriptor>(open_memory(maker, made.descriptor));
      }
      memory = map_memory(*descriptor, bytes);
    });
  }
  std::vector<Mapped> outcomes(static_cast<size_t>(size()));
  all_gather(&mapped, sizeof mapped, outcomes.data());
  for (int i = 0; i < size(); ++i) {
    if (!outcomes[size_t(i)].failed) continue;
    if (i != own_) throw PeerFailed{ExitCode::device};  // that process reports
    throw device_error(outcomes[size_t(i)].message);
  }
  return memory;
}

}  // namespace finetune
