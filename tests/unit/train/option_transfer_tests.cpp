// Every option arrives at another process as it was.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>
#include <type_traits>

#include "train/options/option_transfer.h"

using namespace finetune;

namespace {

// A value that is not the default, and as awkward as the type allows.
struct Change {
  int number = 0;  // of the option

  void operator()(const OptionInfo&, std::string& member) {
    member += " \"\\\n\t Ünï/" + std::to_string(number++);
  }
  void operator()(const OptionInfo&, std::vector<std::string>& member) {
    member = {"", "a,b", "Café.csv", "é" + std::to_string(number++)};
  }
  void operator()(const OptionInfo&, double& member) { member = 0.1 + member + number++; }
  void operator()(const OptionInfo&, std::optional<double>& member) { member = 1.0 / 3 + number++; }
  void operator()(const OptionInfo&, int64_t& member) { member = (int64_t{1} << 62) + number++; }
  void operator()(const OptionInfo&, std::optional<int64_t>& member) { member = -1 - number++; }
  void operator()(const OptionInfo&, uint64_t& member) {
    member = ~uint64_t{0} - uint64_t(number++);
  }
  void operator()(const OptionInfo&, bool& member) { member = !member; }
};

std::string bytes(const std::string& v) {
  return v;
}
std::string bytes(const std::vector<std::string>& v) {
  std::string out;
  for (const auto& one : v) out += std::to_string(one.size()) + ":" + one;
  return out;
}
template <typename T>
requires std::is_arithmetic_v<T> std::string bytes(T v) {
  return {reinterpret_cast<const char*>(&v), sizeof v};
}
template <typename T>
std::string bytes(const std::optional<T>& v) {
  return v ? "=" + bytes(*v) : "";
}

std::map<std::string, std::string> values_of(const TrainOptions& options) {
  std::map<std::string, std::string> out;
  for_each_option(options, [&](const OptionInfo& info, const auto& member) {
    out[std::string(info.name)] = bytes(member);
  });
  return out;
}

}  // namespace

TEST_CASE("every option arrives at the other process as it was") {
  TrainOptions options;
  CHECK(values_of(options_from_text(options_to_text(options))) == values_of(options));
  const auto before = values_of(options);
  for_each_option(options, Change());
  const auto changed = values_of(options);
  for (const auto& option : changed) {
    CAPTURE(option.first);
    CHECK(option.second != before.at(option.first));
  }
  const auto arrived = values_of(options_from_text(options_to_text(options)));
  for (const auto& option : changed) {
    CAPTURE(option.first);
    CHECK((arrived.at(option.first) == option.second));
  }
}

TEST_CASE("numbers arrive to the last bit") {
  TrainOptions options;
  options.null_threshold = -1.7976931348623157e308;
  options.dropout = -0.0;
  options.learning_rate = 5e-324;
  CHECK(values_of(options_from_text(options_to_text(options))) == values_of(options));
}

TEST_CASE("options that differ have different texts") {
  TrainOptions options, other;
  options.learning_rate = 0.1;
  other.learning_rate = std::nextafter(0.1, 1.0);
  CHECK(options_to_text(options) != options_to_text(other));
  CHECK(options_to_text(options) == options_to_text(TrainOptions(options)));
}
