#include "train/checkpoint_transfer.h"

#include <algorithm>

#include "train/hdf5_store.h"

namespace finetune {
namespace {

// Arenas of a run, some of whose moments are on other hosts. A host's first process speaks for it.
class SpreadArenas {
 public:
  explicit SpreadArenas(Session& session)
      : comm_(session.comm),
        backend_(session.engine->backend()),
        ownership_(session.step->ownership()),
        weights_(session.engine->weights()),
        m_(session.step->first_moments()),
        v_(session.step->second_moments()) {}

  struct Part {
    int host;
    IndexRange elements;
  };
  // Which host has which elements of a range inside one parameter.
  std::vector<Part> parts(IndexRange range) const {
    std::vector<Part> out;
    const int64_t words = ownership_.dense_elements(), cols = ownership_.cols();
    for (int host = 0; host < comm_.hosts(); ++host) {
      IndexRange own = ownership_.host_dense(host);
      if (range.begin >= words) {
        const IndexRange rows = ownership_.host_rows(host);
        own = {words + rows.begin * cols, words + rows.end * cols};
      }
      own = {std::max(own.begin, range.begin), std::min(own.end, range.end)};
      if (own.size() > 0) out.push_back({host, own});
    }
    return out;
  }

  float* at(Arena arena, int64_t element) const {
    if (arena == Arena::weights) return weights_ + element;
    const HostArena& moments = arena == Arena::m ? m_ : v_;
    const int64_t word = element - ownership_.dense_elements(), cols = ownership_.cols();
    return word < 0 ? moments.dense(element) : moments.row(word / cols) + word % cols;
  }

  // Of another host: what rank 0 does with this range, from the other side.
  void send(Arena arena, IndexRange range) {
    if (arena == Arena::weights) return;  // rank 0 has them
    for (const Part& part : parts(range)) {
      if (part.host != comm_.host()) continue;
      const Communicator::Outgoing out{0, at(arena, part.elements.begin), bytes(part.elements)};
      comm_.exchange({&out, 1}, {});
    }
  }
  void receive(Arena arena, IndexRange range) {
    if (arena == Arena::weights) return receive_from_0(arena, range);
    for (const Part& part : parts(range)) {
      if (part.host == comm_.host()) receive_from_0(arena, part.elements);
    }
  }

 protected:
  static size_t bytes(IndexRange range) { return size_t(range.size()) * sizeof(float); }
  void receive_from_0(Arena arena, IndexRange range) {
    const Communicator::Incoming in{0, at(arena, range.begin), bytes(range)};
    comm_.exchange({}, {&in, 1});
  }

  Communicator& comm_;
  Backend& backend_;
  const Ownership& ownership_;
  float* weights_;
  const HostArena& m_;
  const HostArena& v_;
};

// The same for rank 0, which has the file.
class GatheredArenas final : public CheckpointMemory, private SpreadArenas {
 public:
  GatheredArenas(Session& session, bool moments) : SpreadArenas(session), moments_(moments) {}

  bool has(Arena arena) const override { return moments_ || arena == Arena::weights; }

  const float* contents(Arena arena, IndexRange range) override {
    const std::vector<Part> all = parts(range);
    if (in_place(arena) || (backend_.uses_host_memory() && all.size() == 1 && all[0].host == 0)) {
      return at(arena, range.begin);
    }
    staging_.resize(size_t(range.size()));
    for (const Part& part : all) {
      float* to = staging_.data() + (part.elements.begin - range.begin);
      if (part.host == 0) {
        backend_.download(to, at(arena, part.elements.begin), bytes(part.elements));
      } else {
        const Communicator::Incoming in{part.host, to, bytes(part.elements)};
        comm_.exchange({}, {&in, 1});
      }
    }
    return staging_.data();
  }

  float* room(Arena arena, IndexRange range) override {
    if (in_place(arena)) return at(arena, range.begin);
    staging_.resize(size_t(range.size()));
    return staging_.data();
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

 private:
  // Weights are whole on every host. A device is one host's alone, and has all of every arena.
  bool in_place(Arena arena) const {
    return arena == Arena::weights && backend_.uses_host_memory();
  }

  void send_to(int host, const float* data, IndexRange range) {
    const Communicator::Outgoing out{host, data, bytes(range)};
    comm_.exchange({&out, 1}, {});
  }

  bool moments_;
  std::vector<float> staging_;
};

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

bool speaks_for_host(const Communicator& comm) {
  return comm.hosts() > 1 && comm.local_rank() == 0;
}

}  // namespace

void save_checkpoint(Session& s, const std::filesystem::path& path) {
  s.step->settle();
  s.comm.note("checkpoint", s.state.step);
  const ParameterTable& table = s.engine->table();
  if (s.leads()) {
    GatheredArenas arenas(s, true);
    write_checkpoint(path, s.state, table, arenas);
  } else if (speaks_for_host(s.comm)) {
    SpreadArenas arenas(s);
    each_piece(table, true, [&](Arena arena, IndexRange range) { arenas.send(arena, range); });
  }
  s.comm.barrier();  // until then nobody may change what is being written
}

void load_checkpoint(Session& s, const std::filesystem::path& path, bool moments, bool verified) {
  s.step->settle();
  const ParameterTable& table = s.engine->table();
  if (s.leads()) {
    GatheredArenas arenas(s, moments);
    read_checkpoint(path, table, arenas, verified);
  } else if (speaks_for_host(s.comm)) {
    SpreadArenas arenas(s);
    each_piece(table, moments,
               [&](Arena arena, IndexRange range) { arenas.receive(arena, range); });
  }
  s.comm.barrier();
}

}  // namespace finetune
