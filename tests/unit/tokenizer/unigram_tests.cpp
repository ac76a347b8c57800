// Unigram: ids and offsets of XLM-RoBERTa and CamemBERT against Hugging Face tokenizers.
#include <sentencepiece_processor.h>

#include <chrono>

#include "golden_lines.h"

namespace finetune {
namespace {

using test::check_golden_file;
using test::Encoded;
using test::have_shared;
using test::shared_path;
using test::TemporaryDirectory;

constexpr const char* kModel = "golden/family/xlm-roberta/classification";
constexpr const char* kPieces = "golden/family/xlm-roberta/qa/sentencepiece.bpe.model";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

constexpr std::string_view kNewNormalizers =
    R"(,{"type":"Strip","strip_left":false,"strip_right":true},)"
    R"({"type":"Replace","pattern":{"Regex":" {2,}"},"content":"▁"}])";
constexpr std::string_view kNewPreTokenizer =
    R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true},"post)";

// tokenizer.json with other parts; `normalizers` come after the character map.
std::string tokenizer_json(std::string_view normalizers, std::string_view pre_tokenizer) {
  simdjson::dom::parser parser;
  const std::string text = simdjson::minify(
      parser.load(shared_path(concat(kModel, "/tokenizer.json")).string()).value());
  return replaced(replaced(text, kNewNormalizers, concat(normalizers, "]")), kNewPreTokenizer,
                  concat(pre_tokenizer, R"(,"post)"));
}

TEST_CASE("golden tokenization with a small XLM-RoBERTa vocabulary, from each of its files") {
  check_golden_file(shared_path(kModel), "unigram/xlm-roberta.jsonl", 509);
  TemporaryDirectory directory;
  directory.copy(shared_path(kPieces));
  directory.write("config.json", R"({"model_type":"xlm-roberta"})");
  check_golden_file(directory.path(), "unigram/xlm-roberta.jsonl", 509);
  directory.copy(shared_path(concat(kModel, "/tokenizer_config.json")));
  check_golden_file(directory.path(), "unigram/xlm-roberta.jsonl", 509);
}

TEST_CASE("golden tokenization with the older form of tokenizer.json") {
  TemporaryDirectory directory;
  directory.write(
      "tokenizer.json",
      tokenizer_json("", R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},)"
                         R"({"type":"Metaspace","replacement":"▁","add_prefix_space":true}]})"));
  check_golden_file(directory.path(), "unigram/xlm-roberta-old-form.jsonl", 509);
}

TEST_CASE("golden tokenization with CamemBERT's ids") {
  TemporaryDirectory directory;
  directory.copy(shared_path(kPieces));
  for (const char* config : {R"({"tokenizer_class":"CamembertTokenizer"})",
                             R"({"tokenizer_class":"CamembertTokenizerFast","mask_token":"<mask>",)"
                             R"("additional_special_tokens":["<s>NOTUSED","</s>NOTUSED"]})"}) {
    directory.write("tokenizer_config.json", config);
    check_golden_file(directory.path(), "unigram/camembert.jsonl", 509);
  }
  const auto tokenizer = Tokenizer::load(directory.path());
  const SpecialTokens& special = tokenizer->special();
  CHECK((special.cls == 5 && special.pad == 1 && special.sep == 6 && special.unk == 3));
  CHECK(special.mask == tokenizer->vocabulary_size() - 1);
}

// As transformers converts the file; the sentencepiece library gives other ids for some texts.
TEST_CASE("golden tokenization with ALBERT's vocabulary") {
  if (!have_shared("tokenizers/albert-base-v2")) return;
  check_golden_file(shared_path("tokenizers/albert-base-v2"),
                    "golden/family/tokenization/albert-base-v2-fast.jsonl", 200);
  if (!have_shared("golden/family/tokenization/pairs.jsonl")) return;
  const auto tokenizer = Tokenizer::load(shared_path("tokenizers/albert-base-v2"));
  test::check_golden_pairs(*tokenizer, "albert-base-v2-fast", 15);
}

TEST_CASE("ALBERT's tokenizer.json and its sentencepiece model are the same vocabulary") {
  const fs::path family = shared_path("golden/family/albert");
  const auto from_json = Tokenizer::load(family / "classification");
  const auto from_pieces = Tokenizer::load(family / "qa");
  CHECK(from_json->vocabulary_size() == from_pieces->vocabulary_size());
  for (const char* text : {"Fuel at  the station", " a\u00a0b ", "``x'' 9,9 1, \ufb01n [MASK] B",
                           "\u00c9t\u00e9 e\u0301\u0323 \u0130\u03a3 \u1e9b\u0323 \uac00"}) {
    CAPTURE(text);
    CHECK(test::encode(*from_json, text) == test::encode(*from_pieces, text));
  }
}

