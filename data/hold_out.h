// Which rows are held out for evaluation: pure functions of the rows' labels, groups and a seed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace finetune {

// Places of rows, each side in file order.
struct HoldOut {
  std::vector<uint32_t> train;
  std::vector<uint32_t> eval;
};

// ceil(fraction * count) of the rows, drawn by seed.
HoldOut hold_out(int64_t count, double fraction, uint64_t seed);

// As many, of each stratum its share. strata: of each row, ids from 0. Rows are dealt to strata by
// largest remainders. Where so many are held out that each stratum of two rows or more can have
// one, it has; each keeps one for training, and a stratum of one row its row, unless there are too
// few others. Within a stratum the seed draws.
HoldOut stratified_hold_out(std::span<const int32_t> strata, double fraction, uint64_t seed);

// Whole groups. groups: of each row, ids from 0, two at least. Groups are looked at from the
// largest power of two of their sizes to the smallest, those of one in an order drawn by seed, so
// that groups of all sizes are held out. Each goes to the side where it leaves the held-out shares
// of all rows and of each stratum nearer to `fraction`, of what has been looked at. Neither side is
// empty.
HoldOut grouped_hold_out(std::span<const int32_t> groups, std::span<const int32_t> strata,
                         double fraction, uint64_t seed);

// Strata of numbers: tenths of the rows by rank, equal numbers together.
std::vector<int32_t> strata_of_values(std::span<const double> values);
// Strata of rows with several labels each, given as ids from 0 to labels - 1: a row's rarest label
// (of equally rare ones the lowest id); rows without a label are a stratum of their own, `labels`.
// Set i is ids [offsets[i], offsets[i + 1]).
std::vector<int32_t> strata_of_sets(std::span<const int32_t> ids, std::span<const int64_t> offsets,
                                    int64_t labels);

}  // namespace finetune
