// WordPiece: corner cases, with the values of tokenizers 0.22.2 for the same input.
#include <simdjson.h>

#include "../contains.h"
#include "support.h"

namespace finetune {

using test::contains;
namespace {

using test::Encoded;
using test::have_shared;
using test::shared_path;
using test::TemporaryDirectory;

constexpr const char* kUncased = "tokenizers/bert-base-uncased";

struct Case {
  std::string text;
  Encoded expected;
};

void check(const Tokenizer& tokenizer, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    CAPTURE(c.text);
    Encoded ours = test::encode(tokenizer, c.text);
    CHECK(ours.ids == c.expected.ids);
    CHECK(ours.offsets == c.expected.offsets);
  }
}

TEST_CASE("offsets into the original text") {
  if (!have_shared(kUncased)) return;
  auto tokenizer = Tokenizer::load(shared_path(kUncased));
  check(*tokenizer,
        {{"caf\u00e9", {{7668}, {{0, 4}}}},
         {"cafe\u0301", {{7668}, {{0, 4}}}},
         {"\u200bhi\u200b.", {{7632, 1012}, {{1, 3}, {4, 5}}}},
         {"a\x0b"
          "b",
          {{11113}, {{0, 3}}}},
         {"a\u0301\u0323b", {{11113}, {{0, 4}}}},
         {"\u4e2d\u0301x", {{1746, 1060}, {{0, 1}, {2, 3}}}},
         {"\uac01\ud558",
          {{1455, 30006, 30020, 30005, 30006}, {{0, 1}, {0, 1}, {0, 1}, {1, 2}, {1, 2}}}},
         {"a\u2260b", {{1037, 1027, 1038}, {{0, 1}, {1, 2}, {2, 3}}}},
         {"\u2028x\u0085y", {{1060, 2100}, {{1, 2}, {3, 4}}}},
         {"\ufb01ne", {{1984, 2638}, {{0, 1}, {1, 3}}}},
         {"", {{}, {}}},
         {" ", {{}, {}}},
         {"\ufffdx", {{1060}, {{1, 2}}}},
         {"a\U0002B830b", {{100}, {{0, 3}}}},
         {"foo[MASK]bar", {{29379, 103, 3347}, {{0, 3}, {3, 9}, {9, 12}}}},
         {"[mask]", {{1031, 7308, 1033}, {{0, 1}, {1, 5}, {5, 6}}}}});
}

TEST_CASE("words of 100 characters are cut, longer ones are unknown") {
  if (!have_shared(kUncased)) return;
  auto tokenizer = Tokenizer::load(shared_path(kUncased));
  Encoded hundred = test::encode(*tokenizer, std::string(100, 'x'));
  CHECK(hundred.ids.size() == 50);
  CHECK(hundred.ids[0] == 22038);
  CHECK(hundred.ids[1] == 20348);
  CHECK(test::encode(*tokenizer, std::string(101, 'x')) == Encoded{{100}, {{0, 101}}});
  std::string accents;
  for (int i = 0; i < 101; ++i) accents += "\u00e9";
  CHECK(test::encode(*tokenizer, accents) == Encoded{{100}, {{0, 101}}});
  // A megabyte without a space is one word too.
  CHECK(test::encode(*tokenizer, std::string(1 << 20, 'x')).ids == std::vector<int32_t>{100});
}

TEST_CASE("bytes that are not UTF-8 count as U+FFFD and are dropped") {
  if (!have_shared(kUncased)) return;
  auto tokenizer = Tokenizer::load(shared_path(kUncased));
  TokenBuffer out;
  tokenizer->encode(
      "a\xFF"
      "b \xE4\xB8 hi\x80",
      out);
  CHECK(out.ids == std::vector<int32_t>{11113, 7632});
  CHECK(out.begins == std::vector<uint32_t>{0, 7});
  CHECK(out.ends == std::vector<uint32_t>{3, 9});
}

TEST_CASE("encode appends") {
  if (!have_shared(kUncased)) return;
  auto tokenizer = Tokenizer::load(shared_path(kUncased));
  TokenBuffer out;
  tokenizer->encode("hi", out);
  tokenizer->encode("xhi", out);
  REQUIRE(out.size() == 3);
  CHECK(out.ids[0] == 7632);
  CHECK(out.begins[1] == 0);
}

TEST_CASE("a tokenizer's properties") {
  if (!have_shared(kUncased)) return;
  auto tokenizer = Tokenizer::load(shared_path(kUncased));
  CHECK(tokenizer->vocabulary_size() == 30522);
  CHECK(tokenizer->token(101) == "[CLS]");
  CHECK(tokenizer->token(-1) == "");
  CHECK(tokenizer->token(30522) == "");
  CHECK(tokenizer->special().cls == 101);
  CHECK(tokenizer->special().sep == 102);
  CHECK(tokenizer->special().pad == 0);
  CHECK(tokenizer->special().unk == 100);
  CHECK(tokenizer->stated().model_max_length == 512);
  CHECK(tokenizer->files().size() == 3);
}

// Adds tokens to bert-base-uncased's tokenizer.json; `edits` replaces text in it.
std::unique_ptr<Tokenizer> edited(const std::vector<std::pair<std::string, std::string>>& edits) {
  TemporaryDirectory directory;
  std::string json = read_text_file(shared_path(concat(kUncased, "/tokenizer.json")));
  for (const auto& [from, to] : edits) {
    size_t at = json.find(from);
    REQUIRE(at != std::string::npos);
    json.replace(at, from.size(), to);
  }
  directory.write("tokenizer.json", json);
  return Tokenizer::load(directory.path());
}

TEST_CASE("added tokens: lstrip, rstrip, single_word, normalized, longest") {
  if (!have_shared(kUncased)) return;
  std::string added;
  int id = 30522;
  auto add = [&](const char* content, const char* set) {
    added += concat("{\"id\":", id++, ",\"content\":\"", content, "\",\"special\":false");
    for (std::string flag : {"single_word", "lstrip", "rstrip", "normalized"}) {
      added += concat(",\"", flag, "\":", contains(set, flag));
    }
    added += "},";
  };
  add("Foo Bar", "normalized");
  add("<L>", "lstrip");
  add("<R>", "rstrip");
  add("<W>", "single_word");
  add("<LL>", "");
  auto raw_only = edited({{"\"added_tokens\":[", "\"added_tokens\":[" + added}});
  add("\u00c9t\u00e9", "single_word normalized");
  auto tokenizer = edited({{"\"added_tokens\":[", "\"added_tokens\":[" + added}});
  CHECK(tokenizer->vocabulary_size() == 30528);
  CHECK(tokenizer->token(30523) == "<L>");
  check(*tokenizer,
        {{"a  <L> b", {{1037, 30523, 1038}, {{0, 1}, {1, 6}, {7, 8}}}},
         {"a \u3000<R>  \n b", {{1037, 30524, 1038}, {{0, 1}, {3, 10}, {10, 11}}}},
         {"a<W>b <W> c_<W>",
          {{1037, 1026, 1059, 1028, 1038, 30525, 1039, 1035, 1026, 1059, 1028},
           {{0, 1},
            {1, 2},
            {2, 3},
            {3, 4},
            {4, 5},
            {6, 9},
            {10, 11},
            {11, 12},
            {12, 13},
            {13, 14},
            {14, 15}}}},
         {"<LL><L>", {{30526, 30523}, {{0, 4}, {4, 7}}}},
         {"x foo BAR y fooBAR",
          {{1060, 30522, 1061, 29379, 8237}, {{0, 1}, {2, 9}, {10, 11}, {12, 15}, {15, 18}}}},
         {"\u00e9t\u00e9 \u00c9T\u00c9 \u00e9t\u00e91 e\u0301te\u0301",
          {{30527, 30527, 3802, 2063, 2487, 30527},
           {{0, 3}, {4, 7}, {8, 10}, {10, 11}, {11, 12}, {13, 17}}}},
         {"<L>  <L><R> <R> z",
          {{30523, 30523, 30524, 30524, 1062}, {{0, 3}, {3, 8}, {8, 12}, {12, 16}, {16, 17}}}},
         {"  <R>", {{30524}, {{2, 5}}}},
         {"<W>", {{30525}, {{0, 3}}}},
         {"\u00e9<W>", {{1041, 1026, 1059, 1028}, {{0, 1}, {1, 2}, {2, 3}, {3, 4}}}}});
}

// Values of tokenizers 0.23.3. The model has 4,000 pieces; 166 is one of them.
TEST_CASE("added tokens: ids of other tokens, ids behind a gap, and several descriptions") {
  const std::string path = shared_path("golden/tiny-bert-classification/tokenizer.json").string();
  simdjson::dom::parser parser;
  const std::string text = simdjson::minify(parser.load(path).value());
  constexpr std::string_view kList = "\"added_tokens\":[";
  const auto encoded = [&](std::string_view tokens, std::string_view input) {
    TemporaryDirectory directory;
    std::string changed = text;
    changed.insert(changed.find(kList) + kList.size(), concat(tokens, ","));
    directory.write("tokenizer.json", changed);
    return test::encode(*Tokenizer::load(directory.path()), std::string(input));
  };
  constexpr const char* kPlain = R"({"id":4000,"content":"zqzq"})";
  using Ids = std::vector<int32_t>;
  CHECK(encoded(concat(kPlain, R"(,{"id":4000,"content":"wvwv"})"), "zqzq wvwv").ids ==
        Ids{4000, 4001});
  CHECK(encoded(R"({"id":166,"content":"zqzq"})", "zqzq").ids == Ids{4000});
  CHECK(encoded(R"({"id":4005,"content":"zqzq"})", "zqzq").ids == Ids{4000});
  // Words are not divided into added tokens.
  CHECK(encoded(R"({"id":4000,"content":"zqzq","single_word":true})", "zqzqs").ids ==
        Ids{68, 108, 92, 108, 73});
  // Of several descriptions the last counts.
  CHECK(encoded(concat(kPlain, R"(,{"id":4000,"content":"zqzq","normalized":false})"), "zqzq ZQZQ")
            .ids == Ids{4000, 68, 108, 92, 108});
  CHECK(encoded(concat(kPlain, R"(,{"id":4001,"content":"zqzq","lstrip":true})"), "zqzq x zqzq") ==
        Encoded{{4000, 66, 4000}, {{0, 4}, {5, 6}, {6, 11}}});
}

TEST_CASE("the normalizer's options") {
  if (!have_shared(kUncased)) return;
  auto tokens = [](const Tokenizer& tokenizer, std::string_view text) {
    std::string out;
    for (int32_t id : test::encode(tokenizer, text).ids) out += concat("|", tokenizer.token(id));
    return out;
  };
  const std::string lower = "\"lowercase\":true";
  const std::string strip = "\"strip_accents\":null";
  auto keeping = edited({{strip, "\"strip_accents\":false"}});
  CHECK(tokens(*keeping, "H\u00e9llo \u4e2d\u4e2d") == "|[UNK]|\u4e2d|\u4e2d");
  auto cased = edited({{lower, "\"lowercase\":false"}});
  CHECK(tokens(*cased, "hello Hello") == "|hello|[UNK]");
  auto cased_stripping =
      edited({{lower, "\"lowercase\":false"}, {strip, "\"strip_accents\":true"}});
  CHECK(tokens(*cased_stripping, "h\u00e9llo") == "|hello");
  auto joined = edited({{"\"handle_chinese_chars\":true", "\"handle_chinese_chars\":false"}});
  CHECK(tokens(*joined, "\u4e2d\u570b") == "|\u4e2d|##\u570b");
  auto unclean = edited({{"\"clean_text\":true", "\"clean_text\":false"}});
  CHECK(tokens(*unclean,
               "a\u200b b\x0b"
               "c") == "|[UNK]|b|c");
}

TEST_CASE("tokenizer_config.json overrides tokenizer.json in what it states") {
  if (!have_shared(kUncased)) return;
  auto hello = [](std::string_view config) {
    TemporaryDirectory directory;
    directory.copy(shared_path(concat(kUncased, "/tokenizer.json")));
    directory.write("tokenizer_config.json", config);
    return test::encode(*Tokenizer::load(directory.path()), "HELLO").ids;
  };
  const std::vector<int32_t> lowered{7592}, unknown{100};
  CHECK(hello("{}") == lowered);
  CHECK(hello("{\"do_lower_case\":false}") == unknown);
  CHECK(hello("{\"do_lower_case\":true,\"strip_accents\":null}") == lowered);
  CHECK(hello("{\"do_lower_case\":false,\"tokenizer_class\":\"PreTrainedTokenizerFast\"}") ==
        lowered);
}

TEST_CASE("truncation and padding in tokenizer.json are ignored") {
  if (!have_shared(kUncased)) return;
  auto tokenizer =
      edited({{"\"truncation\":null",
               "\"truncation\":{\"max_length\":4,\"strategy\":\"LongestFirst\",\"stride\":0}"},
              {"\"padding\":null", "\"padding\":{\"strategy\":{\"Fixed\":8},\"pad_id\":0}"}});
  CHECK(test::encode(*tokenizer, "a b c d e f").ids.size() == 6);
}

TEST_CASE("a length without limit, as Hugging Face writes it") {
  TemporaryDirectory directory;
  directory.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nhi\n");
  directory.write(
      "tokenizer_config.json",
      "{\"model_max_length\": 1000000000000000019884624838656, \"do_lower_case\": true}");
  auto tokenizer = Tokenizer::load(directory.path());
  CHECK(tokenizer->stated().model_max_length == -1);
  CHECK(test::encode(*tokenizer, "HI").ids == std::vector<int32_t>{4});
}

TEST_CASE("MPNet's tokenizer.json as transformers 5 writes it") {
  TemporaryDirectory directory;
  directory.write(
      "tokenizer.json",
      R"({"model":{"type":"WordPiece","unk_token":"[UNK]","vocab":{"<s>":0,"<pad>":1,)"
      R"("</s>":2,"[UNK]":3,"a":4}},"added_tokens":[],"normalizer":{"type":"BertNormalizer"},)"
      R"("pre_tokenizer":{"type":"BertPreTokenizer"},)"
      R"("post_processor":{"type":"RobertaProcessing","sep":["</s>",2],"cls":["<s>",0],)"
      R"("trim_offsets":true,"add_prefix_space":false}})");
  directory.write("tokenizer_config.json", R"({"pad_token":"<pad>","unk_token":"[UNK]"})");
  const SpecialTokens special = Tokenizer::load(directory.path())->special();
  CHECK((special.cls == 0 && special.sep == 2 && special.separators == 2));
}

TEST_CASE("vocab.txt: numbering, CRLF, repeats, added tokens") {
  TemporaryDirectory directory;
  directory.write("vocab.txt", "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n\r\nhi\r\nho\r\nhi\r\n");
  directory.write("added_tokens.json", "{\"[NEW]\": 8}");
  auto tokenizer = Tokenizer::load(directory.path());
  CHECK(tokenizer->vocabulary_size() == 9);
  CHECK(tokenizer->token(5) == "hi");
  CHECK(tokenizer->special().pad == 0);
  CHECK(tokenizer->stated().model_max_length == -1);
  CHECK(test::encode(*tokenizer, "Hi ho[NEW] hu[SEP]").ids == std::vector<int32_t>{7, 6, 8, 1, 3});
}

// Compared with transformers in tests/peers/tokenizer_test.py.
TEST_CASE("vocab.txt: tokens of special_tokens_map.json are matched literally") {
  const std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nhi\n[\n]\nx\n<E>\n";
  const auto ids = [&](const std::string& config, const std::string& map,
                       const std::string& added) {
    TemporaryDirectory directory;
    directory.write("vocab.txt", vocabulary);
    directory.write("tokenizer_config.json", config);
    directory.write("special_tokens_map.json", map);
    directory.write("added_tokens.json", added);
    return test::encode(*Tokenizer::load(directory.path()), "[x]hi<E>[X]").ids;
  };
  using Ids = std::vector<int32_t>;
  const std::string named = "{\"additional_special_tokens\": [\"[X]\", \"<E>\", \"[none]\"]}";
  const std::string added = "{\"[X]\": 9}";
  CHECK(ids("{}", named, added) == Ids{5, 7, 6, 4, 8, 9});
  CHECK(ids("{}", "{\"mask_token\": {\"content\": \"[X]\"}}", added) ==
        Ids{5, 7, 6, 4, 1, 1, 1, 9});
  CHECK(ids("{}", "{}", added) == Ids{9, 4, 1, 1, 1, 9});
  // Ignored if there is a decoder.
  CHECK(ids("{\"added_tokens_decoder\": {}}", named, added) == Ids{5, 7, 6, 4, 1, 1, 1, 5, 7, 6});
}

}  // namespace
}  // namespace finetune
