// Errors in a vocabulary are reported in one line with the file's name.
#include <sys/stat.h>

#include "../contains.h"
#include "support.h"

namespace finetune {

using test::contains;
namespace {

using test::model_error_of;
using test::TemporaryDirectory;

void check_error(const TemporaryDirectory& directory, std::string_view file,
                 std::string_view expected) {
  std::string message = model_error_of([&] { Tokenizer::load(directory.path()); });
  CAPTURE(message);
  CHECK(contains(message, (directory.path() / file).string()));
  CHECK(contains(message, expected));
}

TEST_CASE("a directory without a vocabulary") {
  TemporaryDirectory directory;
  directory.write("config.json", "{}");
  std::string message = model_error_of([&] { Tokenizer::load(directory.path()); });
  for (const char* part : {"vocab.txt", "tokenizer.json", "spiece.model"}) {
    CHECK(contains(message, part));
  }
  CHECK(model_error_of([&] { Tokenizer::load(directory.path() / "config.json"); }) != "");
  CHECK(model_error_of([&] { Tokenizer::load(directory.path() / "nothing"); }) != "");
}

TEST_CASE("vocab.txt") {
  auto check = [](std::string_view text, std::string_view expected) {
    TemporaryDirectory directory;
    directory.write("vocab.txt", text);
    check_error(directory, "vocab.txt", expected);
  };
  check("", "empty");
  check("[CLS]\n[SEP]\nhi\n", "[UNK]");
  check("[UNK]\n[SEP]\nhi\n", "[CLS]");
  check("[UNK]\n[CLS]\nhi\n", "[SEP]");
  check("[UNK]\n[CLS]\n[SEP]\n\xFF\n", "UTF-8");
  check(std::string((1 << 22) + 1, '\n'), "more than 4194304 tokens");
}

TEST_CASE("pipes, devices and links in a circle in place of a vocabulary") {
  for (const char* name : {"vocab.txt", "tokenizer.json", "spiece.model"}) {
    TemporaryDirectory directory;
    const fs::path path = directory.path() / name;
    fs::create_symlink(name, path);
    check_error(directory, name, ": Too many levels of symbolic links");
    fs::remove(path);
    fs::create_symlink("/dev/zero", path);
    check_error(directory, name, ": is a device, a file is needed");
    fs::remove(path);
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    check_error(directory, name, ": is a pipe, a file is needed");
  }
  for (const char* name :
       {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"}) {
    TemporaryDirectory directory;
    directory.write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n");
    fs::create_symlink(name, directory.path() / name);
    check_error(directory, name, ": Too many levels of symbolic links");
  }
}

TEST_CASE("tokenizer_config.json") {
  auto check = [](std::string_view config, std::string_view expected) {
    TemporaryDirectory directory;
    directory.write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n");
    directory.write("tokenizer_config.json", config);
    check_error(directory, "tokenizer_config.json", expected);
  };
  check("{\"do_lower_case\":", "JSON");
  check("[]", "object");
  check("{\"do_lower_case\":\"yes\"}", "do_lower_case");
  check("{\"cls_token\":5}", "cls_token");
  check("{\"word_tokenizer_type\":\"mecab\"}", "mecab");
  check("{\"added_tokens_decoder\":{\"x\":{}}}", "added_tokens_decoder");
  check("{\"added_tokens_decoder\":{\"-4\":{\"content\":\"q\"}}}", "-4");
  // Memory grows with the largest id: an id of a few digits could take 4 GB.
  for (const char* id : {"268435456", "2147483648", "9223372036854775807", "4194304"}) {
    const std::string token =
        concat("{\"added_tokens_decoder\":{\"", id, "\":{\"content\":\"q\"}}}");
    check(token, concat("'q' has the impossible id ", id, "; ids are from 0 to 4194303"));
  }
}

TEST_CASE("tokenizer.json") {
  const std::string whole =
      R"({"normalizer":{"type":"BertNormalizer"},"pre_tokenizer":{"type":"BertPreTokenizer"},)"
      R"("model":{"type":"WordPiece","vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2}}})";
  TemporaryDirectory good;
  good.write("tokenizer.json", whole);
  CHECK(Tokenizer::load(good.path())->vocabulary_size() == 3);
  auto check = [&](std::string_view from, std::string_view to, std::string_view expected) {
    TemporaryDirectory directory;
    std::string json = whole;
    size_t at = json.find(from);
    REQUIRE(at != std::string::npos);
    json.replace(at, from.size(), to);
    directory.write("tokenizer.json", json);
    check_error(directory, "tokenizer.json", expected);
  };
  check(whole, whole.substr(0, 50), "JSON");
  check(whole, "", "JSON");
  check(whole, "[1]", "object");
  check("\"model\":", "\"modell\":", "no \"model\"");
  check("\"WordPiece\"", "\"BPE\"", "BPE");
  check("\"type\":\"WordPiece\",", "\"merges\":[],", "BPE");
  check("\"WordPiece\"", "\"Unigram\"", "Unigram");
  check("\"type\":\"WordPiece\",\"vocab\":{\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2}", "\"vocab\":[]",
        "Unigram");
  check("BertNormalizer", "Lowercase", "Lowercase");
  check("BertPreTokenizer", "ByteLevel", "ByteLevel");
  check("{\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2}", "{}", "empty");
  check("{\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2}", "[1]", "vocab");
  check("\"[UNK]\":0,", "", "[UNK]");
  check(",\"[SEP]\":2", "", "[SEP]");
  check("\"[SEP]\":2", "\"[SEP]\":-2", "-2");
  check("\"[SEP]\":2", "\"[SEP]\":99999999999", "99999999999");
  check("\"[SEP]\":2", "\"[SEP]\":\"x\"", "[SEP]");
  check("\"normalizer\"",
        "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]},\"normalizer\"",
        "template");
  check("\"normalizer\"", "\"post_processor\":{\"type\":\"ByteLevel\"},\"normalizer\"",
        "ByteLevel");
}

TEST_CASE("vocabularies of other kinds") {
  TemporaryDirectory roberta, japanese;
  roberta.write("tokenizer.json",
                R"({"version":"1.0","added_tokens":[{"id":0,"content":"<s>","special":true}],)"
                R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},)"
                R"("model":{"dropout":null,"unk_token":null,"continuing_subword_prefix":"",)"
                R"("vocab":{"<s>":0,"a":1,"b":2,"ab":3},"merges":["a b"]}})");
  check_error(roberta, "tokenizer.json", "post_processor adds no special tokens");
  japanese.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n\u306e\n");
  japanese.write("tokenizer_config.json",
                 R"({"do_lower_case": false, "word_tokenizer_type": "mecab"})");
  check_error(japanese, "tokenizer_config.json", "mecab");
}

TEST_CASE("real vocabularies of other kinds") {
  if (!test::have_shared("tokenizers/barthez")) return;
  std::string message =
      model_error_of([] { Tokenizer::load(test::shared_path("tokenizers/barthez")); });
  CHECK(contains(message, "BPE"));
  message =
      model_error_of([] { Tokenizer::load(test::shared_path("tokenizers/bert-base-japanese")); });
  CHECK(contains(message, "mecab"));
}

}  // namespace
}  // namespace finetune
