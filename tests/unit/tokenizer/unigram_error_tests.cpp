// Faults of Unigram vocabularies: each names the file and the reason.
#include <cmath>
#include <cstring>

#include "../contains.h"
#include "support.h"
#include "tokenizer/unigram/base64.h"

namespace finetune {
namespace {

using test::contains;
using test::model_error_of;
using test::shared_path;
using test::TemporaryDirectory;

std::string refused_json(std::string_view model, std::string_view normalizer,
                         std::string_view pre_tokenizer, std::string_view processor) {
  TemporaryDirectory directory;
  directory.write("tokenizer.json", concat(R"({"model":{"type":"Unigram",)", model,
                                           R"(},"normalizer":)", normalizer, R"(,"pre_tokenizer":)",
                                           pre_tokenizer, R"(,"post_processor":)", processor, "}"));
  return model_error_of([&] { (void)Tokenizer::load(directory.path()); });
}

constexpr const char* kVocabulary =
    R"("unk_id":2,"vocab":[["<s>",0],["</s>",0.0],["<unk>",-1],["a",-2.5]])";
constexpr const char* kMetaspace = R"({"type":"Metaspace","replacement":"▁"})";
constexpr const char* kTemplate =
    R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},)"
    R"({"Sequence":{"id":"A"}},{"SpecialToken":{"id":"</s>"}}]})";

TEST_CASE("parts of tokenizer.json that Unigram does not support are refused by name") {
  const auto model = [](std::string_view text) {
    return refused_json(text, "null", kMetaspace, kTemplate);
  };
  CHECK(model(kVocabulary) == "");
  CHECK(contains(model(R"("unk_id":0,"vocab":[])"), "tokenizer.json: a Unigram model needs"));
  CHECK(contains(model(R"("unk_id":0)"), "needs \"vocab\""));
  CHECK(contains(model(R"("unk_id":0,"vocab":[["<s>",0],["a"]])"), "entry 1 of the vocabulary"));
  CHECK(contains(model(R"("unk_id":0,"vocab":[["<s>","b"]])"), "entry 0"));
  CHECK(contains(model(R"("unk_id":0,"vocab":[[7,0]])"), "entry 0"));
  CHECK(contains(model(R"("unk_id":0,"vocab":{"a":0})"), "needs \"vocab\""));
  CHECK(contains(model(R"("unk_id":null,"vocab":[["<s>",0]])"), "\"unk_id\""));
  CHECK(contains(model(R"("unk_id":4,"vocab":[["<s>",0]])"), "from 0 to 0"));
  CHECK(contains(model(concat(kVocabulary, R"(,"byte_fallback":true)")), "byte_fallback"));
  CHECK(contains(model(R"("unk_id":0,"vocab":[["<s>",0]])"), "no separator token '</s>'"));

  const auto normalizer = [](std::string_view text) {
    return refused_json(kVocabulary, text, kMetaspace, kTemplate);
  };
  CHECK(contains(normalizer(R"({"type":"NFKC"})"), "normalizer 'NFKC' is not supported"));
  CHECK(contains(normalizer(R"({"type":"Sequence"})"), "no \"normalizers\""));
  CHECK(contains(normalizer(R"({"type":"Sequence","normalizers":[1]})"), "\"normalizers\""));
  for (const char* map : {"", "?", "AAAA", "AAAAAAA=", "ALwCAACEAAAAAACA"}) {
    CAPTURE(map);
    CHECK(contains(
        normalizer(concat(R"({"type":"Precompiled","precompiled_charsmap":")", map, R"("})")),
        "the precompiled_charsmap is damaged"));
  }
  CHECK(contains(normalizer(R"({"type":"Replace","pattern":{"Regex":"a+"},"content":"b"})"),
                 "Replace of 'a+'"));
  CHECK(contains(normalizer(R"({"type":"Replace","pattern":{"Regex":" {2,}"},"content":"b"})"),
                 "Replace by 'b'"));
  CHECK(contains(normalizer(R"({"type":"Replace","pattern":{"String":"a"},"content":"b"})"),
                 "Replace of ''"));

  const auto pre_tokenizer = [](std::string_view text) {
    return refused_json(kVocabulary, "null", text, kTemplate);
  };
  CHECK(contains(pre_tokenizer("null"), "has no Metaspace"));
  CHECK(contains(pre_tokenizer(R"({"type":"WhitespaceSplit"})"), "has no Metaspace"));
  CHECK(contains(pre_tokenizer(R"({"type":"ByteLevel"})"), "pre_tokenizer 'ByteLevel'"));
  CHECK(contains(pre_tokenizer(R"({"type":"Metaspace","replacement":"_"})"), "U+2581"));
  CHECK(contains(pre_tokenizer(R"({"type":"Metaspace","split":false})"), "split"));
  CHECK(contains(pre_tokenizer(R"({"type":"Metaspace","prepend_scheme":"last"})"), "'last'"));

  const auto processor = [](std::string_view text) {
    return refused_json(kVocabulary, "null", kMetaspace, text);
  };
  CHECK(contains(processor("null"), "adds no special tokens"));
  CHECK(contains(processor(R"({"type":"ByteLevel"})"), "post_processor 'ByteLevel'"));
}

