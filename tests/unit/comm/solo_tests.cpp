// The communicator of one process: collectives, memory, agreement, cores.
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "comm/agreement.h"
#include "comm/communicator.h"
#include "comm/placement.h"
#include "core/error.h"

using namespace finetune;

TEST_CASE("a process alone is rank 0 of 1, and every collective is at once") {
  const auto c = make_solo_communicator();
  CHECK(c->rank() == 0);
  CHECK(c->size() == 1);
  CHECK(c->host() == 0);
  CHECK(c->hosts() == 1);
  CHECK(c->local_rank() == 0);
  CHECK(c->local_size() == 1);
  CHECK(c->columns() == 1);
  c->set_timeout(1);
  c->note("forward pass", 1);
  c->barrier();
  c->host_barrier();
  const int mine = 7;
  int all = 0;
  c->all_gather(&mine, sizeof mine, &all);
  CHECK(all == 7);
  c->all_gather(nullptr, 0, nullptr);
  c->broadcast(&all, sizeof all, 0);
  CHECK(all == 7);
  const std::vector<std::vector<uint8_t>> parts = {{1, 2, 3}};
  CHECK(c->scatter(parts) == parts[0]);
  CHECK(c->gather(parts[0]) == parts);
  c->exchange({}, {}, {"nothing"});
  CHECK(c->claim_error_report());
  c->finish();
}

TEST_CASE("a process alone is its only group, has no links and sends nothing") {
  const auto c = make_solo_communicator();
  const auto group = c->split(3);
  CHECK(group->size() == 1);
  CHECK(group->name(0) == c->name(0));
  const int mine = 7;
  int all = 0;
  group->all_gather(&mine, sizeof mine, &all);
  CHECK(all == 7);
  CHECK(group->make_links({}).empty());
  const std::vector<LinkEnds> ends = {{0, 0, 8}};
  CHECK_THROWS_AS(group->make_links(ends), Error);
  CHECK_THROWS_AS(c->split(-1), Error);
  group->advance();
  CHECK(group->bytes_sent() == 0);
  group->count_sent(12);
  CHECK(group->bytes_sent() == 12);
  CHECK(c->bytes_sent() == 0);
}

TEST_CASE("memory of a process alone is zeroed and aligned") {
  const auto c = make_solo_communicator();
  for (size_t bytes : {size_t(0), size_t(1), size_t(64), size_t(1'000'001)}) {
    const auto memory = c->allocate_shared(bytes);
    const auto* data = static_cast<const uint8_t*>(memory.get());
    CHECK(reinterpret_cast<uintptr_t>(data) % 64 == 0);
    bool zero = true;
    for (size_t i = 0; i < bytes; ++i) zero = zero && data[i] == 0;
    CHECK(zero);
  }
}

TEST_CASE("a process alone agrees with itself: its errors go through as they are") {
  const auto c = make_solo_communicator();
  int calls = 0;
  agree_on_errors(*c, [&] { ++calls; });
  CHECK(calls == 1);
  CHECK_THROWS_WITH_AS(agree_on_errors(*c, [] { throw data_error("train.csv:1: empty"); }),
                       "train.csv:1: empty", Error);
  CHECK_THROWS_AS(agree_on_errors(*c, [] { throw std::bad_alloc(); }), std::bad_alloc);
  CHECK_THROWS_AS(agree_on_errors(*c, [] { throw 3; }), int);
}

TEST_CASE("a process alone may use the cores of its affinity mask") {
  const auto c = make_solo_communicator();
  CHECK(cores_for_process(*c) >= 1);
  CHECK(cores_for_process(*c) <= host_cores());
}

TEST_CASE("cores are divided between the processes that may use them") {
  const auto mask = [](const std::vector<int>& cores) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int core : cores) CPU_SET(core, &set);
    return set;
  };
  const auto shares = [](const std::vector<cpu_set_t>& masks) {
    std::vector<int> out;
    for (size_t i = 0; i < masks.size(); ++i) out.push_back(share_of_cores(masks, i));
    return out;
  };
  CHECK(shares({mask({0, 1, 2, 3})}) == std::vector{4});
  CHECK(shares({mask({0, 1, 2, 3}), mask({0, 1, 2, 3})}) == std::vector{2, 2});
  CHECK(shares({mask({0}), mask({1})}) == std::vector{1, 1});
  CHECK(shares({mask({0, 1, 2}), mask({0, 1, 2}), mask({0, 1, 2})}) == std::vector{1, 1, 1});
  CHECK(shares({mask({0, 1, 2}), mask({2, 3, 4})}) == std::vector{2, 2});
  CHECK(shares({mask({0}), mask({0}), mask({0})}) == std::vector{1, 1, 1});
  CHECK(shares({mask({0, 1, 2, 3}), mask({3})}) == std::vector{3, 1});
}
