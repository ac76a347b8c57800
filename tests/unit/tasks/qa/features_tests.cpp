// Windows of questions compared with Hugging Face's, and their rules.
#include <doctest/doctest.h>

#include <fstream>
#include <limits>
#include <map>

#include "core/sha256.h"
#include "golden.h"
#include "tasks/qa/features.h"
#include "tokenizer/encoding.h"

namespace finetune {
namespace {

using test::have_shared;
using test::read_json;
using test::shared_path;
using test::source_path;

// Every character but the space is a token; its id is its byte value.
class CharacterTokenizer : public Tokenizer {
 public:
  CharacterTokenizer() { special_ = {1, 2, 0, 3, -1}; }
  void encode(std::string_view text, TokenBuffer& out) const override {
    for (uint32_t i = 0; i < text.size(); ++i) {
      if (text[i] == ' ') continue;
      out.ids.push_back(static_cast<unsigned char>(text[i]));
      out.begins.push_back(i);
      out.ends.push_back(i + 1);
    }
  }
  int32_t vocabulary_size() const override { return 256; }
  std::string_view token(int32_t) const override { return ""; }
  bool continues_word(int32_t) const override { return false; }
  std::vector<std::filesystem::path> files() const override { return {}; }
};

SquadData one_question(std::string question, std::string context, std::string answer = "",
                       int64_t start = -1) {
  SquadData data;
  data.contexts = {std::move(context)};
  SquadQuestion& only = data.questions.emplace_back();
  only.id = "id";
  only.question = std::move(question);
  if (start < 0) return data;
  const auto end = start + int64_t(answer.size());
  only.answers = {{std::move(answer), start, end}};
  only.found = TargetFound::first_answer;
  only.target = 0;
  return data;
}

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

QaWindows windows_of(const SquadData& data, int64_t max_length, int64_t doc_stride) {
  return make_windows(data, 0, int64_t(data.questions.size()), CharacterTokenizer(),
                      {max_length, doc_stride});
}

// Every token of the context is in a window, neighbours overlap, and no window is too long.
void check_cover(const QaWindows& windows, int64_t context_length, int64_t max_length,
                 int64_t overlap) {
  int64_t reached = 0;
  for (int64_t w = 0; w < windows.windows(); ++w) {
    CHECK(windows.set.samples.length(w) <= max_length);
    int64_t first = windows.first_token[size_t(w)];
    CHECK(first == (w == 0 ? 0 : reached - overlap));
    reached = first + windows.context_length(w);
  }
  CHECK(reached == context_length);
}

TEST_CASE("the target answer gives the positions; an unknown place gives none") {
  SquadData data = one_question("ab", "c d e", "c", 0);
  SquadQuestion& question = data.questions[0];
  question.answers.push_back({"d e", 2, 5});
  question.found = TargetFound::later_answer;
  question.target = 1;
  QaWindows windows = windows_of(data, 16, 4);
  CHECK(windows.starts == std::vector<int32_t>{5});
  CHECK(windows.ends == std::vector<int32_t>{6});
  question.found = TargetFound::nowhere;
  question.target = -1;
  windows = windows_of(data, 16, 4);
  CHECK(windows.starts == std::vector<int32_t>{QaWindows::kUnknown});
  CHECK(windows.ends == std::vector<int32_t>{QaWindows::kUnknown});
}

TEST_CASE("a question and its windows") {
  SquadData data = one_question(" \u3000 ab", "c d e", "d e", 2);
  QaWindows windows = windows_of(data, 16, 4);
  REQUIRE(windows.windows() == 1);
  CHECK(windows.set.samples.ids == std::vector<int32_t>{1, 'a', 'b', 2, 'c', 'd', 'e', 2});
  CHECK(windows.set.samples.second[0] == 4);
  CHECK(windows.starts[0] == 5);
  CHECK(windows.ends[0] == 6);
  CHECK(windows.context_length(0) == 3);
}

TEST_CASE("an answer counts where a window holds all of it") {
  std::string context = "abcdefghijklmnopqrstuvwxyz";
  SquadData data = one_question("ab", context, "klm", 10);
  QaWindows windows = windows_of(data, 16, 4);  // 11 tokens of context, 7 more per window
  REQUIRE(windows.windows() == 4);
  check_cover(windows, 26, 16, 4);
  CHECK(windows.starts == std::vector<int32_t>{0, 4 + 3, 0, 0});
  CHECK(windows.ends == std::vector<int32_t>{0, 4 + 5, 0, 0});
  // The last token of a window: the start stays on it.
  data = one_question("ab", context, "k", 10);
  windows = windows_of(data, 16, 4);
  CHECK(windows.starts[0] == 4 + 10);
  CHECK(windows.ends[0] == 4 + 10);
  // Inside white space and tokens: the last token that begins before, the first that ends after.
  data = one_question("q", "ab cd", " c", 2);
  windows = windows_of(data, 16, 4);
  CHECK(windows.starts[0] == 3 + 1);
  CHECK(windows.ends[0] == 3 + 2);
}

TEST_CASE("a question too long for its window is cut, an overlap too large reduced") {
  std::string context = repeated("xyz", 40);
  // 29 tokens beside the special ones; a quarter of them, 7, is reserved for the context.
  QaWindows windows = windows_of(one_question(repeated("q", 100), context), 32, 10);
  CHECK(windows.set.truncated == 1);
  CHECK(windows.reduced_strides == 1);
  CHECK(windows.set.samples.second[0] == 22 + 2);
  check_cover(windows, 120, 32, 3);
  // A context that fits needs no cut, whatever the overlap.
  windows = windows_of(one_question(repeated("q", 26), "xyz"), 32, 128);
  CHECK(windows.set.truncated == 0);
  CHECK(windows.reduced_strides == 0);
  CHECK(windows.windows() == 1);
  // An overlap that just fits is kept.
  windows = windows_of(one_question("q", context), 32, 27);
  CHECK(windows.reduced_strides == 0);
  check_cover(windows, 120, 32, 27);
  windows = windows_of(one_question("q", context), 32, 28);
  CHECK(windows.reduced_strides == 1);
  check_cover(windows, 120, 32, 14);
  windows = windows_of(one_question("q", context), 32, std::numeric_limits<int64_t>::max());
  CHECK(windows.reduced_strides == 1);
  check_cover(windows, 120, 32, 14);
  // An empty context.
  windows = windows_of(one_question(repeated("q", 29), " "), 32, 10);
  CHECK(windows.windows() == 1);
  CHECK(windows.context_length(0) == 0);
}

TEST_CASE("a part of the questions has the windows that it has in the whole") {
  SquadData data;
  for (int c = 0; c < 7; ++c)
    data.contexts.push_back(repeated(std::string(1, char('a' + c)), 30 + c));
  for (int q = 0; q < 50; ++q) {
    SquadQuestion& question = data.questions.emplace_back();
    question.id = std::to_string(q);
    question.question = repeated("q", q % 9);
    question.context = uint32_t(q * 3 % 7);
    question.answers = {{"a", q % 20, q % 20 + 1}};
    question.found = TargetFound::first_answer;
    question.target = 0;
  }
  const QaWindows all = windows_of(data, 24, 5);
  const QaWindows part = make_windows(data, 13, 40, CharacterTokenizer(), {24, 5});
  const int64_t first = all.first_window[13];
  REQUIRE(part.windows() == all.first_window[40] - first);
  for (int64_t w = 0; w < part.windows(); ++w) {
    const auto& a = all.set.samples;
    const auto& p = part.set.samples;
    REQUIRE(p.length(w) == a.length(first + w));
    CHECK(std::equal(p.ids.begin() + p.offsets[size_t(w)], p.ids.begin() + p.offsets[size_t(w) + 1],
                     a.ids.begin() + a.offsets[size_t(first + w)]));
    CHECK(part.question[size_t(w)] == all.question[size_t(first + w)]);
    CHECK(part.starts[size_t(w)] == all.starts[size_t(first + w)]);
    CHECK(part.token_begins[size_t(part.token_index(data, w))] ==
          all.token_begins[size_t(all.token_index(data, first + w))]);
  }
}

void check_digest(const JsonValue& golden, const std::string& vocabulary, const std::string& name,
                  const std::filesystem::path& file) {
  CAPTURE(vocabulary);
  CAPTURE(name);
  const JsonValue& expected = golden[concat(vocabulary, " ", name)];
  auto tokenizer = Tokenizer::load(shared_path("tokenizers/" + vocabulary));
  const SquadData data = read_squad({file}, 0, true);
  const QaWindows windows =
      make_windows(data, 0, int64_t(data.questions.size()), *tokenizer, {384, 128});
  CHECK(windows.set.examples == expected["questions"].as<int64_t>());
  CHECK(windows.windows() == expected["features"].as<int64_t>());
  CHECK(windows.set.samples.offsets.back() == expected["tokens"].as<int64_t>());
  Sha256 ids, positions;
  for (int64_t w = 0; w < windows.windows(); ++w) {
    uint32_t length = uint32_t(windows.set.samples.length(w));
    ids.update(&length, 4);
    ids.update(windows.set.samples.ids.data() + windows.set.samples.offsets[size_t(w)],
               size_t(length) * 4);
    positions.update(&windows.starts[size_t(w)], 4);
    positions.update(&windows.ends[size_t(w)], 4);
  }
  CHECK(ids.hex() == expected["sha256_ids"].as<std::string>());
  CHECK(positions.hex() == expected["sha256_positions"].as<std::string>());
}

TEST_CASE("windows of questions equal Hugging Face's, by digest") {
  const auto golden = read_json(shared_path("golden/qa-features-digest.json"));
  for (const char* vocabulary : {"bert-base-uncased", "bert-base-cased"}) {
    for (const char* file : {"data/samples/squad-train.json", "data/samples/squad-dev.json",
                             "tests/golden/qa-postprocess/questions.json"}) {
      check_digest(golden, vocabulary, file, source_path(file));
    }
  }
}

TEST_CASE("windows of whole SQuAD equal Hugging Face's, by digest") {
  if (!have_shared("data/squad/train-v1.1.json")) return;
  const auto golden = read_json(shared_path("golden/qa-features-digest.json"));
  for (const char* vocabulary : {"bert-base-uncased", "bert-base-cased"}) {
    for (const char* file : {"train-v1.1", "dev-v1.1", "dev-v2.0"}) {
      const std::string name = concat("data/squad/", file, ".json");
      check_digest(golden, vocabulary, name, shared_path(name));
    }
  }
}

std::vector<JsonValue> read_lines(const std::filesystem::path& path) {
  std::vector<JsonValue> lines;
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);) lines.push_back(JsonValue::parse(line));
  return lines;
}