TEST_CASE("base64 is decoded, or refused") {
  CHECK(decode_base64("") == "");
  CHECK(decode_base64("TWFu") == "Man");
  CHECK(decode_base64("TWE=") == "Ma");
  CHECK(decode_base64("TQ==") == "M");
  CHECK(decode_base64("+/8A") == std::string("\xFB\xFF\0", 3));
  for (const char* bad : {"T", "TWF", "TWF!", "TQ=a", "T===", "===="}) {
    CAPTURE(bad);
    CHECK_FALSE(decode_base64(bad).has_value());
  }
}

// ---- the sentencepiece model ----

std::string field(int number, std::string_view bytes) {
  REQUIRE(bytes.size() < 128);
  return concat(std::string(1, char(number << 3 | 2)), std::string(1, char(bytes.size())), bytes);
}

std::string piece(std::string_view text, float score) {
  char bits[4];
  std::memcpy(bits, &score, sizeof bits);
  return field(1, concat(field(1, text), "\x15", std::string_view(bits, 4)));
}

std::string refused_model(std::string_view model, const char* name = "XLMRobertaTokenizer") {
  TemporaryDirectory directory;
  directory.write("sentencepiece.bpe.model", model);
  directory.write("tokenizer_config.json", concat(R"({"tokenizer_class":")", name, R"("})"));
  return model_error_of([&] { (void)Tokenizer::load(directory.path()); });
}

TEST_CASE("broken sentencepiece models with shifted ids are refused with file and reason") {
  const std::string first = piece("<unk>", 0) + piece("<s>", 0) + piece("</s>", 0);
  const std::string whole = first + piece("a", -1);
  CHECK(refused_model(whole) == "");
  CHECK(refused_model(whole, "CamembertTokenizer") == "");
  for (const std::string& broken : {std::string(), std::string("no model"),
                                    whole.substr(0, whole.size() - 1), first + piece("\xFF", -1)}) {
    CHECK(contains(refused_model(broken), "sentencepiece.bpe.model is not a sentencepiece model"));
  }
  CHECK(contains(refused_model(first + piece("a", NAN)), "the score of piece 'a'"));
  CHECK(contains(refused_model(first + piece("a", -INFINITY)), "is not a finite number"));
  CHECK(contains(refused_model(piece("<pad>", 0) + whole), "piece 0 is not <unk>"));
  CHECK(contains(refused_model(piece("<unk>", 0)), "piece 1 is not <s>"));
  CHECK(contains(refused_model(whole + field(2, "\x18\x02")), "is not a unigram model"));
  CHECK(contains(refused_model(whole + field(3, field(2, "damaged"))), "character map is damaged"));
}

TEST_CASE("a shifted model needs its class; others keep the library's ids") {
  TemporaryDirectory directory;
  directory.copy(shared_path("golden/family/xlm-roberta/qa/sentencepiece.bpe.model"));
  CHECK(Tokenizer::load(directory.path())->special().cls == 1);
  directory.write("config.json", R"({"model_type":"camembert"})");
  CHECK(Tokenizer::load(directory.path())->special().cls == 5);
  directory.write("tokenizer_config.json", R"({"tokenizer_class":"XLMRobertaTokenizerFast"})");
  CHECK(Tokenizer::load(directory.path())->special().cls == 0);
  directory.write("tokenizer_config.json", R"({"tokenizer_class":"MBartTokenizer"})");
  CHECK(contains(model_error_of([&] { (void)Tokenizer::load(directory.path()); }), "MBart"));
}

}  // namespace
}  // namespace finetune
