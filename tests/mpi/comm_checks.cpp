// Checks of a communicator that all of its processes do together.
#include "comm_checks.h"

#include <cstring>
#include <map>

#include "comm/agreement.h"
#include "comm/host/host_group.h"

namespace finetune {
namespace {

// Byte i of rank r's data; ranks and sizes all differ.
constexpr size_t kPeriod = 251;

uint8_t said(int rank, size_t i, size_t bytes) {
  return uint8_t(size_t(rank) * 37 + i * 11 + i / kPeriod + bytes);
}

const std::vector<size_t> kSizes = {0,
                                    1,
                                    7,
                                    4096,
                                    kMailboxBytes - 1,
                                    kMailboxBytes,
                                    kMailboxBytes + 1,
                                    2 * kMailboxBytes,
                                    (size_t(1) << 20) + 1,
                                    (size_t(3) << 20) + 5};

// The data from one rank to another in the first or second message of an exchange.
size_t exchanged_bytes(size_t bytes, int from, int to, int turn) {
  return turn == 1 && from + 1 == to ? 0 : bytes + size_t(turn);
}
int exchanged_text(int from, int to, int turn) {
  return from * 100 + to * 2 + turn;
}

// Ranks of other hosts to exchange this much with: large messages need memory.
std::vector<int> exchange_peers(Communicator& c, size_t bytes) {
  std::vector<int> peers;
  for (int host = 0; host < c.hosts(); ++host) {
    if (host == c.host()) continue;
    for (int rank = c.first_rank(host); rank < c.first_rank(host + 1); ++rank) {
      if (bytes < kSizes.back() || rank - c.first_rank(host) == c.local_rank()) {
        peers.push_back(rank);
      }
    }
  }
  return peers;
}

}  // namespace

void require(bool condition, std::string_view what) {
  if (!condition) throw internal_error("not so: ", what);
}

std::vector<uint8_t> saying(int rank, size_t bytes) {
  std::vector<uint8_t> out(bytes);
  for (size_t begin = 0; begin < bytes; begin += kPeriod) {  // avoids a division per byte
    const uint8_t first = said(rank, begin, bytes);
    const size_t length = std::min(kPeriod, bytes - begin);
    for (size_t i = 0; i < length; ++i) out[begin + i] = uint8_t(first + i * 11);
  }
  return out;
}

void check_numbers(Communicator& c, const std::function<int(int)>& runs_rank) {
  struct Numbers {
    int rank, size, host, hosts, local_rank, local_size, columns;
  };
  const Numbers mine{c.rank(),       c.size(),       c.host(),   c.hosts(),
                     c.local_rank(), c.local_size(), c.columns()};
  std::vector<Numbers> all(static_cast<size_t>(c.size()));
  c.all_gather(&mine, sizeof mine, all.data());
  std::vector<int> on_host(size_t(c.hosts()), 0);
  for (int r = 0; r < c.size(); ++r) {
    const Numbers& each = all[size_t(r)];
    require(each.rank == r && each.size == c.size() && each.hosts == c.hosts(), "ranks are a row");
    require(each.local_rank == on_host[size_t(each.host)]++, "local ranks are a row");
    require(r == 0 || each.host - all[size_t(r) - 1].host <= 1, "hosts are neighbours");
    require(c.size() == 1 || c.name(r).find(concat("rank ", runs_rank(r), " on ")) == 0, "names");
  }
  int least = c.size();
  for (int n : on_host) least = std::min(least, n);
  require(on_host[size_t(c.host())] == c.local_size() && c.columns() == least, "columns");
}

void check_collectives(Communicator& c, size_t most) {
  for (size_t bytes : kSizes) {
    if (bytes > most) continue;
    const std::string size = concat(" of ", bytes, " bytes");
    std::vector<uint8_t> all(bytes * size_t(c.size()));
    c.all_gather(saying(c.rank(), bytes).data(), bytes, all.data());
    for (int r = 0; r < c.size(); ++r) {
      require(bytes == 0 ||
                  std::memcmp(all.data() + size_t(r) * bytes, saying(r, bytes).data(), bytes) == 0,
              "all_gather" + size);
    }
    for (int root : {0, c.size() - 1}) {
      auto data = c.rank() == root ? saying(root, bytes) : std::vector<uint8_t>(bytes);
      c.broadcast(data.data(), bytes, root);
      require(data == saying(root, bytes), "broadcast" + size);
    }
    // A different size for each rank.
    const auto bytes_of = [&](int rank) { return rank % 3 == 2 ? 0 : bytes + size_t(rank) * 1000; };
    std::vector<std::vector<uint8_t>> parts;
    for (int r = 0; c.rank() == 0 && r < c.size(); ++r) parts.push_back(saying(r, bytes_of(r)));
    require(c.scatter(parts) == saying(c.rank(), bytes_of(c.rank())), "scatter" + size);
    const auto gathered = c.gather(saying(c.rank(), bytes_of(c.rank())));
    require(gathered.size() == (c.rank() == 0 ? size_t(c.size()) : 0), "gather is rank 0's");
    for (size_t r = 0; r < gathered.size(); ++r) {
      require(gathered[r] == saying(int(r), bytes_of(int(r))), "gather" + size);
    }
    c.barrier();
  }
}

void check_memory(Communicator& c) {
  for (size_t bytes : {size_t(0), size_t(1), size_t(64), size_t(100'000), (size_t(5) << 20) + 12}) {
    const auto memory = c.allocate_shared(bytes);
    auto* data = static_cast<uint8_t*>(memory.get());
    require(data && reinterpret_cast<uintptr_t>(data) % 64 == 0, "memory is aligned");
    for (size_t i = 0; i < bytes; ++i) require(data[i] == 0, "memory is zeroed");
    c.host_barrier();
    const auto local = size_t(c.local_rank()), locals = size_t(c.local_size());
    for (size_t i = local; i < bytes; i += locals) data[i] = said(c.host(), i, bytes);
    c.host_barrier();
    for (size_t i = 0; i < bytes; ++i) {
      require(data[i] == said(c.host(), i, bytes), "memory is one for the host, not for others");
    }
  }
  try {
    c.allocate_shared(size_t(1) << 60);
    require(false, "an exbibyte is refused");
  } catch (const Error& error) {
    require(c.local_rank() == 0, "one process of a host tells");
    require(error.code() == ExitCode::device, "of the device");
    require(std::strstr(error.what(), "1099511627776 MiB"), error.what());
  } catch (const PeerFailed& peer) {
    require(c.local_rank() > 0 && peer.code == ExitCode::device, "the others are silent");
  }
}

void check_exchange(Communicator& c, size_t most) {
  std::vector<size_t> sizes = kSizes;
  sizes.push_back((size_t(33) << 20) + 3);  // several pieces of MPI transfers
  const LinkMessage message{"bytes of the test"};
  for (size_t bytes : sizes) {
    if (bytes > most) continue;
    std::map<std::pair<int, int>, std::vector<uint8_t>> sent, got;
    std::vector<Communicator::Outgoing> out;
    std::vector<Communicator::Incoming> in;
    for (int turn : {0, 1}) {  // two messages between the same ranks must keep their order
      for (int peer : exchange_peers(c, bytes)) {
        auto& text = sent[{peer, turn}];
        text = saying(exchanged_text(c.rank(), peer, turn),
                      exchanged_bytes(bytes, c.rank(), peer, turn));
        out.push_back({peer, text.data(), text.size()});
        auto& place = got[{peer, turn}];
        place.resize(exchanged_bytes(bytes, peer, c.rank(), turn));
        in.push_back({peer, place.data(), place.size()});
      }
    }
    c.exchange(out, in, message);
    for (const auto& [key, text] : got) {
      const auto [peer, turn] = key;
      require(text == saying(exchanged_text(peer, c.rank(), turn), text.size()),
              concat("exchange of ", bytes, " bytes"));
    }
  }
  c.exchange({}, {}, message);
  c.barrier();
}

}  // namespace finetune
