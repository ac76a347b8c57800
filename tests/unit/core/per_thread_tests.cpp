// Objects that belong to one thread.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "core/per_thread.h"

using namespace finetune;

namespace {

std::atomic<int> made = 0, gone = 0;

struct Counted {
  int value = 0;
  Counted() { ++made; }
  ~Counted() { ++gone; }
};

struct Other {
  int value = 7;
};

}  // namespace

TEST_CASE("each thread has its own object during its lifetime") {
  per_thread<Counted>().value = 1;
  CHECK(per_thread<Counted>().value == 1);
  CHECK(per_thread<Other>().value == 7);
  CHECK(made == 1);
  for (int i = 1; i <= 3; ++i) {
    std::thread([] {
      CHECK(per_thread<Counted>().value == 0);
      per_thread<Counted>().value = 2;
      CHECK(&per_thread<Counted>() == &per_thread<Counted>());
    }).join();
    CHECK(made == 1 + i);
    CHECK(gone == i);
  }
  CHECK(per_thread<Counted>().value == 1);
}
