// finetune tokenize, through the program.
#include <sys/wait.h>

#include <algorithm>

#include "../contains.h"
#include "support.h"

namespace finetune {

using test::contains;
namespace {

using test::have_shared;
using test::shared_path;
using test::TemporaryDirectory;

struct Result {
  int code = -1;
  std::string out;
  std::string error;
};

bool have_program() {
  const char* program = std::getenv("FINETUNE_BINARY");
  if (program && fs::exists(program)) return true;
  test::skip("the program is not built");
  return false;
}

Result run(const TemporaryDirectory& directory, const std::string& arguments,
           std::string_view input = "") {
  directory.write("input", input);
  auto at = [&](const char* name) { return (directory.path() / name).string(); };
  std::string command = concat(std::getenv("FINETUNE_BINARY"), " tokenize ", arguments, " <",
                               at("input"), " >", at("out"), " 2>", at("error"));
  int status = std::system(command.c_str());
  return {WEXITSTATUS(status), read_text_file(at("out")), read_text_file(at("error"))};
}

TEST_CASE("tokenize: lines of text") {
  if (!have_program() || !have_shared("tokenizers/bert-base-uncased")) return;
  TemporaryDirectory directory;
  std::string model = "--model " + shared_path("tokenizers/bert-base-uncased").string();
  Result result = run(directory, model, "caf\u00e9 \u4e2d\n\nhi\r\nlast");
  CHECK(result.code == 0);
  CHECK(result.error == "");
  CHECK(result.out ==
        "{\"ids\":[101,7668,1746,102],\"tokens\":[\"[CLS]\",\"cafe\",\"\u4e2d\",\"[SEP]\"],"
        "\"offsets\":[[0,0],[0,4],[5,6],[0,0]]}\n"
        "{\"ids\":[101,102],\"tokens\":[\"[CLS]\",\"[SEP]\"],\"offsets\":[[0,0],[0,0]]}\n"
        "{\"ids\":[101,7632,102],\"tokens\":[\"[CLS]\",\"hi\",\"[SEP]\"],"
        "\"offsets\":[[0,0],[0,2],[0,0]]}\n"
        "{\"ids\":[101,2197,102],\"tokens\":[\"[CLS]\",\"last\",\"[SEP]\"],"
        "\"offsets\":[[0,0],[0,4],[0,0]]}\n");
  CHECK(run(directory, model + " --max_length 4 -", "a b c d").out.find("[101,1037,1038,102]") !=
        std::string::npos);
  CHECK(run(directory, model, "").out == "");
}

TEST_CASE("tokenize: JSON lines") {
  if (!have_program() || !have_shared("tokenizers/bert-base-uncased")) return;
  TemporaryDirectory directory;
  std::string model =
      "--model " + shared_path("tokenizers/bert-base-uncased").string() + " --jsonl";
  Result pair = run(directory, model, "{\"text\":\"a b\",\"text_pair\":\"c\"}\n");
  CHECK(pair.code == 0);
  CHECK(pair.out ==
        "{\"ids\":[101,1037,1038,102,1039,102],"
        "\"tokens\":[\"[CLS]\",\"a\",\"b\",\"[SEP]\",\"c\",\"[SEP]\"],"
        "\"offsets\":[[0,0],[0,1],[2,3],[0,0],[0,1],[0,0]]}\n");
  Result windows = run(directory, model + " --max-length 7 --doc-stride 1",
                       "{\"question\":\"a\",\"context\":\"b c d e f\"}\n");
  CHECK(windows.code == 0);
  CHECK(windows.out ==
        "{\"ids\":[101,1037,102,1038,1039,1040,102],"
        "\"tokens\":[\"[CLS]\",\"a\",\"[SEP]\",\"b\",\"c\",\"d\",\"[SEP]\"],"
        "\"offsets\":[null,null,null,[0,1],[2,3],[4,5],null]}\n"
        "{\"ids\":[101,1037,102,1040,1041,1042,102],"
        "\"tokens\":[\"[CLS]\",\"a\",\"[SEP]\",\"d\",\"e\",\"f\",\"[SEP]\"],"
        "\"offsets\":[null,null,null,[4,5],[6,7],[8,9],null]}\n");
}

TEST_CASE("tokenize: errors are one line with the right exit code") {
  if (!have_program() || !have_shared("tokenizers/bert-base-uncased")) return;
  TemporaryDirectory directory;
  std::string model = "--model " + shared_path("tokenizers/bert-base-uncased").string();
  auto check = [&](const std::string& arguments, std::string_view input, int code,
                   std::string_view part) {
    Result result = run(directory, arguments, input);
    CAPTURE(arguments);
    CAPTURE(result.error);
    CHECK(result.code == code);
    CHECK(result.error.starts_with("finetune: error: "));
    CHECK(std::count(result.error.begin(), result.error.end(), '\n') == 1);
    CHECK(contains(result.error, part));
  };
  check("", "", 2, "--model");
  check(model + " --max-length x", "", 2, "--max-length");
  check(model + " --wrong", "", 2, "--wrong");
  check(model + " /nowhere/file", "", 3, "/nowhere/file");
  check(model + " " + directory.path().string(), "", 3, "directory");
  check("--model " + directory.path().string(), "", 4, "vocab.txt");
  check(model + " --jsonl", "{\"text\":\"a\"}\n{\"text\":\n", 3, "standard input:2:");
  check(model + " --jsonl", "{\"question\":\"a\"}\n", 3, "context");
  check(model + " --jsonl", "{\"text\":3}\n", 3, "text");
  check(model + " --jsonl", "[]\n", 3, ":1:");
  check(model + " --jsonl --max-length 10 --doc-stride 8",
        "{\"question\":\"a\",\"context\":\"a b c d e f g h i j\"}\n", 3, "--doc-stride");
}

}  // namespace
}  // namespace finetune
