// Draws held-out rows: at random, by strata, and by whole groups.
#include "data/hold_out.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <queue>
#include <utility>

#include "core/error.h"
#include "data/plan.h"

namespace finetune {
namespace {

// One row of each stratum is held out only if these rows are at most 1/kRoomForAll of all held-out
// rows. With many small strata, the large ones would otherwise get too few.
constexpr int64_t kRoomForAll = 2;

int64_t held_out_rows(int64_t count, double fraction) {
  FINETUNE_CHECK(fraction >= 0 && fraction <= 1);
  const double exact = fraction * double(count);
  // In binary, 0.07 * 100 is a little more than 7: subtract the rounding error before ceil().
  return std::min(count, int64_t(std::ceil(exact - 1e-9 * std::max(1.0, exact))));
}

std::vector<uint32_t> drawn_order(int64_t count, uint64_t seed) {
  return permutation(count, seed, RandomUse::hold_out, 0);
}

std::vector<int64_t> sizes_of(std::span<const int32_t> strata) {
  std::vector<int64_t> sizes;
  for (int32_t stratum : strata) {
    if (size_t(stratum) >= sizes.size()) sizes.resize(size_t(stratum) + 1);
    ++sizes[size_t(stratum)];
  }
  return sizes;
}

// The number of rows to hold out of each stratum; `held` in total.
class Shares {
 public:
  Shares(std::vector<int64_t> sizes, int64_t rows, int64_t held)
      : sizes_(std::move(sizes)), rows_(rows), held_(held), shares_(sizes_.size()) {}

  std::vector<int64_t> result() {
    const auto divisible =
        std::count_if(sizes_.begin(), sizes_.end(), [](auto n) { return n > 1; });
    const int64_t least = held_ >= kRoomForAll * divisible ? 1 : 0;
    int64_t sum = 0;
    for (size_t s = 0; s < sizes_.size(); ++s) {
      const int64_t most = std::max<int64_t>(0, sizes_[s] - 1);
      shares_[s] = std::clamp(held_ * sizes_[s] / rows_, std::min(least, most), most);
      sum += shares_[s];
    }
    move(held_ - sum, [&](size_t s, bool up) {
      return up ? shares_[s] + 1 < sizes_[s] : shares_[s] > (sizes_[s] > 1 ? least : 0);
    });
    const int64_t missing = held_ - std::accumulate(shares_.begin(), shares_.end(), int64_t{0});
    move(missing, [&](size_t s, bool) { return shares_[s] < sizes_[s]; });
    return std::move(shares_);
  }

 private:
  // A stratum's exact share minus its share, times the number of rows.
  int64_t lacking(size_t s) const { return held_ * sizes_[s] - shares_[s] * rows_; }

  // Adds rows to strata, or removes them, one at a time: to the stratum that lacks most, or from
  // the one that lacks least. Ties go to the first stratum. Stops when all rows are moved, or when
  // no stratum may change.
  template <typename May>
  void move(int64_t rows, May&& may) {
    const bool up = rows > 0;
    const int64_t one = up ? 1 : -1;
    std::priority_queue<std::pair<int64_t, int64_t>> queue;  // urgency, -stratum
    const auto push = [&](size_t s) {
      if (may(s, up)) queue.emplace(one * lacking(s), -int64_t(s));
    };
    for (size_t s = 0; s < sizes_.size(); ++s) push(s);
    for (; rows != 0 && !queue.empty(); rows -= one) {
      const size_t s = size_t(-queue.top().second);
      queue.pop();
      shares_[s] += one;
      push(s);
    }
  }

  std::vector<int64_t> sizes_;
  int64_t rows_, held_;
  std::vector<int64_t> shares_;
};

HoldOut sides_of(const std::vector<bool>& held) {
  HoldOut out;
  for (size_t row = 0; row < held.size(); ++row) {
    (held[row] ? out.eval : out.train).push_back(uint32_t(row));
  }
  return out;
}

// The rows sorted by group: group g owns rows[begins[g], begins[g + 1]).
struct GroupRows {
  std::vector<uint32_t> rows;
  std::vector<size_t> begins;

  std::span<const uint32_t> operator[](size_t g) const {
    return std::span(rows).subspan(begins[g], begins[g + 1] - begins[g]);
  }
  size_t size() const { return begins.size() - 1; }
};

GroupRows rows_by_group(std::span<const int32_t> groups) {
  const std::vector<int64_t> sizes = sizes_of(groups);
  GroupRows out{std::vector<uint32_t>(groups.size()), {0}};
  for (int64_t size : sizes) out.begins.push_back(out.begins.back() + size_t(size));
  std::vector<size_t> next(out.begins.begin(), out.begins.end() - 1);
  for (size_t row = 0; row < groups.size(); ++row) {
    out.rows[next[size_t(groups[row])]++] = uint32_t(row);
  }
  return out;
}

// How many rows were seen and held out so far, in total and for each stratum.
class Balance {
 public:
  Balance(std::span<const int32_t> strata, double fraction)
      : strata_(strata), fraction_(fraction), sizes_(sizes_of(strata)), of_(sizes_.size()) {}

