// Moves arenas between rank 0's checkpoint file and all processes, in pieces.
#include "train/checkpoint/checkpoint_transfer.h"

#include <algorithm>
#include <cstring>

#include "engine/host_memory.h"
#include "weights/tensor_slabs.h"

namespace finetune {
namespace {

size_t bytes(IndexRange range) {
  return size_t(range.size()) * sizeof(float);
}

// Arenas of a run on several processes. Rank 0 has the file, and goes through it piece by piece;
// those who take part in a piece do the same from the other side (send, receive).
class RunArenas : public CheckpointMemory {
 public:
  RunArenas(Session& session, bool moments)
      : comm_(session.comm),
        backend_(session.engine->backend()),
        partition_(session.step->partition()),
        weights_(session.engine->weights()),
        m_(session.step->first_moments()),
        v_(session.step->second_moments()),
        moments_(moments) {}

  bool has(Arena arena) const override { return moments_ || arena == Arena::weights; }

  virtual bool takes_part() const = 0;
  virtual void send(Arena arena, IndexRange range) = 0;
  virtual void receive(Arena arena, IndexRange range) = 0;

 protected:
  float* at(Arena arena, int64_t element) const {
    if (arena == Arena::weights) return weights_ + element;
    const HostArena& moments = arena == Arena::m ? m_ : v_;
    const int64_t word = element - partition_.dense_elements(), cols = partition_.cols();
    return word < 0 ? moments.dense(element) : moments.row(word / cols) + word % cols;
  }

  // What who has these elements and rows has of a range inside one parameter; empty if nothing.
  IndexRange overlap(IndexRange dense, IndexRange rows, IndexRange range) const {
    const int64_t words = partition_.dense_elements(), cols = partition_.cols();
    IndexRange out = dense;
    if (range.begin >= words) out = {words + rows.begin * cols, words + rows.end * cols};
    out = {std::max(out.begin, range.begin), std::min(out.end, range.end)};
    return out.size() > 0 ? out : IndexRange{range.begin, range.begin};
  }

  float* staged(IndexRange range) {
    staging_.resize(size_t(range.size()));
    return staging_.data();
  }

  Communicator& comm_;
  Backend& backend_;
  const ZeroPartition& partition_;
  float* weights_;
  const HostArena& m_;
  const HostArena& v_;

 private:
  bool moments_;
  std::vector<float> staging_;
};

// One set of arenas a host, in its memory, or on the device of the only process. Weights are whole
// on every host; of the moments each has a part, for which its first process speaks.
class HostArenas final : public RunArenas {
 public:
  using RunArenas::RunArenas;

  const float* contents(Arena arena, IndexRange range) override {
    const std::vector<Part> all = parts(range);
    if (in_place(arena) || (backend_.uses_host_memory() && all.size() == 1 && all[0].host == 0)) {
      return at(arena, range.begin);
    }
    float* out = staged(range);
    for (const Part& part : all) {
      float* to = out + (part.elements.begin - range.begin);
      if (part.host == 0) {
        backend_.download(to, at(arena, part.elements.begin), bytes(part.elements));
      } else {
        const Communicator::Incoming in{part.host, to, bytes(part.elements)};
        comm_.exchange({}, {&in, 1});
      }
    }
    return out;
  }

  float* room(Arena arena, IndexRange range) override {
    return in_place(arena) ? at(arena, range.begin) : staged(range);
  }

  void filled(Arena arena, IndexRange range, const float* data) override {
    if (in_place(arena)) {
      for (int host = 1; host < comm_.hosts(); ++host) send_to(host, data, range);
      return;
    }
    for (const Part& part : parts(range)) {
      const float* from = data + (part.elements.begin - range.begin);
      if (part.host == 0) {
        backend_.upload(at(arena, part.elements.begin), from, bytes(part.elements));
      } else {
        send_to(part.host, from, part.elements);
      }
    }
  }

  bool takes_part() const override { return comm_.hosts() > 1 && comm_.local_rank() == 0; }

  void send(Arena arena, IndexRange range) override {
    if (arena == Arena::weights) return;  // rank 0 has them
    for (const Part& part : parts(range)) {
      if (part.host == comm_.host()) send_to(0, at(arena, part.elements.begin), part.elements);
    }
  }

  void receive(Arena arena, IndexRange range) override {
    if (arena == Arena::weights) return receive_from_0(arena, range);
    for (const Part& part : parts(range)) {
      if (part.host == comm_.host()) receive_from_0(arena, part.elements);
    }
  }

 private:
  struct Part {
    int host;
    IndexRange elements;
  };
  // Which host has which elements of a range inside one parameter.
  std::vector<Part> parts(IndexRange range) const {
    std::vector<Part> out;
    for (int host = 0; host < comm_.hosts(); ++host) {
      const IndexRange own =
          overlap(partition_.host_dense(host), partition_.host_rows(host), range);
      if (own.size() > 0) out.push_back({host, own});
    }
    return out;
  }

  bool in_place(Arena arena) const {
    return arena == Arena::weights && backend_.uses_host_memory();
  }
  void send_to(int host, const float* data, IndexRange range) {
    const Communicator::Outgoing out{host, data, bytes(range)};
    comm_.exchange({&out, 1}, {});
  }
  void receive_from_0(Arena arena, IndexRange range) {
    const Communicator::Incoming in{0, at(arena, range.begin), bytes(range)};
    comm_.exchange({}, {&in, 1});
  }
};

// Arenas of each process on its device: all weights, and the moments of what it owns. Every piece
// of the moments is gathered or scattered by all processes together; weights that are read reach
// rank 0's device, and the others' when all are there (Engine::share_weights).
class DeviceArenas final : public RunArenas {
 public:
  using RunArenas::RunArenas;

