// Chooses the rows that are held out for evaluation: pure functions of labels, groups and a seed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace finetune {

// Indices of rows, each side in file order.
struct HoldOut {
  std::vector<uint32_t> train;
  std::vector<uint32_t> eval;
};

// Holds out ceil(fraction * count) rows, drawn by seed.
HoldOut hold_out(int64_t count, double fraction, uint64_t seed);

// Holds out as many rows as hold_out(), spread over the strata in proportion to their sizes
// (largest remainders). `strata` holds the stratum id of each row, from 0. Each stratum of two or
// more rows has a held-out row if enough rows are held out for that. Each stratum keeps one row for
// training unless the other strata cannot supply enough rows. The seed draws within a stratum.
HoldOut stratified_hold_out(std::span<const int32_t> strata, double fraction, uint64_t seed);

// Holds out whole groups. `groups` holds the group id of each row, from 0; at least two groups.
// Groups are visited from large to small by the power of two below their size, so that groups of
// all sizes are held out; the seed orders groups of one size class. Each group goes to the side
// that brings the held-out shares of all visited rows and of each stratum nearer to `fraction`.
// Neither side is empty.
HoldOut grouped_hold_out(std::span<const int32_t> groups, std::span<const int32_t> strata,
                         double fraction, uint64_t seed);

// Strata for numbers: tenths of the rows by rank. Equal numbers share a stratum.
std::vector<int32_t> strata_of_values(std::span<const double> values);
// Strata for rows with several labels each, given as ids from 0 to labels - 1. A row's stratum is
// its rarest label (of equally rare ones the lowest id); rows without a label form the stratum
// `labels`. Row i has ids [offsets[i], offsets[i + 1]).
std::vector<int32_t> strata_of_sets(std::span<const int32_t> ids, std::span<const int64_t> offsets,
                                    int64_t labels);

}  // namespace finetune
