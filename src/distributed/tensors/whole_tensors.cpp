// Rank 0 asks for pieces of tensors; the processes that hold parts of them answer.
#include "distributed/tensors/whole_tensors.h"

#include <cstring>
#include <exception>

#include "comm/agreement.h"
#include "distributed/tensors/held_parts.h"

namespace finetune {
namespace {

size_t bytes(int64_t floats) {
  return size_t(floats) * sizeof(float);
}

// Rank 0's next request to all others.
struct Request {
  enum class Kind : int64_t { give, take, end };
  Kind kind = Kind::end;
  TensorPiece piece;
};

// Moves pieces: from their holders to rank 0, and from rank 0 to all. Both are collective.
std::vector<std::vector<uint8_t>> collect(Communicator& comm, const std::vector<float>& own) {
  const auto* data = reinterpret_cast<const uint8_t*>(own.data());
  return comm.gather({data, own.size() * sizeof(float)});
}
void spread(Communicator& comm, float* piece, int64_t floats) {
  comm.broadcast(piece, bytes(floats), 0);
}

// This process's parts, and the copies of their elements to and from a piece.
class OwnParts {
 public:
  OwnParts(Backend& backend, const ParameterTable& whole, const std::vector<HeldPart>& parts)
      : backend_(backend), whole_(whole), parts_(parts) {}

  const std::vector<HeldPart>& all() const { return parts_; }
  int64_t columns(const TensorPiece& piece) const {
    return whole_.parameters()[size_t(piece.tensor)].slice.cols;
  }
  bool in_host_memory() const { return backend_.uses_host_memory(); }

  // Reads elements `run` of a part into contiguous memory.
  void read(const HeldPart& part, IndexRange run, float* out) const {
    backend_.download(out, at(part, run), bytes(run.size()));
  }
  // Reads the elements that a part contributes into their places in a piece.
  void read_into(const HeldPart& part, IndexRange give, const TensorPiece& piece, float* out) {
    const IndexRange run = within(part.place, give, piece.elements, columns(piece));
    if (run.size() == 0) return;
    const bool rows_are_whole = part.place.cols == columns(piece);
    if (rows_are_whole) {
      const int64_t first = part.place.row * part.place.cols + run.begin;
      return read(part, run, out + (first - piece.elements.begin));
    }
    const float* from = at(part, run);
    if (!in_host_memory()) {
      slice_.resize(size_t(run.size()));
      read(part, run, slice_.data());
      from = slice_.data();
    }
    each_row(part.place, run, piece.elements, columns(piece),
             [&](int64_t to, int64_t element, int64_t count) {
               std::memcpy(out + to, from + element, bytes(count));
             });
  }
  // Writes a piece's values to all parts that this process holds of it.
  void fill(const TensorPiece& piece, const float* data) {
    for (const HeldPart& part : parts_) {
      if (!part.place.is_of(piece)) continue;
      const IndexRange run = within(part.place, part.place.run, piece.elements, columns(piece));
      if (run.size() > 0) write(part, run, piece, data);
    }
  }
  // Returns the piece's address if it lies unchanged in this process's memory, else null.
  float* in_place(const TensorPiece& piece) const {
    if (!in_host_memory()) return nullptr;
    for (const HeldPart& part : parts_) {
      if (!part.place.is_of(piece) || part.place.cols != columns(piece)) continue;
      const IndexRange run = within(part.place, part.place.run, piece.elements, columns(piece));
      if (run.size() == piece.elements.size()) return at(part, run);
    }
    return nullptr;
  }

 private:
  static float* at(const HeldPart& part, IndexRange run) {
    return part.data + (run.begin - part.place.run.begin);
  }
  void write(const HeldPart& part, IndexRange run, const TensorPiece& piece, const float* data) {
    slice_.resize(in_host_memory() ? 0 : size_t(run.size()));
    float* to = in_host_memory() ? at(part, run) : slice_.data();
    each_row(part.place, run, piece.elements, columns(piece),
             [&](int64_t from, int64_t element, int64_t count) {
               std::memcpy(to + element, data + from, bytes(count));
             });
    if (!in_host_memory()) backend_.upload(at(part, run), to, bytes(run.size()));
  }

  Backend& backend_;
  const ParameterTable& whole_;
  const std::vector<HeldPart>& parts_;
  std::vector<float> slice_;
};

// The side of rank 0.
class Leader final : public ModelTensors {
 public:
  Leader(Communicator& comm, OwnParts& own, const ParameterTable& whole,
         const PartDirectory& directory)
      : ModelTensors(whole), comm_(comm), own_(own), directory_(directory) {}

  bool has(Arena arena) const override { return directory_.has(arena); }

  const float* contents(const TensorPiece& piece) override {
    if (const float* there = own_.in_place(piece)) return there;
    float* out = staged(piece);
    const std::vector<PartDirectory::Entry>& entries = directory_.entries(piece);
    size_t next = 0;  // rank 0's entries come first, in its order
    for (const HeldPart& part : own_.all()) {
      if (!part.place.is_of(piece)) continue;
      own_.read_into(part, entries[next++].give, piece, out);
    }
    if (others_have(piece, true)) take_from_others(piece, out);
    return out;
  }

  float* room(const TensorPiece& piece) override {
    float* there = own_.in_place(piece);
    return there ? there : staged(piece);
  }

  void filled(const TensorPiece& piece, const float* data) override {
    if (!own_.in_place(piece)) own_.fill(piece, data);
    if (!others_have(piece, false)) return;
    ask({Request::Kind::take, piece});
    // rank 0 only reads its data here
    spread(comm_, const_cast<float*>(data), piece.elements.size());
    asking_ = false;
  }