// The first windows of `data` against golden ones, one a line.
void check_windows(const SquadData& data, const QaWindows& windows,
                   const std::vector<JsonValue>& lines) {
  REQUIRE(windows.windows() >= int64_t(lines.size()));
  for (size_t w = 0; w < lines.size(); ++w) {
    const JsonValue& line = lines[w];
    CAPTURE(w);
    const SquadQuestion& question = data.questions[windows.question[w]];
    CHECK(question.id == line["id"].as<std::string>());
    const auto& samples = windows.set.samples;
    std::vector<int32_t> ids(samples.ids.begin() + samples.offsets[w],
                             samples.ids.begin() + samples.offsets[w + 1]);
    CHECK(ids == line["ids"].as<std::vector<int32_t>>());
    CHECK(windows.starts[w] == line["start"].as<int32_t>());
    CHECK(windows.ends[w] == line["end"].as<int32_t>());
    const CodePointIndex code_point(data.contexts[question.context]);
    const int64_t token = windows.token_index(data, int64_t(w));
    for (size_t i = 0; i < ids.size(); ++i) {
      const int64_t in_context = int64_t(i) - samples.second[w];
      if (in_context < 0 || in_context >= windows.context_length(int64_t(w))) {
        CHECK(line["offsets"].items()[i].text() == "null");
      } else {
        const JsonArray expected = {code_point(windows.token_begins[size_t(token + in_context)]),
                                    code_point(windows.token_ends[size_t(token + in_context)])};
        CHECK(line["offsets"].items()[i].text() == expected.text());
      }
    }
  }
}

