// Byte-level BPE: ids and offsets against Hugging Face tokenizers, and faults of its files.
#include <chrono>

#include "../contains.h"
#include "core/text/utf8.h"
#include "golden_lines.h"
#include "tokenizer/bpe/byte_chars.h"
#include "tokenizer/bpe/word_splitter.h"

namespace finetune {
namespace {

using test::check_golden_file;
using test::contains;
using test::Encoded;
using test::have_shared;
using test::model_error_of;
using test::shared_path;
using test::TemporaryDirectory;

// The files of `source` with another tokenizer_config.json.
void check_with(const fs::path& source, std::initializer_list<const char*> files,
                std::string_view config, const std::string& golden, size_t count) {
  TemporaryDirectory directory;
  for (const char* file : files) directory.copy(source / file);
  if (!config.empty()) directory.write("tokenizer_config.json", config);
  check_golden_file(directory.path(), golden, count);
}

TEST_CASE("golden tokenization with a small RoBERTa vocabulary, from each of its files") {
  const fs::path model = shared_path("byte-level-bpe/roberta");
  const std::string golden = "byte-level-bpe/roberta";
  check_golden_file(model, golden + ".jsonl", 309);
  check_with(model, {"tokenizer.json"}, "", golden + ".jsonl", 309);
  for (const auto& files : {std::initializer_list<const char*>{"tokenizer.json"},
                            std::initializer_list<const char*>{"vocab.json", "merges.txt"}}) {
    check_with(model, files, R"({"tokenizer_class":"RobertaTokenizer"})", golden + ".jsonl", 309);
    check_with(model, files, R"({"add_prefix_space":true})", golden + "-prefix-space.jsonl", 309);
    check_with(model, files, R"({"trim_offsets":false})", golden + "-no-trim.jsonl", 309);
  }
}

TEST_CASE(
    "golden tokenization in ModernBERT's pipeline: NFC, runs of spaces, offsets with spaces") {
  check_golden_file(shared_path("byte-level-bpe/modernbert"), "byte-level-bpe/modernbert.jsonl",
                    309);
}

TEST_CASE("golden tokenization with roberta-base") {
  if (!have_shared("tokenizers/roberta-base") ||
      !have_shared("golden/family/tokenization/roberta-base.jsonl"))
    return;
  const fs::path model = shared_path("tokenizers/roberta-base");
  const std::string golden = "golden/family/tokenization/roberta-base";
  check_golden_file(model, golden + ".jsonl", 309);
  check_with(model, {"vocab.json", "merges.txt"}, "", golden + ".jsonl", 309);
  check_with(model, {"tokenizer.json"}, R"({"add_prefix_space":true})",
             golden + "-prefix-space.jsonl", 160);
  check_with(model, {"tokenizer.json"}, R"({"trim_offsets":false})", golden + "-no-trim.jsonl",
             160);
}

TEST_CASE("golden pairs and windows with roberta-base: two separators, no token types") {
  if (!have_shared("tokenizers/roberta-base") ||
      !have_shared("golden/family/tokenization/pairs.jsonl"))
    return;
  const auto tokenizer = Tokenizer::load(shared_path("tokenizers/roberta-base"));
  test::check_golden_pairs(*tokenizer, "roberta-base", 15);
}

TEST_CASE("letters, numbers and spaces are those of tokenizers' expressions, for all code points") {
  simdjson::dom::parser parser;
  const simdjson::dom::element root =
      parser.load(shared_path("byte-level-bpe/byte-level-classes.json").string());
  std::vector<bpe::CharClass> expected(0x110000, bpe::CharClass::other);
  for (const auto& [key, kind] :
       {std::pair("L", bpe::CharClass::letter), std::pair("N", bpe::CharClass::number),
        std::pair("s", bpe::CharClass::space)}) {
    for (auto range : root[key].get_array()) {
      const auto both = test::integers(range);
      for (int32_t c = both[0]; c <= both[1]; ++c) expected[size_t(c)] = kind;
    }
  }
  size_t different = 0;
  for (char32_t c = 0; c < expected.size(); ++c) {
    different += bpe::CharClasses::get()[c] != expected[c];
  }
  CHECK(different == 0);
}

TEST_CASE("special tokens, lengths and files of a byte-level vocabulary") {
  const auto tokenizer = Tokenizer::load(shared_path("byte-level-bpe/roberta"));
  const SpecialTokens& special = tokenizer->special();
  CHECK((special.cls == 0 && special.pad == 1 && special.sep == 2 && special.unk == 3));
  CHECK(special.mask == 420);
  CHECK((special.around_single() == 2 && special.around_pair() == 4));
  CHECK(tokenizer->vocabulary_size() == 421);
  CHECK(tokenizer->stated().model_max_length == 512);
  CHECK(tokenizer->files().size() == 4);
  CHECK(tokenizer->token(5) == "\u0120the");
  CHECK_FALSE(tokenizer->continues_word(5));
  CHECK(tokenizer->continues_word(4));  // "."
  CHECK_FALSE(tokenizer->continues_word(special.mask));
  const auto modern = Tokenizer::load(shared_path("byte-level-bpe/modernbert"));
  CHECK(modern->special().around_pair() == 3);
}

TEST_CASE("with add_prefix_space the first token's offsets keep one space, but not several") {
  TemporaryDirectory directory;
  directory.copy(shared_path("byte-level-bpe/roberta/tokenizer.json"));
  directory.write("tokenizer_config.json", R"({"add_prefix_space":true})");
  const auto tokenizer = Tokenizer::load(directory.path());
  const auto first = [&](std::string_view text) {
    return test::encode(*tokenizer, text).offsets.at(0);
  };
  CHECK(first(" a") == std::pair(0u, 2u));
  CHECK(first(" <mask>") == std::pair(0u, 7u));
  CHECK(first("   <mask>") == std::pair(3u, 9u));
}

TEST_CASE("bytes that are not UTF-8 count as U+FFFD, and keep their offsets") {
  const auto tokenizer = Tokenizer::load(shared_path("byte-level-bpe/roberta"));
  TokenBuffer broken, replaced;
  tokenizer->encode("a \xFF\xE2\x82 b", broken);
  tokenizer->encode("a \uFFFD\uFFFD b", replaced);
  CHECK(broken.ids == replaced.ids);
  CHECK(broken.begins.back() == 6);
  CHECK(broken.ends.back() == 7);
}

TEST_CASE("a word of a million letters takes no quadratic time") {
  const auto tokenizer = Tokenizer::load(shared_path("byte-level-bpe/roberta"));
  std::string text;
  while (text.size() < 1000000) text += "thereinandou";
  const auto start = std::chrono::steady_clock::now();
  TokenBuffer tokens;
  tokenizer->encode(text, tokens);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
  REQUIRE(tokens.size() > 1000);
  CHECK(tokens.ends.back() == text.size());
  // The same as in a short word, where another way merges.
  TokenBuffer few;
  tokenizer->encode(std::string_view(text).substr(0, 60), few);
  for (size_t i = 0; i + 4 < few.size(); ++i) CHECK(few.ids[i] == tokens.ids[i]);
}

// A vocabulary of all bytes and `pieces` after them.
std::string vocab_json(std::initializer_list<std::string_view> pieces) {
  std::string out = "{";
  int id = 0;
  const auto add = [&](std::string_view piece) {
    const bool escaped = piece == "\"" || piece == "\\";
    out += concat(id ? "," : "", escaped ? "\"\\" : "\"", piece, "\":", id);
    ++id;
  };
  for (std::string_view piece : {"<s>", "<pad>", "</s>", "<unk>"}) add(piece);
  for (char32_t c : bpe::kByteChars) {
    std::string piece;
    utf8::append(c, piece);
    add(piece);
  }
  for (std::string_view piece : pieces) add(piece);
  return out + "}";
}

TEST_CASE("merges go by rank, the leftmost of equals first") {
  TemporaryDirectory directory;
  directory.write("vocab.json", vocab_json({"bc", "ab", "aa", "aab"}));
  directory.write("merges.txt", "#version: 0.2\nb c\na b\na a\naa b\r\n");
  const auto tokenizer = Tokenizer::load(directory.path());
  const auto tokens = [&](std::string_view text) {
    std::string out;
    for (int32_t id : test::encode(*tokenizer, text).ids) out += concat(tokenizer->token(id), " ");
    return out;
  };
  CHECK(tokens("abc") == "a bc ");
  CHECK(tokens("aaab") == "aa ab ");
  CHECK(tokens("aaaaa") == "aa aa a ");
  CHECK(tokens("aabb") == "a ab b ");
}

TEST_CASE("broken BPE files are refused with file and line") {
  const auto refused = [](std::string_view vocabulary, std::string_view merges) {
    TemporaryDirectory directory;
    if (!vocabulary.empty()) directory.write("vocab.json", vocabulary);
    directory.write("merges.txt", merges);
    return model_error_of([&] { (void)Tokenizer::load(directory.path()); });
  };
  const std::string vocabulary = vocab_json({"ab"});
  CHECK(contains(refused(vocabulary, "#version: 0.2\na b\na x\n"), "merges.txt:3: the merge of"));
  CHECK(contains(refused(vocabulary, "a b\nzz b\n"), "merges.txt:2"));
  CHECK(contains(refused(vocabulary, "a b\na  b\n"), "merges.txt:2"));
  CHECK(contains(refused(vocabulary, "ab\n"), "merges.txt:1: 'ab' is not a merge"));
  CHECK(contains(refused(vocabulary, "\n\n"), "merges.txt:1"));
  CHECK(contains(refused("", "a b\n"), "vocab.json"));
  CHECK(contains(refused("{\"a\":", "a b\n"), "vocab.json is not valid JSON"));
  CHECK(contains(refused("{}", "a b\n"), "the vocabulary is empty"));
  CHECK(contains(refused("{\"<s>\":0,\"a\":-1}", ""), "impossible id"));
  CHECK(contains(refused("{\"<s>\":0,\"a\":4194304}", ""), "impossible id"));
  CHECK(contains(refused("{\"<s>\":0,\"a\":\"x\"}", ""), "impossible id"));
  CHECK(contains(refused("{\"a\":0}", ""), "no classification token"));
  CHECK(refused(vocabulary, "a b") == "");
}

std::string tokenizer_json(std::string_view model, std::string_view rest) {
  return concat(R"({"model":{"type":"BPE","vocab":{"<s>":0,"</s>":1,"a":2,"b":3,"ab":4},)", model,
                "},", rest, "}");
}

TEST_CASE("parts of tokenizer.json that BPE does not support are refused by name") {
  const auto refused = [](std::string_view model, std::string_view rest) {
    TemporaryDirectory directory;
    directory.write("tokenizer.json", tokenizer_json(model, rest));
    return model_error_of([&] { (void)Tokenizer::load(directory.path()); });
  };
  const std::string merges = R"("merges":[["a","b"]])";
  const std::string byte_level = R"("pre_tokenizer":{"type":"ByteLevel"})";
  const std::string roberta =
      R"("post_processor":{"type":"RobertaProcessing","sep":["</s>",1],"cls":["<s>",0]})";
  const std::string whole = byte_level + "," + roberta;
  CHECK(refused(merges, whole) == "");
  CHECK(refused(R"("merges":["a b"])", whole) == "");
  CHECK(
      contains(refused(R"("merges":["a b","a c"])", whole), "tokenizer.json: merge 2: the merge"));
  CHECK(contains(refused(R"("merges":["a b c"])", whole), "tokenizer.json: merge 1"));
  CHECK(contains(refused(R"("merges":[["a"]])", whole), "merge 1"));
  CHECK(contains(refused(R"("merges":[7])", whole), "merge 1"));
  CHECK(contains(refused(R"("merge":[])", whole), "\"merges\""));
  CHECK(contains(refused(merges + R"(,"dropout":0.1)", whole), "dropout"));
  CHECK(contains(refused(merges + R"(,"end_of_word_suffix":"</w>")", whole), "'</w>'"));
  CHECK(contains(refused(merges + R"(,"unk_token":"<unk>")", whole), "no unknown token '<unk>'"));
  CHECK(contains(refused(merges, whole + R"(,"normalizer":{"type":"Lowercase"})"), "'Lowercase'"));
  CHECK(contains(refused(merges, roberta), "no pre_tokenizer"));
  CHECK(contains(refused(merges, R"("pre_tokenizer":{"type":"Metaspace"},)" + roberta),
                 "'Metaspace'"));
  CHECK(contains(
      refused(merges, R"("pre_tokenizer":{"type":"ByteLevel","use_regex":false},)" + roberta),
      "use_regex"));
  CHECK(contains(refused(merges, byte_level), "adds no special tokens"));
  CHECK(contains(refused(merges, byte_level + R"(,"post_processor":{"type":"ByteLevel"})"),
                 "adds no special tokens"));
  CHECK(contains(refused(merges, byte_level + R"(,"post_processor":{"type":"Other"})"), "'Other'"));
  CHECK(contains(
      refused(merges,
              byte_level + R"(,"post_processor":{"type":"TemplateProcessing","single":[]})"),
      "template"));
}

TEST_CASE("bytes without a token: dropped, or the unknown token") {
  const auto encoded = [](std::string_view model, std::string_view text) {
    TemporaryDirectory directory;
    directory.write(
        "tokenizer.json",
        tokenizer_json(concat(R"("merges":[["a","b"]])", model),
                       R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},)"
                       R"("post_processor":{"type":"RobertaProcessing","sep":["</s>",1],)"
                       R"("cls":["<s>",0],"add_prefix_space":false})"));
    return test::encode(*Tokenizer::load(directory.path()), text);
  };
  CHECK(encoded("", "abxyb").ids == std::vector<int32_t>{4, 3});
  CHECK(encoded(R"(,"unk_token":"</s>")", "abxyb").ids == std::vector<int32_t>{4, 1, 1, 3});
  CHECK(encoded(R"(,"unk_token":"</s>","fuse_unk":true)", "abxyb") ==
        Encoded{{4, 1, 3}, {{0, 2}, {2, 4}, {4, 5}}});
}

}  // namespace
}  // namespace finetune
