// Every fault in the weights of shared/golden/broken gives one line that names it.
#include <doctest/doctest.h>

#include "../contains.h"
#include "unit/shared.h"
#include "unit/weights/weights_test.h"

using namespace finetune;
using namespace finetune::test;

namespace {

const std::map<std::string, std::string> kFaults = {
    {"dtype-unknown", "unknown dtype"},
    {"duplicate-key", "duplicate key"},
    {"h5-not-hdf5", "not an HDF5 file"},
    {"h5-truncated", "truncated file"},
    {"header-empty", "header is empty"},
    {"header-longer-than-file", "longer than the file"},
    {"header-not-json", "not a JSON object"},
    {"missing-shard", "is missing"},
    {"offsets-gap", "a gap"},
    {"offsets-negative", "holds '-4', not a whole number"},
    {"offsets-overlap", "an overlap"},
    {"offsets-past-end", "past the end"},
    {"offsets-reversed", "are reversed"},
    {"pickle-executes-legacy", "nothing was executed"},
    {"pickle-executes-zip", "nothing was executed"},
    {"pickle-legacy-truncated", "(truncated)"},
    {"pickle-zip-truncated", "truncated"},
    {"shape-and-size-differ", "takes 252 bytes"},
    {"shape-overflow", "overflows"},
    {"trailing-bytes", "bytes follow the data"},
    {"truncated", "(truncated?)"},
};

const std::map<std::string, std::pair<std::string, std::string>> kFaultsOfOneTensor = {
    {"missing-encoder-tensor", {"", "is missing"}},
    {"shape-not-of-config", {"bert.embeddings.LayerNorm.bias", "has shape (32, 2)"}},
    {"nan-weights", {"", "holds nan"}},
};

}  // namespace

TEST_CASE("broken weights are refused in one line that names the fault") {
  if (!have_shared("golden/broken")) return;
  for (const auto& broken : kFaults) {
    const auto& name = broken.first;
    const auto& fault = broken.second;
    CAPTURE(name);
    std::string message = refusal(shared_path("golden/broken/" + name));
    CAPTURE(message);
    CHECK(contains(message, fault));
    CHECK(message.find('\n') == std::string::npos);
    CHECK(message.starts_with(shared_path("golden/broken/" + name).string()));
  }
  CHECK(!std::filesystem::exists("pwned"));
}

TEST_CASE("faults that show only beside the config are found by read_tensor") {
  if (!have_shared("golden/broken") || !have_shared("golden/tiny-bert-classification")) return;
  auto reference = open_weights(shared_path("golden/tiny-bert-classification"));
  for (const auto& broken : kFaultsOfOneTensor) {
    const auto& name = broken.first;
    const auto& expected = broken.second;
    CAPTURE(name);
    auto source = open_weights(shared_path("golden/broken/" + name));
    std::vector<std::string> messages;
    for (const WeightInfo& wanted : reference->tensors()) {
      std::vector<float> values(static_cast<size_t>(count_of(wanted)));
      const std::string message = error_line(
          ExitCode::model, [&] { read_tensor(*source, wanted.name, wanted.shape, values.data()); });
      if (!message.empty()) messages.push_back(message);
    }
    REQUIRE(messages.size() == 1);
    CAPTURE(messages[0]);
    CHECK(contains(messages[0], expected.first));
    CHECK(contains(messages[0], expected.second));
    CHECK(messages[0].find('\n') == std::string::npos);
  }
}