  const float* contents(Arena arena, IndexRange range) override {
    float* out = staged(range);
    if (arena == Arena::weights) {
      backend_.download(out, at(arena, range.begin), bytes(range));
      return out;
    }
    const std::vector<std::vector<uint8_t>> parts = comm_.gather(own_parts(arena, range));
    for (int rank = 0; rank < comm_.size(); ++rank) {
      const uint8_t* from = parts[size_t(rank)].data();
      for (IndexRange part : parts_of(rank, range)) {
        std::memcpy(out + (part.begin - range.begin), from, bytes(part));
        from += bytes(part);
      }
    }
    return out;
  }

  float* room(Arena, IndexRange range) override { return staged(range); }

  void filled(Arena arena, IndexRange range, const float* data) override {
    if (arena == Arena::weights) {
      backend_.upload(at(arena, range.begin), data, bytes(range));
      return;
    }
    std::vector<std::vector<uint8_t>> parts(static_cast<size_t>(comm_.size()));
    for (int rank = 0; rank < comm_.size(); ++rank) {
      for (IndexRange part : parts_of(rank, range)) {
        const auto* from = reinterpret_cast<const uint8_t*>(data + (part.begin - range.begin));
        parts[size_t(rank)].insert(parts[size_t(rank)].end(), from, from + bytes(part));
      }
    }
    set_own_parts(arena, range, comm_.scatter(parts));
  }

  bool takes_part() const override { return true; }

  void send(Arena arena, IndexRange range) override {
    if (arena != Arena::weights) comm_.gather(own_parts(arena, range));
  }

  void receive(Arena arena, IndexRange range) override {
    if (arena != Arena::weights) set_own_parts(arena, range, comm_.scatter({}));
  }

 private:
  // What a process has of a range inside one parameter, in order: of each bucket a slice.
  std::vector<IndexRange> parts_of(int rank, IndexRange range) const {
    std::vector<IndexRange> parts;
    const IndexRange rows = partition_.rows_of(comm_, rank);
    auto add = [&](IndexRange dense) {
      const IndexRange part = overlap(dense, rows, range);
      if (part.size() > 0) parts.push_back(part);
    };
    if (range.begin >= partition_.dense_elements()) {
      add({});
    } else {
      for (IndexRange slice : partition_.slices_of(comm_, rank)) add(slice);
    }
    return parts;
  }

  std::vector<uint8_t> own_parts(Arena arena, IndexRange range) const {
    std::vector<uint8_t> out;
    for (IndexRange part : parts_of(comm_.rank(), range)) {
      const size_t before = out.size();
      out.resize(before + bytes(part));
      backend_.download(out.data() + before, at(arena, part.begin), bytes(part));
    }
    return out;
  }

  void set_own_parts(Arena arena, IndexRange range, const std::vector<uint8_t>& data) {
    const uint8_t* from = data.data();
    for (IndexRange part : parts_of(comm_.rank(), range)) {
      backend_.upload(at(arena, part.begin), from, bytes(part));
      from += bytes(part);
    }
  }
};

std::unique_ptr<RunArenas> arenas_of(Session& s, bool moments) {
  if (staged_through_host(s.engine->backend(), s.comm)) {
    return std::make_unique<DeviceArenas>(s, moments);
  }
  return std::make_unique<HostArenas>(s, moments);
}

// visit(arena, elements) for all that a checkpoint has, in the order of the file.
template <typename Visit>
void each_piece(const ParameterTable& table, bool moments, Visit&& visit) {
  for (Arena arena : {Arena::weights, Arena::m, Arena::v}) {
    if (arena != Arena::weights && !moments) break;
    for (const Parameter& parameter : table.parameters()) {
      each_slab(parameter.shape, [&](int64_t first, int64_t count) {
        visit(arena, elements_of(parameter, first, count));
      });
    }
  }
}

}  // namespace

void save_checkpoint(Session& s, const std::filesystem::path& path) {
  s.step->settle();
  s.comm.note("checkpoint", s.state.step);
  const ParameterTable& table = s.engine->table();
  const std::unique_ptr<RunArenas> arenas = arenas_of(s, true);
  if (s.leads()) {
    write_checkpoint(path, s.state, table, *arenas);
  } else if (arenas->takes_part()) {
    each_piece(table, true, [&](Arena arena, IndexRange range) { arenas->send(arena, range); });
  }
  s.comm.barrier();  // until then nobody may change what is being written
}

void load_checkpoint(Session& s, const std::filesystem::path& path, bool moments, bool verified) {
  s.step->settle();
  const ParameterTable& table = s.engine->table();
  const std::unique_ptr<RunArenas> arenas = arenas_of(s, moments);
  if (s.leads()) {
    read_checkpoint(path, table, *arenas, verified);
  } else if (arenas->takes_part()) {
    each_piece(table, moments,
               [&](Arena arena, IndexRange range) { arenas->receive(arena, range); });
  }
  s.engine->share_weights(s.comm);
  s.comm.barrier();
}

}  // namespace finetune