// By tokenizers 0.23.3, whose pre-tokenizer Punctuation comes before Metaspace.
void check_split_punctuation(TemporaryDirectory& directory) {
  directory.write("tokenizer_config.json", R"({"split_by_punct": true})");
  const auto tokenizer = Tokenizer::load(directory.path());
  const auto ids_of = [&](const char* text) { return test::encode(*tokenizer, text).ids; };
  using Ids = std::vector<int32_t>;
  CHECK(ids_of("RONA # 55140, fuel-station's (CA)") ==
        Ids{448, 424, 295, 260, 383, 260, 356, 356, 503, 314, 260, 265, 390, 275, 401, 260,
            325, 260, 306, 411, 260, 291, 260, 261, 260, 260, 677, 260, 530, 260, 419});
  CHECK(ids_of("a ,b") == Ids{292, 260, 260, 265, 260, 311});
  CHECK(ids_of("station[MASK].fuel") == Ids{260, 306, 411, 680, 260, 269, 390, 275, 401});
  const auto encoded = test::encode(*tokenizer, "\u2026fuel  , ");
  CHECK(encoded.ids == Ids{260, 269, 260, 269, 260, 269, 390, 275, 401, 260, 260, 265});
  CHECK(encoded.offsets == test::Offsets{{0, 1},
                                         {0, 1},
                                         {0, 1},
                                         {0, 1},
                                         {0, 1},
                                         {0, 1},
                                         {1, 2},
                                         {2, 3},
                                         {3, 5},
                                         {6, 7},
                                         {7, 8},
                                         {7, 8}});
}

TEST_CASE("golden tokenization with DeBERTa's vocabulary, from each of its files") {
  const char* texts = "golden/family/tokenization/deberta-v3-small.jsonl";
  if (!have_shared(texts)) return;
  TemporaryDirectory pieces;  // as published: the tokens' flags are the class's
  pieces.copy(shared_path("golden/family/deberta-v3/classification/spm.model"));
  check_golden_file(pieces.path(), texts, 170);
  pieces.write("tokenizer_config.json", R"({"do_lower_case": false, "vocab_type": "spm"})");
  pieces.write("config.json", R"({"model_type": "deberta-v2"})");
  check_golden_file(pieces.path(), texts, 170);
  const auto tokenizer = Tokenizer::load(pieces.path());
  CHECK(tokenizer->special().mask == 680);
  CHECK(tokenizer->vocabulary_size() == 681);
  // A mask that only added_tokens.json has is looked for in the text as it is.
  pieces.write("added_tokens.json", R"({"[MASK]": 680})");
  const auto with_mask = Tokenizer::load(pieces.path());
  for (const char* text : {"[MASK]", "\uff3bMASK\uff3d"}) {
    CHECK(test::encode(*with_mask, text) == test::encode(*tokenizer, text));
  }
  fs::remove(pieces / "added_tokens.json");
  pieces.write("tokenizer_config.json", R"({"do_lower_case": true})");
  CHECK(test::encode(*Tokenizer::load(pieces.path()), "FUEL").ids ==
        test::encode(*tokenizer, "fuel").ids);
  check_split_punctuation(pieces);
  // tokenizer.json is beside the models that do not travel with the project.
  if (!have_shared("golden/family/deberta-v3/classification/tokenizer.json")) return;
  TemporaryDirectory json;
  json.copy(shared_path("golden/family/deberta-v3/classification/tokenizer.json"));
  json.write("config.json", R"({"model_type": "deberta-v2"})");
  check_split_punctuation(json);
  json.write("tokenizer_config.json", R"({"do_lower_case": true})");
  CHECK(test::encode(*Tokenizer::load(json.path()), "FUEL").ids ==
        test::encode(*tokenizer, "fuel").ids);
  check_golden_file(
      shared_path("golden/family/deberta-v3/classification/tokenizer.json").parent_path(), texts,
      170);
  if (!have_shared("golden/family/tokenization/pairs.jsonl")) return;
  test::check_golden_pairs(*tokenizer, "deberta-v3-small", 18);
}

TEST_CASE("golden pairs and windows: two separators, no token types") {
  if (!have_shared("golden/family/tokenization/pairs.jsonl")) return;
  TemporaryDirectory camembert;
  camembert.copy(shared_path(kPieces));
  camembert.write("tokenizer_config.json", R"({"tokenizer_class":"CamembertTokenizer"})");
  test::check_golden_pairs(*Tokenizer::load(shared_path(kModel)), "xlm-roberta-small", 18);
  test::check_golden_pairs(*Tokenizer::load(camembert.path()), "camembert-small", 18);
}

