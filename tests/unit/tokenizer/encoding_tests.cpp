// Truncation, windows, templates and code-point offsets.
#include <algorithm>

#include "support.h"

namespace finetune {
namespace {

TEST_CASE("truncate_longest_first: tokenizers 0.22.2, utils/truncation.rs") {
  struct Case {
    int64_t first, second, budget, kept_first, kept_second;
  };
  // The cases of truncation.rs (truncate_encodings_longest_first) and its comment.
  for (const Case& c :
       {Case{5, 5, 7, 3, 4}, Case{10, 10, 7, 3, 4}, Case{3, 10, 7, 3, 4}, Case{10, 3, 7, 4, 3},
        Case{2, 10, 7, 2, 5}, Case{10, 2, 7, 5, 2}, Case{4, 3, 7, 4, 3}, Case{0, 10, 7, 0, 7},
        Case{5, 5, 0, 0, 0}, Case{5, 5, 1, 0, 1}, Case{6, 5, 1, 1, 0}, Case{100, 100, 8, 4, 4}}) {
    CAPTURE(c.first);
    CAPTURE(c.second);
    CAPTURE(c.budget);
    PairLengths kept = truncate_longest_first(c.first, c.second, c.budget);
    CHECK(kept.first == c.kept_first);
    CHECK(kept.second == c.kept_second);
  }
}

TEST_CASE("truncate_longest_first keeps as much as it may") {
  for (int64_t a = 0; a <= 12; ++a) {
    for (int64_t b = 0; b <= 12; ++b) {
      for (int64_t budget = 0; budget <= 26; ++budget) {
        PairLengths kept = truncate_longest_first(a, b, budget);
        CHECK(kept.first >= 0);
        CHECK(kept.second >= 0);
        CHECK(kept.first <= a);
        CHECK(kept.second <= b);
        CHECK(kept.first + kept.second == std::min(a + b, budget));
        // The shorter part is not cut while the longer one stays at least two longer.
        if (kept.first < a) CHECK(kept.second <= kept.first + 1);
        if (kept.second < b) CHECK(kept.first <= kept.second + 1);
      }
    }
  }
}

TEST_CASE("windows against brute force") {
  for (int64_t length = 0; length <= 40; ++length) {
    for (int64_t window = 1; window <= 12; ++window) {
      for (int64_t overlap = 0; overlap < window; ++overlap) {
        CAPTURE(length);
        CAPTURE(window);
        CAPTURE(overlap);
        auto found = windows(length, window, overlap);
        // Every start 0, step, 2 step, ... up to the first window that reaches the end.
        std::vector<std::pair<int64_t, int64_t>> expected;
        bool done = false;
        for (int64_t start = 0; !done; start += window - overlap) {
          int64_t stop = start;
          while (stop < length && stop - start < window) ++stop;
          expected.push_back({start, stop});
          done = stop == length;
        }
        REQUIRE(found.size() == expected.size());
        for (size_t i = 0; i < found.size(); ++i) {
          CHECK(found[i].begin == expected[i].first);
          CHECK(found[i].end == expected[i].second);
        }
        CHECK(found.front().begin == 0);
        CHECK(found.back().end == length);
      }
    }
  }
}

TEST_CASE("templates") {
  SpecialTokens special;
  special.cls = 101;
  special.sep = 102;
  std::vector<int32_t> a{1, 2, 3}, b{4, 5}, ids{9};
  CHECK(append_single(special, a.data(), 3, ids) == 5);
  CHECK(ids == std::vector<int32_t>{9, 101, 1, 2, 3, 102});
  ids.clear();
  CHECK(append_pair(special, a.data(), 2, b.data(), 2, ids) == 4);
  CHECK(ids == std::vector<int32_t>{101, 1, 2, 102, 4, 5, 102});
  ids.clear();
  CHECK(append_pair(special, nullptr, 0, nullptr, 0, ids) == 2);
  CHECK(ids == std::vector<int32_t>{101, 102, 102});
}

TEST_CASE("code points of byte offsets") {
  CodePointIndex ascii("abc");
  CHECK(ascii(0) == 0);
  CHECK(ascii(3) == 3);
  CodePointIndex mixed("a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80z");  // a é 中 😀 z
  std::vector<uint32_t> expected{0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 5};
  for (uint32_t i = 0; i < expected.size(); ++i) CHECK(mixed(i) == expected[i]);
  CodePointIndex empty("");
  CHECK(empty(0) == 0);
  CodePointIndex broken("\xE4\xB8x\xFF");  // a maximal subpart is one U+FFFD
  CHECK(broken(2) == 1);
  CHECK(broken(3) == 2);
  CHECK(broken(4) == 3);
}

}  // namespace
}  // namespace finetune
