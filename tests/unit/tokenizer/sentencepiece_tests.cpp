// ALBERT's sentencepiece ids and offsets, options and refusals.
#include "../contains.h"
#include "golden_lines.h"
#include "tokenizer/sentencepiece/charsmap.h"
#include "tokenizer/sentencepiece/sentencepiece_text.h"

namespace finetune {

using test::contains;
namespace {

using test::have_shared;
using test::shared_path;

constexpr const char* kAlbert = "tokenizers/albert-base-v2";

// As of another model with such a vocabulary: ALBERT's own is Unigram (unigram_tests.cpp).
std::unique_ptr<Tokenizer> load_library_form() {
  test::TemporaryDirectory directory;
  for (const char* file : {"spiece.model", "tokenizer_config.json", "special_tokens_map.json"}) {
    directory.copy(shared_path(concat(kAlbert, "/", file)));
  }
  return Tokenizer::load(directory.path());
}

TEST_CASE("golden ids of ALBERT") {
  if (!have_shared("golden/tokenization-sentencepiece") || !have_shared(kAlbert)) return;
  auto tokenizer = load_library_form();
  const SpecialTokens& special = tokenizer->special();
  size_t lines = test::for_each_json_line(
      shared_path("golden/tokenization-sentencepiece/albert-base-v2.jsonl"),
      [&](const simdjson::dom::object& line) {
        std::string_view text = line["text"].get_string();
        CAPTURE(text);
        TokenBuffer buffer;
        tokenizer->encode(text, buffer);
        std::vector<int32_t> ids;
        append_single(special, buffer.ids.data(), int64_t(buffer.size()), ids);
        CHECK(ids == test::integers(line["ids"]));
        uint32_t before = 0;
        for (size_t i = 0; i < buffer.size(); ++i) {
          CHECK(buffer.begins[i] <= buffer.ends[i]);
          CHECK(buffer.ends[i] <= text.size());
          CHECK(buffer.begins[i] >= before);
          before = buffer.begins[i];
        }
      });
  CHECK(lines == 462);
}

// A model that only has a map: a trie of these units, and the texts that it leads to.
std::string model_with_map(std::vector<uint32_t> units, std::string_view texts) {
  const auto bytes_of = [](uint32_t number) {
    return std::string(reinterpret_cast<const char*>(&number), sizeof number);
  };
  std::string map = bytes_of(uint32_t(units.size() * sizeof(uint32_t)));
  for (uint32_t unit : units) map += bytes_of(unit);
  map += texts;
  const auto field = [](char tag, const std::string& content) {
    std::string out{tag};
    size_t size = content.size();
    for (; size > 127; size >>= 7) out += char((size & 127) | 128);
    return out + char(size) + content;
  };
  return field('\x1A', field('\x12', map));
}

TEST_CASE("a character map stays within its bounds") {
  using namespace std::string_view_literals;
  constexpr uint32_t kHasLeaf = 1 << 8, kWide = 1 << 9, kValue = uint32_t{1} << 31;
  const std::vector<uint32_t> units(256);
  const auto with = [&](size_t at, uint32_t unit, std::vector<uint32_t> changed) {
    changed[at] = unit;
    return changed;
  };
  CHECK(has_sound_charsmaps(""));
  CHECK(has_sound_charsmaps(model_with_map(units, "a\0"sv)));
  CHECK(has_sound_charsmaps(model_with_map(with(7, 255 << 10, units), "a\0"sv)));
  CHECK_FALSE(has_sound_charsmaps(model_with_map(with(7, 256 << 10, units), "a\0"sv)));
  CHECK_FALSE(has_sound_charsmaps(model_with_map(with(7, 1 << 10 | kWide, units), "a\0"sv)));
  CHECK(has_sound_charsmaps(model_with_map(with(7, kValue | 256 << 10, units), "a\0"sv)));
  const auto leaf = with(7, 1 << 10 | kHasLeaf, units);  // unit 7 ^ 1 locates its text
  CHECK(has_sound_charsmaps(model_with_map(with(6, kValue | 1, leaf), "a\0"sv)));
  CHECK_FALSE(has_sound_charsmaps(model_with_map(with(6, kValue | 2, leaf), "a\0"sv)));
  CHECK_FALSE(has_sound_charsmaps(model_with_map(units, "a")));  // not terminated
  CHECK_FALSE(has_sound_charsmaps(model_with_map(units, "")));
  CHECK_FALSE(has_sound_charsmaps(model_with_map(std::vector<uint32_t>(255), "a\0"sv)));
  CHECK_FALSE(has_sound_charsmaps(model_with_map({}, "a\0"sv)));
  const std::string whole = model_with_map(units, "a\0"sv);
  CHECK_FALSE(has_sound_charsmaps(whole.substr(0, whole.size() - 1)));
}

TEST_CASE("offsets point into the original text") {
  if (!have_shared(kAlbert)) return;
  auto tokenizer = load_library_form();
  auto surfaces = [&](std::string_view text) {
    TokenBuffer buffer;
    tokenizer->encode(text, buffer);
    std::string out;
    for (size_t i = 0; i < buffer.size(); ++i) {
      out += concat(i ? "|" : "", text.substr(buffer.begins[i], buffer.ends[i] - buffer.begins[i]));
    }
    return out;
  };
  CHECK(surfaces("Hello  World") == "Hello|World");
  CHECK(surfaces("  the caf\u00e9, na\u00efve\tend ") == "the|caf\u00e9|,|na\u00efve|end");
  CHECK(surfaces("``yes''") == "|``|yes|''");  // the first piece is a lone word mark
  // A piece of digits and a comma is split.
  CHECK(surfaces("in 2019, we") == "in|2019|,|we");
  CHECK(surfaces("a [MASK] b[SEP]") == "a| [MASK]|b|[SEP]");
  CHECK(surfaces("") == "");
  CHECK(surfaces(" \n ") == "");
}

TEST_CASE("preparation of text") {
  auto prepared = [](std::string_view text, SentencePieceOptions options) {
    PreparedText out;
    prepare(text, 0, uint32_t(text.size()), options, out);
    CHECK(out.begins.size() == out.text.size());
    CHECK(out.ends.size() == out.text.size());
    return out.text;
  };
  CHECK(prepared(" A\u00a0\x1c B\u0130 ", {}) == "a bi");
  CHECK(prepared("\uff21\u00bd ``x''''", {}) == "a1\u20442 \"x\"\"");
  CHECK(prepared("\u00c9  t", {false, true, true}) == "\u00c9 t");
  CHECK(prepared("\u00c9  t", {true, false, false}) == "e  t");
  CHECK(prepared(" \u00c9  t", {false, false, true}) == " \u00c9  t");
}

TEST_CASE("options come from tokenizer_config.json") {
  if (!have_shared(kAlbert)) return;
  auto ids = [](std::string_view config, std::string_view text) {
    test::TemporaryDirectory directory;
    directory.copy(shared_path(concat(kAlbert, "/spiece.model")));
    if (!config.empty()) directory.write("tokenizer_config.json", config);
    return test::encode(*Tokenizer::load(directory.path()), text).ids;
  };
  auto whole = load_library_form();
  std::string_view text = "Caf\u00e9 in 2019, [MASK]";
  CHECK(ids("", text) == test::encode(*whole, text).ids);
  CHECK(ids("{\"do_lower_case\":false}", "Hello") != ids("", "Hello"));
  CHECK(ids("{\"keep_accents\":true}", "caf\u00e9") != ids("", "caf\u00e9"));
  CHECK(ids("{\"keep_accents\":true}", "cafe") == ids("", "cafe"));
}

TEST_CASE("models without [CLS] and [SEP]") {
  if (!have_shared("tokenizers/sentencepiece-tests")) return;
  test::TemporaryDirectory directory;
  fs::copy_file(shared_path("tokenizers/sentencepiece-tests/test_model.model"),
                directory.path() / "tokenizer.model");
  auto tokenizer = Tokenizer::load(directory.path());
  CHECK(tokenizer->token(tokenizer->special().cls) == "<s>");
  CHECK(tokenizer->token(tokenizer->special().sep) == "</s>");
  directory.write("tokenizer_config.json", "{\"tokenizer_class\":\"MBartTokenizer\"}");
  CHECK(test::model_error_of([&] { Tokenizer::load(directory.path()); }).find("MBart") !=
        std::string::npos);
  directory.write("tokenizer_config.json", "{\"cls_token\":\"<nothing>\"}");
  CHECK(test::model_error_of([&] { Tokenizer::load(directory.path()); }).find("[CLS]") !=
        std::string::npos);
}

TEST_CASE("a file that is not a sentencepiece model") {
  test::TemporaryDirectory directory;
  for (std::string_view bytes : {std::string_view(""), std::string_view("no model"),
                                 std::string_view("\x0a\x05\x0a\x03"
                                                  "abc")}) {
    directory.write("spiece.model", bytes);
    std::string message = test::model_error_of([&] { Tokenizer::load(directory.path()); });
    CHECK(contains(message, "spiece.model"));
  }
}

}  // namespace
}  // namespace finetune