  // Returns whether holding this group out brings the shares nearer to the fraction.
  bool wants(std::span<const uint32_t> rows) {
    own_.clear();
    for (uint32_t row : rows) own_.push_back(strata_[row]);
    std::sort(own_.begin(), own_.end());
    double gain = difference(all_, double(rows.size()), double(strata_.size()));
    for (size_t begin = 0, end; begin < own_.size(); begin = end) {
      end = begin;
      while (end < own_.size() && own_[end] == own_[begin]) ++end;
      const size_t stratum = size_t(own_[begin]);
      gain += difference(of_[stratum], double(end - begin), double(sizes_[stratum]));
    }
    return gain > 0;
  }
  void add(std::span<const uint32_t> rows, bool held) {
    for (uint32_t row : rows) of_[size_t(strata_[row])].add(1, held);
    all_.add(double(rows.size()), held);
  }

 private:
  struct Seen {
    double rows = 0, held = 0;
    void add(double more, bool is_held) {
      rows += more;
      if (is_held) held += more;
    }
  };
  // Returns by how much holding out `more` rows lowers the squared distance to the wanted number of
  // held-out rows, divided by the stratum's size.
  double difference(const Seen& seen, double more, double size) const {
    const double wanted = fraction_ * (seen.rows + more);
    const double without = seen.held - wanted, with = without + more;
    return (without * without - with * with) / size;
  }

  std::span<const int32_t> strata_;
  double fraction_;
  std::vector<int64_t> sizes_;
  std::vector<Seen> of_;
  Seen all_;
  std::vector<int32_t> own_;
};

}  // namespace

HoldOut hold_out(int64_t count, double fraction, uint64_t seed) {
  const std::vector<uint32_t> order = drawn_order(count, seed);
  const auto middle = order.begin() + held_out_rows(count, fraction);
  HoldOut out{{middle, order.end()}, {order.begin(), middle}};
  std::sort(out.train.begin(), out.train.end());
  std::sort(out.eval.begin(), out.eval.end());
  return out;
}

HoldOut stratified_hold_out(std::span<const int32_t> strata, double fraction, uint64_t seed) {
  const int64_t count = int64_t(strata.size());
  if (count == 0) return {};
  std::vector<int64_t> left =
      Shares(sizes_of(strata), count, held_out_rows(count, fraction)).result();
  std::vector<bool> held(strata.size());
  for (uint32_t row : drawn_order(count, seed)) {
    int64_t& more = left[size_t(strata[row])];
    if (more == 0) continue;
    held[row] = true;
    --more;
  }
  return sides_of(held);
}

HoldOut grouped_hold_out(std::span<const int32_t> groups, std::span<const int32_t> strata,
                         double fraction, uint64_t seed) {
  FINETUNE_CHECK(groups.size() == strata.size() && fraction >= 0 && fraction <= 1);
  const GroupRows rows = rows_by_group(groups);
  FINETUNE_CHECK(rows.size() >= 2);
  Balance balance(strata, fraction);
  std::vector<bool> held(rows.size());
  std::vector<uint32_t> order = drawn_order(int64_t(rows.size()), seed);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::bit_width(rows[a].size()) > std::bit_width(rows[b].size());
  });
  for (uint32_t group : order) {
    held[group] = balance.wants(rows[group]);
    balance.add(rows[group], held[group]);
  }
  const auto all = std::count(held.begin(), held.end(), true);
  if (all == 0 || size_t(all) == held.size()) {  // move the smallest group to the other side
    const auto smallest = std::min_element(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return rows[a].size() < rows[b].size();
    });
    held[*smallest] = all == 0;
  }
  std::vector<bool> row_held(groups.size());
  for (size_t row = 0; row < groups.size(); ++row) row_held[row] = held[size_t(groups[row])];
  return sides_of(row_held);
}

std::vector<int32_t> strata_of_values(std::span<const double> values) {
  constexpr size_t kTenths = 10;
  std::vector<uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return values[a] < values[b]; });
  std::vector<int32_t> strata(values.size());
  for (size_t begin = 0, end; begin < order.size(); begin = end) {
    end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) {
      strata[order[end++]] = int32_t(begin * kTenths / order.size());
    }
  }
  return strata;
}

std::vector<int32_t> strata_of_sets(std::span<const int32_t> ids, std::span<const int64_t> offsets,
                                    int64_t labels) {
  std::vector<int64_t> counts(static_cast<size_t>(labels));
  for (int32_t id : ids) ++counts[size_t(id)];
  std::vector<int32_t> strata;
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    int32_t rarest = int32_t(labels);
    for (int64_t k = offsets[i]; k < offsets[i + 1]; ++k) {
      const int32_t id = ids[size_t(k)];
      const bool rarer = rarest == int32_t(labels) || counts[size_t(id)] < counts[size_t(rarest)];
      if (rarer || (counts[size_t(id)] == counts[size_t(rarest)] && id < rarest)) rarest = id;
    }
    strata.push_back(rarest);
  }
  return strata;
}

}  // namespace finetune
