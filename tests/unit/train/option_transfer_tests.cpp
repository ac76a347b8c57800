// Every option arrives unchanged at another process.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>

#include "train/options/option_values.h"
#include "train/options/table/option_table.h"

using namespace finetune;

namespace {

// Stores a value that is not the default, and as awkward as the type allows.
struct Change {
  int number;  // of the option

  void operator()(std::string* to) const { *to += " \"\\\n\t Ünï/" + std::to_string(number); }
  void operator()(std::vector<std::string>* to) const {
    *to = {"", "a,b", "Café.csv", "é" + std::to_string(number)};
  }
  void operator()(double* to) const { *to = 0.1 + *to + number; }
  void operator()(std::optional<double>* to) const { *to = 1.0 / 3 + number; }
  void operator()(int64_t* to) const { *to = (int64_t{1} << 62) + number; }
  void operator()(std::optional<int64_t>* to) const { *to = -1 - number; }
  void operator()(uint64_t* to) const { *to = ~uint64_t{0} - uint64_t(number); }
  void operator()(bool* to) const { *to = !*to; }
};

struct Bytes {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(const std::string& v) const { return v; }
  std::string operator()(const std::vector<std::string>& v) const {
    std::string out;
    for (const auto& one : v) out += std::to_string(one.size()) + ":" + one;
    return out;
  }
  template <typename T>
  std::string operator()(const T& v) const {
    return "=" + std::string(reinterpret_cast<const char*>(&v), sizeof v);
  }
};

std::map<std::string, std::string> values_of(const TrainOptions& options) {
  std::map<std::string, std::string> out;
  for (const TrainOption& option : train_options()) {
    out[std::string(option.info.name)] = std::visit(Bytes(), option.value_in(options));
  }
  return out;
}

}  // namespace

TEST_CASE("every option arrives at the other process as it was") {
  TrainOptions options;
  CHECK(values_of(options_from_text(options_to_text(options))) == values_of(options));
  const auto before = values_of(options);
  int number = 0;
  for (const TrainOption& option : train_options()) {
    std::visit(Change{number++}, option.in(options));
  }
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
