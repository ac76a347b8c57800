// Parts of tensors: cut at slices, placed in pieces, each element sent once.
#include <doctest/doctest.h>

#include <numeric>

#include "../contains.h"
#include "../small_encoder.h"
#include "core/error.h"
#include "distributed/tensors/held_parts.h"
#include "error_line.h"

using namespace finetune;
using test::contains;

namespace {

ParameterTable table_of() {
  return {test::one_layer_config(), Head{HeadKind::sequence, 2}};
}

const std::string kOutput = "bert.encoder.layer.0.output.dense.weight";  // (8, 16)

int64_t number_of(const ParameterTable& table, const std::string& name) {
  return table.find(name) - table.parameters().data();
}

// All tensors of the table except one, in one piece each.
std::vector<PartPlace> all_but(const ParameterTable& table, const std::string& name) {
  std::vector<float> arena(size_t(table.size()));
  std::vector<PartPlace> places;
  for (const HeldPart& part :
       held_parts(table, held_slices(table), {{Arena::weights, {0, table.size()}, arena.data()}})) {
    if (part.place.tensor != number_of(table, name)) places.push_back(part.place);
  }
  return places;
}

PartPlace panel(const ParameterTable& table, int64_t col, int64_t cols, IndexRange run) {
  return {int64_t(Arena::weights), number_of(table, kOutput), 0, 8, col, cols, run};
}

std::string refusal(const ParameterTable& table, const std::vector<std::vector<PartPlace>>& parts) {
  return test::error_line(ExitCode::internal, [&] { const PartDirectory directory(table, parts); });
}

}  // namespace

TEST_CASE("runs of an arena are cut at slices, wherever they begin and end") {
  const ParameterTable table = table_of();
  std::vector<float> arena(100);
  const std::vector<HeldSlice> slices = {{kOutput, 0, 8, 4, 4, 10},  // elements 10 to 42
                                         {"classifier.bias", 0, 1, 1, 1, 50}};
  const auto parts = held_parts(
      table, slices, {{Arena::m, {30, 100}, &arena[30]}, {Arena::m, {0, 20}, arena.data()}});
  REQUIRE(parts.size() == 3);
  CHECK((parts[0].place.run == IndexRange{20, 32}));
  CHECK(parts[0].data == &arena[30]);
  CHECK((parts[1].place.run == IndexRange{0, 10}));
  CHECK(parts[1].data == &arena[10]);
  CHECK((parts[2].place.run == IndexRange{0, 1}));
  CHECK(parts[2].data == &arena[50]);
  CHECK(parts[2].place.tensor == number_of(table, "classifier.bias"));
  CHECK_THROWS_AS(held_parts(table, {{"nothing", 0, 1, 0, 1, 0}}, {}), Error);
  CHECK_THROWS_AS(held_parts(table, {{kOutput, 0, 8, 13, 4, 0}}, {}), Error);
}

TEST_CASE("a run of columns has its places in a piece, row by row") {
  const ParameterTable table = table_of();
  const PartPlace place = panel(table, 4, 3, {2, 24});
  const IndexRange rows{2 * 16, 5 * 16};  // rows 2 to 5 of the tensor
  const IndexRange run = within(place, {2, 13}, rows, 16);
  CHECK((run == IndexRange{6, 13}));
  std::vector<int64_t> to(7, -1);
  each_row(place, run, rows, 16, [&](int64_t at, int64_t element, int64_t count) {
    std::iota(to.begin() + element, to.begin() + element + count, at);
  });
  CHECK(to == std::vector<int64_t>{4, 5, 6, 20, 21, 22, 36});
  CHECK(within(place, {2, 6}, rows, 16).size() == 0);
  CHECK(within({0, 0, 5, 3, 0, 16, {0, 48}}, {0, 48}, rows, 16).size() == 0);
}

TEST_CASE("each element is sent once, by the largest holder, then by the lower rank") {
  const ParameterTable table = table_of();
  const PartDirectory directory(table, {all_but(table, kOutput),
                                        {panel(table, 0, 8, {0, 40}), panel(table, 8, 8, {0, 64})},
                                        {panel(table, 0, 8, {30, 64}), panel(table, 8, 8, {0, 64})},
                                        {panel(table, 0, 8, {10, 50})}});
  CHECK(directory.has(Arena::weights));
  CHECK_FALSE(directory.has(Arena::m));
  CHECK((directory.given_by(1) == std::vector<IndexRange>{{0, 40}, {0, 64}}));
  CHECK((directory.given_by(2) == std::vector<IndexRange>{{40, 64}, {}}));
  CHECK((directory.given_by(3) == std::vector<IndexRange>{{}}));
  CHECK(directory.entries({Arena::weights, number_of(table, kOutput), {}}).size() == 5);
}

TEST_CASE("missing elements and overlapping slices are refused") {
  const ParameterTable table = table_of();
  const auto rest = all_but(table, kOutput);
  CHECK(refusal(table, {rest, {panel(table, 0, 16, {0, 128})}}) == "");
  CHECK(contains(refusal(table, {rest}), concat("no process has 128 elements of ", kOutput)));
  CHECK(contains(refusal(table, {rest, {panel(table, 0, 15, {0, 120})}}),
                 concat("no process has 8 elements of ", kOutput)));
  CHECK(contains(
      refusal(table, {rest, {panel(table, 0, 16, {0, 50}), panel(table, 0, 16, {51, 128})}}),
      concat("no process has element 50 of a slice of ", kOutput)));
  CHECK(contains(
      refusal(table, {rest, {panel(table, 0, 16, {0, 128})}, {panel(table, 0, 8, {0, 64})}}),
      concat("two slices of ", kOutput, " overlap")));
}