  // Whether the others are in a collective, so that agreeing on an error is impossible.
  bool asking() const { return asking_; }
  void end() { ask({Request::Kind::end, {}}); }

 private:
  float* staged(const TensorPiece& piece) {
    staging_.resize(size_t(piece.elements.size()));
    return staging_.data();
  }
  IndexRange from(const PartDirectory::Entry& entry, const TensorPiece& piece, bool given) const {
    return within(entry.place, given ? entry.give : entry.place.run, piece.elements,
                  own_.columns(piece));
  }
  bool others_have(const TensorPiece& piece, bool given) const {
    for (const PartDirectory::Entry& entry : directory_.entries(piece)) {
      if (entry.rank > 0 && from(entry, piece, given).size() > 0) return true;
    }
    return false;
  }
  void ask(Request request) {
    asking_ = true;
    comm_.broadcast(&request, sizeof request, 0);
  }
  void take_from_others(const TensorPiece& piece, float* out) {
    ask({Request::Kind::give, piece});
    const std::vector<std::vector<uint8_t>> given = collect(comm_, {});
    asking_ = false;
    std::vector<size_t> at(given.size());
    for (const PartDirectory::Entry& entry : directory_.entries(piece)) {
      if (entry.rank == 0) continue;
      const IndexRange run = from(entry, piece, true);
      const uint8_t* data = given[size_t(entry.rank)].data() + at[size_t(entry.rank)];
      each_row(entry.place, run, piece.elements, own_.columns(piece),
               [&](int64_t to, int64_t element, int64_t count) {
                 std::memcpy(out + to, data + bytes(element), bytes(count));
               });
      at[size_t(entry.rank)] += bytes(run.size());
    }
  }

  Communicator& comm_;
  OwnParts& own_;
  const PartDirectory& directory_;
  std::vector<float> staging_;
  bool asking_ = false;
};

// The side of the other ranks, until rank 0 is done.
void serve(Communicator& comm, OwnParts& own, const std::vector<IndexRange>& give) {
  std::vector<float> buffer;
  for (;;) {
    Request request;
    comm.broadcast(&request, sizeof request, 0);
    const TensorPiece& piece = request.piece;
    if (request.kind == Request::Kind::end) return;
    if (request.kind == Request::Kind::take) {
      buffer.resize(size_t(piece.elements.size()));
      spread(comm, buffer.data(), piece.elements.size());
      own.fill(piece, buffer.data());
      continue;
    }
    buffer.clear();
    for (size_t i = 0; i < give.size(); ++i) {
      const HeldPart& part = own.all()[i];
      if (!part.place.is_of(piece)) continue;
      const IndexRange run = within(part.place, give[i], piece.elements, own.columns(piece));
      if (run.size() == 0) continue;
      buffer.resize(buffer.size() + size_t(run.size()));
      own.read(part, run, buffer.data() + buffer.size() - run.size());
    }
    collect(comm, buffer);
  }
}

template <typename T>
std::vector<T> numbers_in(const std::vector<uint8_t>& message) {
  std::vector<T> out(message.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), message.data(), message.size());
  return out;
}

// The directory, on rank 0 only. Collective.
std::unique_ptr<PartDirectory> agreed_directory(Communicator& comm, const ParameterTable& whole,
                                                const std::vector<HeldPart>& own) {
  std::vector<PartPlace> places;
  for (const HeldPart& part : own) places.push_back(part.place);
  const auto* data = reinterpret_cast<const uint8_t*>(places.data());
  const auto all = comm.gather({data, places.size() * sizeof places[0]});
  std::unique_ptr<PartDirectory> directory;
  agree_on_errors(comm, [&] {
    if (comm.rank() > 0) return;
    std::vector<std::vector<PartPlace>> of_rank;
    for (const std::vector<uint8_t>& told : all) of_rank.push_back(numbers_in<PartPlace>(told));
    directory = std::make_unique<PartDirectory>(whole, of_rank);
  });
  return directory;
}

// Returns the elements that this process sends of each of its parts. Collective.
std::vector<IndexRange> agreed_gifts(Communicator& comm, const PartDirectory* directory) {
  std::vector<std::vector<uint8_t>> told;
  for (int rank = 0; directory && rank < comm.size(); ++rank) {
    const std::vector<IndexRange> gifts = directory->given_by(rank);
    const auto* data = reinterpret_cast<const uint8_t*>(gifts.data());
    told.emplace_back(data, data + gifts.size() * sizeof gifts[0]);
  }
  return numbers_in<IndexRange>(comm.scatter(told));
}

}  // namespace

void with_whole_tensors(Communicator& comm, Backend& backend, const ParameterTable& whole,
                        const std::vector<HeldPart>& parts,
                        const std::function<void(ModelTensors&)>& action) {
  OwnParts own(backend, whole, parts);
  const std::unique_ptr<PartDirectory> directory = agreed_directory(comm, whole, parts);
  const std::vector<IndexRange> gifts = agreed_gifts(comm, directory.get());
  std::exception_ptr failure;
  if (comm.rank() > 0) {
    serve(comm, own, gifts);
  } else {
    Leader leader(comm, own, whole, *directory);
    try {
      action(leader);
    } catch (...) {
      if (leader.asking()) throw;
      failure = std::current_exception();
    }
    leader.end();
  }
  agree_on_errors(comm, [&] {
    if (failure) std::rethrow_exception(failure);
  });
}

}  // namespace finetune
