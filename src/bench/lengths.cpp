// Quantiles of the token lengths of bank transactions and of SQuAD windows.
#include "bench/lengths.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/numeric/philox.h"
#include "core/text/text.h"

namespace finetune {
namespace {

constexpr int64_t kShortest = 4;
constexpr size_t kQuantiles = 65;

// Tokens (BERT's uncased vocabulary) in column `text` of 100,000 purchasing-card transactions of
// the City of Toronto (open data): mean 13.2.
constexpr int64_t kBank[kQuantiles] = {
    4,  6,  7,  7,  8,  8,  8,  8,  9,  9,  9,  9,  9,  10, 10, 10, 10, 10, 10, 10, 11, 11,
    11, 11, 11, 11, 11, 12, 12, 12, 12, 12, 12, 13, 13, 13, 13, 13, 13, 14, 14, 14, 14, 15,
    15, 15, 15, 15, 16, 16, 16, 17, 17, 17, 18, 18, 18, 19, 19, 20, 21, 22, 23, 26, 53};

// Windows of 4,000 random questions of SQuAD v1.1's training file (Rajpurkar et al., 2016) at
// max-length 384 and doc-stride 128, BERT's uncased vocabulary: mean 170.9.
constexpr int64_t kSquad[kQuantiles] = {
    40,  60,  71,  80,  88,  97,  102, 107, 111, 114, 117, 119, 121, 123, 125, 127, 129,
    131, 132, 134, 136, 137, 139, 141, 143, 145, 147, 149, 151, 153, 155, 156, 158, 160,
    162, 164, 166, 169, 171, 174, 176, 179, 182, 184, 187, 190, 195, 199, 202, 207, 212,
    216, 222, 227, 232, 239, 247, 254, 262, 270, 286, 300, 326, 365, 384};

constexpr PhiloxKey kLengthKey = {0x6C656E67, 0x74687321};

}  // namespace

int64_t LengthDistribution::draw(uint64_t i) const {
  const PhiloxBlock bits = philox(kLengthKey, {uint32_t(i), uint32_t(i >> 32), 0, 0});
  const double place = unit_interval(bits[0]) * double(quantiles.size() - 1);
  const size_t below = std::min(size_t(place), quantiles.size() - 2);
  const double part = place - double(below);
  return std::llround((1 - part) * double(quantiles[below]) + part * double(quantiles[below + 1]));
}

std::string_view task_of_lengths(std::string_view name) {
  return name == "squad" ? "qa" : "classification";
}

LengthDistribution length_distribution(std::string_view name, int64_t max_positions) {
  LengthDistribution result{std::string(name), 0, {}};
  if (name == "bank") {
    result.quantiles.assign(kBank, kBank + kQuantiles);
  } else if (name == "squad") {
    result.quantiles.assign(kSquad, kSquad + kQuantiles);
  } else if (const auto length = parse_int(name)) {
    if (*length < kShortest || *length > max_positions) {
      throw usage_error("--lengths ", *length, ": must be from ", kShortest, " to the model's ",
                        max_positions, " positions");
    }
    result.quantiles.assign(2, *length);
  } else {
    throw usage_error("--lengths ", in_quotes(name), ": must be bank, squad or a number of tokens");
  }
  for (int64_t& q : result.quantiles) q = std::min(q, max_positions);
  result.longest = result.quantiles.back();
  return result;
}

}  // namespace finetune
