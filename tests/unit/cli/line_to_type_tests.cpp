// Tests of the suggested line for words without option names.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "cli/line_to_type.h"
#include "temporary_directory.h"

using namespace finetune;
using namespace finetune::test;

namespace {

using Words = std::vector<std::string>;

std::string line(const std::string& command, const Words& loose, const Words& options = {},
                 const Words& names = {}) {
  return line_to_type({command, options, names, loose}).value_or("");
}

}  // namespace

TEST_CASE("files and models have their options") {
  CHECK(line("predict", {"m/model.safetensors", "new.csv"}) ==
        "finetune predict --model m/model.safetensors --input new.csv --output -");
  CHECK(line("predict", {"new.csv", "bank-model"}) ==
        "finetune predict --model bank-model --input new.csv --output -");
  CHECK(line("check", {"a.csv"}) == "finetune check --train a.csv");
  CHECK(line("check", {"a.csv", "b.csv"}) == "finetune check --train a.csv --eval b.csv");
  CHECK(line("train", {"a.csv"}) == "finetune train --model MODEL --train a.csv --output DIR");
  CHECK(line("train", {"bert-base-uncased", "a.csv", "runs/a"}) ==
        "finetune train --model bert-base-uncased --train a.csv --output runs/a");
  CHECK(line("evaluate", {"m", "test.csv"}) == "finetune evaluate --model m --data test.csv");
  CHECK(line("adapt", {"texts.txt"}) ==
        "finetune adapt --model MODEL --text texts.txt --output DIR");
  CHECK(line("convert", {"bert", "out"}) == "finetune convert --model bert --output out");
  CHECK(line("tokenize", {"bert", "a.txt"}) == "finetune tokenize --model bert a.txt");
  CHECK(line("sweep", {"grid.toml", "runs/s"}) == "finetune sweep grid.toml --output runs/s");
  CHECK(line("score", {"dev.json", "p.json"}) ==
        "finetune score --data dev.json --predictions p.json");
}

TEST_CASE("given options stay, and free words fill the other places") {
  CHECK(line("evaluate", {"test.csv"}, {"--model", "m", "--label-column", "my label"},
             {"--model", "--label-column"}) ==
        "finetune evaluate --data test.csv --model m --label-column 'my label'");
  CHECK(line("predict", {"extra"}, {"--model=m", "--input=a", "--output=b"},
             {"--model", "--input", "--output"})
            .empty());
}

TEST_CASE("predict's text is suggested as piped input") {
  CHECK(line("predict", {"HOME DEPOT"}) ==
        "echo 'HOME DEPOT' | finetune predict --model MODEL --input - --output -");
  CHECK(line("predict", {"HOME", "DEPOT"}) ==
        "echo 'HOME DEPOT' | finetune predict --model MODEL --input - --output -");
  CHECK(line("predict", {"TIM'S", "DELI"}, {"--model", "m"}, {"--model"}) ==
        "echo 'TIM'\\''S DELI' | finetune predict --input - --output - --model m");
}

TEST_CASE("the kind of a path decides") {
  TemporaryDirectory directory;
  const std::filesystem::path root = directory.path();
  std::filesystem::create_directory(root / "run");
  std::ofstream(root / "rows") << "text\n";
  const std::string run = (root / "run").string(), rows = (root / "rows").string();
  CHECK(line("evaluate", {rows, run}) == "finetune evaluate --model " + run + " --data " + rows);
  CHECK(line_for_path(run) == "finetune inspect " + run);
  CHECK(line_for_path(rows) == "finetune train --model MODEL --train " + rows + " --output DIR");
  CHECK(line_for_path((root / "none").string()) == std::nullopt);
}

TEST_CASE("commands that take words as they are have no line") {
  CHECK(line("compare", {"a"}).empty());
  CHECK(line("doctor", {"a"}).empty());
}
