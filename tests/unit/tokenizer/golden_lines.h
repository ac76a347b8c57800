// Compares tokenizers with golden files of JSON Lines.
#pragma once

#include <simdjson.h>

#include "support.h"

namespace finetune::test {

// Calls body(object) for every line of a JSON Lines file; returns their number.
template <typename Body>
size_t for_each_json_line(const fs::path& path, Body&& body) {
  simdjson::dom::parser parser;
  std::ifstream file(path);
  std::string line;
  size_t count = 0;
  while (std::getline(file, line)) {
    simdjson::dom::object object = parser.parse(line).get_object();
    body(object);
    ++count;
  }
  return count;
}

inline std::vector<int32_t> integers(simdjson::dom::element array) {
  std::vector<int32_t> out;
  for (auto value : array.get_array()) out.push_back(int32_t(value.get_int64()));
  return out;
}

// Compares with a file of texts; ids and offsets there have special tokens at both ends.
inline void check_golden_file(const fs::path& model, const std::string& golden, size_t count) {
  CAPTURE(golden);
  const auto tokenizer = Tokenizer::load(model);
  const size_t read =
      for_each_json_line(shared_path(golden), [&](const simdjson::dom::object& line) {
        const std::string text(line["text"].get_string().value());
        CAPTURE(text);
        const Encoded ours = encode(*tokenizer, text);
        std::vector<int32_t> ids{tokenizer->special().cls};
        ids.insert(ids.end(), ours.ids.begin(), ours.ids.end());
        ids.push_back(tokenizer->special().sep);
        CHECK(ids == integers(line["ids"]));
        Offsets offsets{{0, 0}};
        offsets.insert(offsets.end(), ours.offsets.begin(), ours.offsets.end());
        offsets.push_back({0, 0});
        Offsets expected;
        for (auto pair : line["offsets"].get_array()) {
          const auto both = integers(pair);
          expected.push_back({uint32_t(both[0]), uint32_t(both[1])});
        }
        CHECK(offsets == expected);
      });
  CHECK(read == count);
}

// Pairs and windows of shared/golden/family with the vocabulary of this name.
inline void check_golden_pairs(const Tokenizer& tokenizer, std::string_view vocabulary,
                               size_t count) {
  const SpecialTokens& special = tokenizer.special();
  size_t seen = 0;
  for_each_json_line(
      shared_path("golden/family/tokenization/pairs.jsonl"),
      [&](const simdjson::dom::object& line) {
        if (line["vocabulary"].get_string().value() != vocabulary) return;
        ++seen;
        // transformers takes an empty second text for none.
        if (line["b"].get_string().value().empty()) return;
        TokenBuffer a, b;
        tokenizer.encode(line["a"].get_string(), a);
        tokenizer.encode(line["b"].get_string(), b);
        const int64_t budget = line["max_length"].get_int64().value() - special.around_pair();
        TokenRange second{0, int64_t(b.size())};
        int64_t first = int64_t(a.size());
        if (line["how"].get_string().value() == "longest_first") {
          const PairLengths kept = truncate_longest_first(first, second.end, budget);
          first = kept.first;
          second.end = kept.second;
        } else {
          const auto ranges = windows(second.end, budget - first, line["stride"].get_int64());
          second = ranges.at(size_t(line["window"].get_int64().value()));
        }
        std::vector<int32_t> ids;
        const uint32_t begin =
            append_pair(special, a.ids.data(), first, b.ids.data() + second.begin,
                        second.end - second.begin, ids);
        CHECK(ids == integers(line["ids"]));
        CHECK(begin == first + 1 + special.separators);
      });
  CHECK(seen == count);
}

}  // namespace finetune::test