TEST_CASE("special tokens, lengths and files of a Unigram vocabulary") {
  const auto tokenizer = Tokenizer::load(shared_path(kModel));
  const SpecialTokens& special = tokenizer->special();
  CHECK((special.cls == 0 && special.pad == 1 && special.sep == 2 && special.unk == 3));
  CHECK(special.mask == 451);
  CHECK((special.around_single() == 2 && special.around_pair() == 4));
  CHECK(tokenizer->vocabulary_size() == 452);
  CHECK(tokenizer->stated().model_max_length == 512);
  CHECK(tokenizer->files().size() == 2);
  CHECK(tokenizer->token(4) == "▁");
  CHECK_FALSE(tokenizer->continues_word(4));
  CHECK(tokenizer->continues_word(5));  // "s"
  CHECK_FALSE(tokenizer->continues_word(special.mask));
}

// Values of tokenizers 0.23.3.
TEST_CASE("Metaspace and the normalizers in other settings") {
  struct Setting {
    const char *normalizers, *pre_tokenizer;
    Encoded first, second;
  };
  const char* const replace = R"(,{"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "})";
  const char* const strip = R"(,{"type":"Strip","strip_left":true,"strip_right":true},)"
                            R"({"type":"Replace","pattern":{"Regex":" {2,}"},"content":"▁"})";
  const char* const right = R"(,{"type":"Strip","strip_left":false,"strip_right":true},)"
                            R"({"type":"Replace","pattern":{"Regex":" {2,}"},"content":"▁"})";
  const test::Offsets inner{{2, 3}, {3, 4}, {4, 11}, {11, 12}, {12, 13}};
  const auto offsets = [&](std::initializer_list<std::pair<uint32_t, uint32_t>> last) {
    test::Offsets out{{0, 1}};
    out.insert(out.end(), inner.begin(), inner.end());
    out.insert(out.end(), last);
    return out;
  };
  const Encoded stripped{{44, 4, 30, 451, 4, 19}, offsets({})};
  const Encoded unmarked{{11, 4, 30, 451, 4, 19}, offsets({})};
  const Encoded spaced{{44, 4, 30, 451, 4, 19, 4}, offsets({{13, 14}})};
  const Encoded whole{{9, 4, 3, 47, 8}, {{1, 5}, {6, 7}, {7, 8}, {9, 10}, {9, 10}}};
  const Encoded cut{{9, 4, 3, 47, 8}, {{2, 5}, {6, 7}, {7, 8}, {9, 10}, {9, 10}}};
  const Setting settings[] = {
      {right, R"({"type":"Metaspace","prepend_scheme":"first"})", stripped, whole},
      {right, R"({"type":"Metaspace","prepend_scheme":"never"})", unmarked, whole},
      {right, R"({"type":"Metaspace","add_prefix_space":false})", unmarked, whole},
      {replace, R"({"type":"Metaspace","replacement":"▁","add_prefix_space":true})", spaced, whole},
      {strip, R"({"type":"Metaspace"})", stripped, cut}};
  for (const Setting& setting : settings) {
    CAPTURE(setting.pre_tokenizer);
    TemporaryDirectory directory;
    directory.write("tokenizer.json", tokenizer_json(setting.normalizers, setting.pre_tokenizer));
    const auto tokenizer = Tokenizer::load(directory.path());
    CHECK(test::encode(*tokenizer, "a  b <mask> c ") == setting.first);
    CHECK(test::encode(*tokenizer, "  the\u00a0 e\u0301\ufb01") == setting.second);
  }
}

// Values of tokenizers 0.23.3.
TEST_CASE("DeBERTa's normalizers as transformers 5 saves them, and its add_prefix_space") {
  const std::string whole =
      tokenizer_json("", R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always"})");
  const size_t begin = whole.find(R"("normalizer":)"), end = whole.find(R"("pre_tokenizer":)");
  REQUIRE((begin != std::string::npos && end != std::string::npos && begin < end));
  const auto with = [&](std::string_view content) {
    return concat(std::string_view(whole).substr(0, begin),
                  R"("normalizer":{"type":"Sequence","normalizers":[{"type":"Replace",)",
                  R"("pattern":{"Regex":"\\s{2,}|[\\n\\r\\t]"},"content":")", content,
                  R"("},{"type":"NFC"},{"type":"Strip","strip_left":false,"strip_right":true}]},)",
                  std::string_view(whole).substr(end));
  };
  TemporaryDirectory directory;
  directory.write("config.json", R"({"model_type":"deberta-v2"})");
  directory.write("tokenizer.json", with(" "));
  const auto check = [&](std::string_view text, const Encoded& expected) {
    CAPTURE(text);
    CHECK(test::encode(*Tokenizer::load(directory.path()), text) == expected);
  };
  check("a \t\u3000the\nthe  e\u0301\u00a0 ",
        {{44, 9, 9, 4, 3}, {{0, 1}, {3, 7}, {7, 11}, {12, 13}, {13, 14}}});
  check("  the\u00a0the\u2028\u2028", {{9, 3, 93, 6}, {{1, 5}, {5, 6}, {6, 8}, {8, 9}}});
  check("the<mask>the", {{9, 451, 9}, {{0, 3}, {3, 9}, {9, 12}}});
  directory.write("tokenizer_config.json", R"({"add_prefix_space":false})");
  check("the<mask>the  the", {{9, 451, 93, 6, 9}, {{0, 3}, {3, 9}, {9, 11}, {11, 12}, {13, 17}}});
  directory.write("tokenizer.json", with("x"));
  CHECK_THROWS_WITH_AS(Tokenizer::load(directory.path()), doctest::Contains("Replace by 'x'"),
                       Error);
}

