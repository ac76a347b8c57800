// Ids and offsets compared with Hugging Face tokenizers 0.22.2 and transformers 4.57.1.
#include <map>

#include "core/threads/parallel.h"
#include "golden_lines.h"

namespace finetune {
namespace {

using test::Encoded;
using test::have_shared;
using test::shared_path;

struct Golden {
  std::string text;
  Encoded expected;  // special tokens left out
};

std::vector<Golden> read_golden(const std::string& name) {
  std::vector<Golden> out;
  test::for_each_json_line(
      shared_path("golden/tokenization/" + name + ".jsonl"),
      [&](const simdjson::dom::object& line) {
        Golden golden;
        golden.text = std::string(line["text"].get_string().value());
        golden.expected.ids = test::integers(line["ids"]);
        for (auto pair : line["offsets"].get_array()) {
          auto both = test::integers(pair);
          golden.expected.offsets.push_back({uint32_t(both[0]), uint32_t(both[1])});
        }
        auto trim_ends = [](auto& values) {
          values.erase(values.begin());
          values.pop_back();
        };
        trim_ends(golden.expected.ids);
        trim_ends(golden.expected.offsets);
        out.push_back(std::move(golden));
      });
  return out;
}

void check_golden(const Tokenizer& tokenizer, const std::vector<Golden>& golden) {
  REQUIRE(golden.size() == 464);
  for (const Golden& line : golden) {
    CAPTURE(line.text);
    Encoded ours = test::encode(tokenizer, line.text);
    CHECK(ours.ids == line.expected.ids);
    CHECK(ours.offsets == line.expected.offsets);
  }
}

// Those in tests/golden; the multilingual ones have megabytes.
const std::vector<std::string> kVocabularies = {"bert-base-uncased", "bert-base-cased",
                                                "bert-base-chinese", "kcbert-base"};
const std::vector<std::string> kLargeVocabularies = {"bert-base-multilingual-cased",
                                                     "bert-base-multilingual-uncased"};

void check_with(const std::string& name, const std::vector<std::string>& files) {
  CAPTURE(name);
  test::TemporaryDirectory directory;
  for (const std::string& file : files) {
    directory.copy(shared_path(concat("tokenizers/", name, "/", file)));
  }
  check_golden(*Tokenizer::load(directory.path()), read_golden(name));
}

TEST_CASE("golden tokenization, from tokenizer.json") {
  for (const std::string& name : kVocabularies) {
    CAPTURE(name);
    check_golden(*Tokenizer::load(shared_path("tokenizers/" + name)), read_golden(name));
  }
}

TEST_CASE("golden tokenization, from tokenizer.json alone") {
  for (const std::string& name : kVocabularies) check_with(name, {"tokenizer.json"});
}

TEST_CASE("golden tokenization, from vocab.txt and tokenizer_config.json") {
  for (const std::string& name : kVocabularies) {
    check_with(name, {"vocab.txt", "tokenizer_config.json"});
  }
}

TEST_CASE("golden tokenization, from vocab.txt alone: lower case") {
  check_with("bert-base-uncased", {"vocab.txt"});
}

TEST_CASE("golden tokenization with the multilingual vocabularies, from each of their files") {
  if (!have_shared("tokenizers/bert-base-multilingual-cased")) return;
  for (const std::string& name : kLargeVocabularies) {
    CAPTURE(name);
    check_golden(*Tokenizer::load(shared_path("tokenizers/" + name)), read_golden(name));
    check_with(name, {"tokenizer.json"});
    check_with(name, {"vocab.txt", "tokenizer_config.json"});
  }
  check_with("bert-base-multilingual-uncased", {"vocab.txt"});
  check_golden(*Tokenizer::load(shared_path("tokenizers/bert-base-multilingual-cased-hf")),
               read_golden("bert-base-multilingual-cased"));
}

TEST_CASE("the same from several threads") {
  auto tokenizer = Tokenizer::load(shared_path("tokenizers/bert-base-uncased"));
  auto golden = read_golden("bert-base-uncased");
  int before = threads();
  set_threads(4);
  constexpr size_t kRounds = 8;
  std::vector<char> equal(golden.size() * kRounds, 0);
  parallel_for(int64_t(equal.size()), [&](int64_t i) {
    const Golden& line = golden[size_t(i) % golden.size()];
    equal[size_t(i)] = test::encode(*tokenizer, line.text) == line.expected;
  });
  set_threads(before);
  CHECK(std::count(equal.begin(), equal.end(), 1) == int64_t(equal.size()));
}

// 46 strings in many languages with the ids of a second implementation's reference file.
TEST_CASE("bge-small-en against llama.cpp's reference ids") {
  if (!have_shared("tokenizers/gguf-vocab/ggml-vocab-bert-bge.gguf.inp")) return;
  auto tokenizer = Tokenizer::load(shared_path("tokenizers/bge-small-en"));
  std::string texts =
      read_text_file(shared_path("tokenizers/gguf-vocab/ggml-vocab-bert-bge.gguf.inp"));
  std::ifstream expected(shared_path("tokenizers/gguf-vocab/ggml-vocab-bert-bge.gguf.out"));
  constexpr std::string_view kBetween = "\n__ggml_vocab_test__\n";
  size_t count = 0;
  for (size_t begin = 0; begin < texts.size(); ++count) {
    size_t end = texts.find(kBetween, begin);
    std::string text = texts.substr(begin, end - begin);
    begin = end == std::string::npos ? texts.size() : end + kBetween.size();
    std::string line, ours;
    REQUIRE(std::getline(expected, line));
    for (int32_t id : test::encode(*tokenizer, text).ids) ours += concat(" ", id);
    CAPTURE(text);
    CHECK(ours == line);
  }
  CHECK(count == 46);
}

// 30 SQuAD questions with their windows at 384/128.
TEST_CASE("golden windows of questions and contexts") {
  struct Window {
    std::vector<int32_t> ids, types;
    test::Offsets offsets;  // (UINT32_MAX, UINT32_MAX) where the file has null
  };
  std::map<std::string, std::vector<Window>> golden;
  test::for_each_json_line(
      shared_path("golden/qa-features.jsonl"), [&](const simdjson::dom::object& line) {
        Window window{test::integers(line["ids"]), test::integers(line["type_ids"]), {}};
        for (auto pair : line["offsets"].get_array()) {
          if (pair.is_null()) {
            window.offsets.push_back({UINT32_MAX, UINT32_MAX});
            continue;
          }
          auto both = test::integers(pair);
          window.offsets.push_back({uint32_t(both[0]), uint32_t(both[1])});
        }
        golden[std::string(line["id"].get_string().value())].push_back(std::move(window));
      });
  REQUIRE(golden.size() == 30);

  auto tokenizer = Tokenizer::load(shared_path("tokenizers/bert-base-uncased"));
  simdjson::dom::parser parser;
  simdjson::dom::element root =
      parser.load(shared_path("golden/qa-features-questions.json").string());
  size_t seen = 0;
  for (auto article : root["data"].get_array()) {
    for (auto paragraph : article["paragraphs"].get_array()) {
      for (auto question : paragraph["qas"].get_array()) {
        auto it = golden.find(std::string(question["id"].get_string().value()));
        if (it == golden.end()) continue;
        ++seen;
        CAPTURE(it->first);
        std::string_view context = paragraph["context"].get_string();
        std::string_view text = question["question"].get_string();
        while (!text.empty() && text[0] == ' ') text.remove_prefix(1);
        TokenBuffer q, c;
        tokenizer->encode(text, q);
        tokenizer->encode(context, c);
        CodePointIndex index(context);
        auto ranges = windows(int64_t(c.size()),
                              384 - tokenizer->special().around_pair() - int64_t(q.size()), 128);
        REQUIRE(ranges.size() == it->second.size());
        for (size_t w = 0; w < ranges.size(); ++w) {
          const Window& expected = it->second[w];
          std::vector<int32_t> ids;
          uint32_t second =
              append_pair(tokenizer->special(), q.ids.data(), int64_t(q.size()),
                          c.ids.data() + ranges[w].begin, ranges[w].end - ranges[w].begin, ids);
          CHECK(ids == expected.ids);
          test::Offsets offsets(ids.size(), {UINT32_MAX, UINT32_MAX});
          std::vector<int32_t> types(ids.size(), 0);
          for (size_t i = second; i < ids.size(); ++i) types[i] = 1;
          for (size_t i = second; i + 1 < ids.size(); ++i) {
            size_t token = size_t(ranges[w].begin) + i - second;
            offsets[i] = {index(c.begins[token]), index(c.ends[token])};
          }
          CHECK(types == expected.types);
          CHECK(offsets == expected.offsets);
        }
      }
    }
  }
  CHECK(seen == golden.size());
}

}  // namespace
}  // namespace finetune