TEST_CASE("windows, offsets and positions of single questions are Hugging Face's") {
  auto tokenizer = Tokenizer::load(shared_path("tokenizers/bert-base-uncased"));
  SquadData data = read_squad({shared_path("golden/qa-features-questions.json")}, 0, true);
  std::map<std::string, size_t> by_id;
  for (size_t q = 0; q < data.questions.size(); ++q) by_id[data.questions[q].id] = q;
  const auto lines = read_lines(shared_path("golden/qa-features.jsonl"));
  REQUIRE(lines.size() >= 30);
  SquadData chosen;
  chosen.contexts = data.contexts;
  for (const auto& line : lines) {
    const auto id = line["id"].as<std::string>().value();
    if (chosen.questions.empty() || chosen.questions.back().id != id) {
      chosen.questions.push_back(data.questions[by_id.at(id)]);
    }
  }
  const QaWindows windows =
      make_windows(chosen, 0, int64_t(chosen.questions.size()), *tokenizer, {384, 128});
  CHECK(windows.windows() == int64_t(lines.size()));
  check_windows(chosen, windows, lines);
  for (size_t w = 0; w < lines.size(); ++w) {
    const auto types = lines[w]["type_ids"].as<std::vector<int32_t>>().value();
    CHECK(std::find(types.begin(), types.end(), 1) - types.begin() ==
          windows.set.samples.second[w]);
  }
}

void check_windows_of(const std::string& encoder) {
  CAPTURE(encoder);
  const std::string model = concat("golden/family/", encoder, "/qa");
  if (!have_shared(model)) return;
  const std::filesystem::path folder = shared_path(model).parent_path();
  auto tokenizer = Tokenizer::load(folder / "qa");
  const SquadData data = read_squad({folder / "trajectory-qa-train.json"}, 0, true);
  const auto lines = read_lines(folder / "qa-features.jsonl");
  REQUIRE(lines.size() == 24);
  const QaWindows windows =
      make_windows(data, 0, int64_t(data.questions.size()), *tokenizer, {96, 32});
  check_windows(data, windows, lines);
}

TEST_CASE("windows with RoBERTa's four special tokens are Hugging Face's") {
  check_windows_of("roberta");
}

TEST_CASE("windows with DeBERTa's sentencepiece model are Hugging Face's") {
  check_windows_of("deberta-v3");
}

TEST_CASE("windows with MPNet's four special tokens around word pieces are Hugging Face's") {
  check_windows_of("mpnet");
}

// Their tokens begin with the space before the word.
TEST_CASE("windows with XLM-RoBERTa's sentencepiece model are Hugging Face's") {
  check_windows_of("xlm-roberta");
}

TEST_CASE("windows with ALBERT's sentencepiece model are Hugging Face's") {
  check_windows_of("albert");
}

}  // namespace
}  // namespace finetune