// Values of transformers 5.24.0.
TEST_CASE(
    "add_prefix_space false of XLM-RoBERTa's class: words end at white space, without marks") {
  TemporaryDirectory json, pieces;
  json.copy(shared_path(concat(kModel, "/tokenizer.json")));
  pieces.copy(shared_path(kPieces));
  const auto load = [](TemporaryDirectory& directory, std::string_view config) {
    directory.write("tokenizer_config.json", std::string(config));
    return Tokenizer::load(directory.path());
  };
  constexpr const char* kWithout =
      R"({"tokenizer_class":"XLMRobertaTokenizer","add_prefix_space":false})";
  for (TemporaryDirectory* directory : {&json, &pieces}) {
    const auto tokenizer = load(*directory, kWithout);
    CHECK(test::encode(*tokenizer, "  the  cat ") ==
          Encoded{{93, 6, 19, 56}, {{2, 4}, {4, 5}, {7, 8}, {8, 10}}});
    CHECK(test::encode(*tokenizer, "The the, a payment.").ids ==
          std::vector<int32_t>{45, 55, 6, 93, 6, 13, 11, 176, 17, 168, 16});
  }
  // Another class takes tokenizer.json as it is.
  const auto other =
      load(json, R"({"tokenizer_class":"PreTrainedTokenizerFast","add_prefix_space":false})");
  CHECK(test::encode(*other, "the").ids == std::vector<int32_t>{9});
}

TEST_CASE("a removed character at the beginning shifts the offsets behind it, as in Hugging Face") {
  const auto tokenizer = Tokenizer::load(shared_path(kModel));
  const Encoded shifted = test::encode(*tokenizer, "\u0001the \ufb01 the");
  CHECK(shifted.offsets == test::Offsets{{0, 3}, {3, 5}, {4, 5}, {5, 9}});
  const Encoded inside = test::encode(*tokenizer, "the\u0001 \ufb01 the");
  CHECK(inside.ids == shifted.ids);
  CHECK(inside.offsets == test::Offsets{{0, 3}, {4, 6}, {5, 6}, {6, 10}});
}

TEST_CASE("bytes that are not UTF-8 count as U+FFFD, and keep their offsets in Unigram") {
  const auto tokenizer = Tokenizer::load(shared_path(kModel));
  TokenBuffer broken, replacement;
  tokenizer->encode("a \xFF\xE2\x82 b", broken);
  tokenizer->encode("a \uFFFD\uFFFD b", replacement);
  CHECK(broken.ids == replacement.ids);
  CHECK(broken.ends.back() == 7);
}

// The library takes the longest key at each place and adds scores in single precision, so texts
// with combining marks, ties or <mask> may differ; these have none.
TEST_CASE("ids are the sentencepiece library's, shifted by one") {
  sentencepiece::SentencePieceProcessor library;
  const std::string path = shared_path(kPieces).string();
  REQUIRE(library.Load(path).ok());
  const auto tokenizer = Tokenizer::load(shared_path(kModel));
  std::ifstream rows(shared_path("golden/trajectory-classification-train.csv"));
  size_t compared = 0;
  for (std::string row; std::getline(rows, row); ++compared) {
    std::vector<int32_t> expected;
    for (int id : library.EncodeAsIds(row)) expected.push_back(id == 0 ? 3 : id + 1);
    CHECK(test::encode(*tokenizer, row).ids == expected);
  }
  CHECK(compared > 100);
}

TEST_CASE("a word of a million letters takes no quadratic time in Unigram") {
  const auto tokenizer = Tokenizer::load(shared_path(kModel));
  std::string text;
  while (text.size() < 1000000) text += "thereinandou";
  for (const char* end : {"", "\u00e9\ufb01"}) {
    const auto start = std::chrono::steady_clock::now();
    TokenBuffer tokens;
    tokenizer->encode(text + end, tokens);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
    CHECK(tokens.size() > 1000);
    CHECK(tokens.ends.back() == text.size() + std::string_view(end).size());
  }
}

}  // namespace
}  // namespace finetune
