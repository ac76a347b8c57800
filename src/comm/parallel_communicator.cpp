// Ranks and names of processes, groups, links, and the common end of a run.
#include "comm/parallel_communicator.h"

#include <mpi.h>

#include <map>

#include "comm/agreement.h"
#include "comm/host/ring_link.h"
#include "core/error.h"

namespace finetune {
namespace {

// What each process tells the others in split().
struct Choice {
  int32_t color;
  uint32_t numbers;  // bit mask of its groups' numbers
};

// Offsets of the memory of one host's groups, one per color.
std::map<int, size_t> places_of_groups(std::span<const Choice> host, size_t& bytes) {
  std::map<int, int> sizes;
  for (const Choice& each : host) ++sizes[each.color];
  std::map<int, size_t> places;
  for (const auto& [color, size] : sizes) {
    places[color] = bytes;
    bytes += GroupMemory::bytes(size);
  }
  return places;
}

std::shared_ptr<void> part_of(const std::shared_ptr<void>& memory, size_t begin) {
  return {memory, static_cast<std::byte*>(memory.get()) + begin};
}

// Returns a number that no member uses.
int free_number(std::bitset<kMostGroups> taken) {
  FINETUNE_CHECK(!taken.all());
  int number = 0;
  while (taken.test(size_t(number))) ++number;
  return number;
}

}  // namespace

ParallelCommunicator::ParallelCommunicator(Parts parts)
    : topology_(std::move(parts.topology)),
      names_(std::move(parts.names)),
      group_(std::move(parts.host_group)),
      run_(parts.run) {}

ParallelCommunicator::~ParallelCommunicator() {
  group_.process().groups().reset(size_t(group_.number()));
}

void ParallelCommunicator::count_parts(std::span<const std::vector<uint8_t>> parts) {
  for (size_t i = 1; rank() == 0 && i < parts.size(); ++i) *sent_ += int64_t(parts[i].size());
}

std::unique_ptr<Communicator> ParallelCommunicator::split(int color) {
  FINETUNE_CHECK(color >= 0);
  const int64_t sent_before = *sent_;
  OwnProcess& process = group_.process();
  const Choice mine{color, uint32_t(process.groups().to_ulong())};
  std::vector<Choice> all(static_cast<size_t>(size()));
  all_gather(&mine, sizeof mine, all.data());

  std::vector<int> members, slots;
  std::vector<std::string> names;
  std::bitset<kMostGroups> taken;
  for (int i = 0; i < size(); ++i) {
    if (all[size_t(i)].color != color) continue;
    members.push_back(i);
    names.push_back(name(i));
    taken |= all[size_t(i)].numbers;
    if (topology_.host_of(i) == host()) {
      slots.push_back(group_.slots()[size_t(i - first_rank(host()))]);
    }
  }
  const int number = free_number(taken);
  // Reset the counters before any process can wait for this one in the group.
  process.slot().barriers[size_t(number)].store(0);
  process.slot().rounds[size_t(number)].store(0);
  const std::span<const Choice> on_host(all.data() + first_rank(host()), size_t(local_size()));
  size_t bytes = 0;
  const std::map<int, size_t> places = places_of_groups(on_host, bytes);
  std::shared_ptr<void> memory;
  agree_on_errors(*this, [&] { memory = allocate_shared(bytes); });
  *sent_ = sent_before;

  Topology topology = subset(topology_, members);
  HostGroup host_group(group_.shared_process(), GroupMemory(part_of(memory, places.at(color))),
                       std::move(slots), topology.local_rank, number);
  Parts parts{std::move(topology), std::move(names), std::move(host_group), run_ ? run_ : this};
  auto group = make_group(std::move(parts), color);
  process.groups().set(size_t(number));
  return group;
}

std::vector<std::unique_ptr<Link>> ParallelCommunicator::make_links(
    std::span<const LinkEnds> ends) {
  const int64_t sent_before = *sent_;
  size_t bytes = 0;
  std::vector<size_t> places;
  const auto is_here = [this](int of) { return topology_.host_of(of) == host(); };
  for (const LinkEnds& each : ends) {
    FINETUNE_CHECK(each.from >= 0 && each.from < size() && each.to >= 0 && each.to < size());
    FINETUNE_CHECK(each.from != each.to);
    places.push_back(bytes);
    if (is_here(each.from) && is_here(each.to)) bytes += RingLink::bytes(each.capacity);
  }
  std::shared_ptr<void> memory;
  agree_on_errors(*this, [&] { memory = allocate_shared(bytes); });
  *sent_ = sent_before;

  std::vector<std::unique_ptr<Link>> links;
  for (size_t i = 0; i < ends.size(); ++i) {
    const auto& [from, to, capacity] = ends[i];
    const int number = links_made_++, other = from == rank() ? to : from;
    links.emplace_back();
    if (from != rank() && to != rank()) continue;
    if (!is_here(other)) {
      links.back() = make_remote_link(other, number, capacity);
      continue;
    }
    const int slot = group_.slots()[size_t(other - first_rank(host()))];
    links.back() = std::make_unique<RingLink>(group_.shared_process(), part_of(memory, places[i]),
                                              capacity, from == rank(), slot, sent_);
  }
  return links;
}

void ParallelCommunicator::finish() {
  if (run_) return run_->finish();
  note("the end", -1);
  barrier();  // from here on no process needs this one
  liveness().mark_finished();
  // If a process dies before it gets here, the launcher or the watching thread ends this call.
  MPI_Finalize();
  liveness().stop();
}

namespace {

class Shared final : public ParallelCommunicator {
 public:
  using ParallelCommunicator::ParallelCommunicator;

  void barrier() override { group_.barrier(); }
  void all_gather(const void* mine, size_t bytes, void* all) override {
    count_for_each_other(bytes);
    group_.all_gather(mine, bytes, all);
  }
  void broadcast(void* data, size_t bytes, int root) override {
    if (rank() == root) count_for_each_other(bytes);
    group_.broadcast(data, bytes, root);
  }
  std::vector<uint8_t> scatter(std::span<const std::vector<uint8_t>> parts) override {
    count_parts(parts);
    return group_.scatter(parts);
  }
  std::vector<std::vector<uint8_t>> gather(std::span<const uint8_t> mine) override {
    if (rank() != 0) count_sent(int64_t(mine.size()));
    return group_.gather(mine);
  }
  void exchange(std::span<const Outgoing> out, std::span<const Incoming> in,
                const LinkMessage&) override {
    FINETUNE_CHECK(out.empty() && in.empty());
  }

 private:
  std::unique_ptr<Communicator> make_group(Parts parts, int) override {
    return std::make_unique<Shared>(std::move(parts));
  }
  std::unique_ptr<Link> make_remote_link(int, int, size_t) override {
    throw internal_error("a link to another host, but the run has one host only");
  }
};

}  // namespace

std::unique_ptr<Communicator> make_shared_communicator(ParallelCommunicator::Parts parts) {
  return std::make_unique<Shared>(std::move(parts));
}

}  // namespace finetune
