// Tests of the fuzz targets' own tools: findings, and repaired checksums.
#include <doctest/doctest.h>

#include <stdexcept>

#include "core/error.h"
#include "core/files/text_file.h"
#include "fuzz/allocations.h"
#include "fuzz/target.h"

using namespace finetune;
using namespace finetune::fuzz;

namespace {

std::string finding_of(void (*run)(std::string_view input), std::string_view input = "x") {
  try {
    run_target({.name = "test", .run = run, .memory = 1 << 20}, input);
  } catch (const Finding& finding) {
    return finding.what;
  }
  return "";
}

}  // namespace

TEST_CASE("an Error is an answer to an input, anything else is a finding") {
  CHECK(finding_of([](std::string_view) {}) == "");
  CHECK(finding_of([](std::string_view) { throw model_error("damaged"); }) == "");
  CHECK(finding_of([](std::string_view) { throw data_error("damaged"); }) == "");
  CHECK(finding_of([](std::string_view) { throw usage_error("wrong"); }) == "");
  CHECK(finding_of([](std::string_view) { throw internal_error("bug"); }).ends_with("bug"));
  CHECK(finding_of([](std::string_view) { FINETUNE_CHECK(false); }) != "");
  CHECK(finding_of([](std::string_view) { throw device_error("memory"); }).ends_with("memory"));
  CHECK(finding_of([](std::string_view) { throw std::out_of_range("at"); }) ==
        "std::out_of_range: at");
  CHECK(finding_of([](std::string_view) { throw model_error(""); }) != "");
  CHECK(finding_of([](std::string_view) { require(1 > 2, "one ", 1); }) == "one 1");
}

TEST_CASE("memory that an input does not account for is a finding") {
  const auto take = [](std::string_view input) {
    const std::vector<char> some(size_t(input[0] - '0') << 19);
    require(!some.empty(), "nothing was taken");
  };
  CHECK(finding_of(take, "1") == "");
  CHECK(finding_of(take, "4") != "");
  CHECK(finding_of(take, "4" + std::string(1000, 'x')) == "");  // of a larger one it is little
}

TEST_CASE("an input of several files") {
  const auto parts = parts_of("a\n--8<--\n\n--8<--\nb\n--8<--\nc", 3);
  REQUIRE(parts.size() == 3);
  CHECK(parts[0] == "a");
  CHECK(parts[1] == "");
  CHECK(parts[2] == "b\n--8<--\nc");
  CHECK(parts_of("a", 2)[0] == "a");
  CHECK(parts_of("a", 2)[1] == "");
}

TEST_CASE("files of one input are gone with the next") {
  finding_of([](std::string_view input) { scratch_file("first", input); });
  CHECK(finding_of([](std::string_view input) {
          require(!fs::exists(scratch_directory() / "first"), "it is there");
          require(read_text_file(scratch_file("second", input)) == input, "it is another one");
        }) == "");
}

TEST_CASE("allocations are counted") {
  const AllocationCount count;
  CHECK(count.peak() == 0);
  { const std::vector<char> some(1 << 20); }
  CHECK(count.peak() >= 1 << 20);
  CHECK(count.peak() < 2 << 20);
}
