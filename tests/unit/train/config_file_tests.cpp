// config.toml: reading, writing, syntax errors, differences.
#include <doctest/doctest.h>

#include <limits>

#include "../contains.h"
#include "core/error.h"
#include "core/files/files.h"
#include "error_line.h"
#include "temporary_directory.h"
#include "train/options/config_file.h"

using namespace finetune;
using finetune::test::contains;

namespace {

std::string failure(const std::string& text) {
  return test::error_line(ExitCode::usage, [&] { parse_config_text(text, "run.toml"); });
}

std::string one_value(const std::string& text) {
  auto entries = parse_config_text("x = " + text, "run.toml");
  REQUIRE(entries.size() == 1);
  REQUIRE(entries[0].values.size() == 1);
  return entries[0].values[0];
}

}  // namespace

TEST_CASE("written files read back") {
  std::string awkward = "a \"b\" \\ \t\n\x01\x7f é 漢 '#' = [x]";
  std::vector<ConfigItem> items{{"task", std::string("qa")},
                                {"lr", 5e-5},
                                {"epochs", 3.0},
                                {"third", 1.0 / 3.0},
                                {"batch-size", int64_t{32}},
                                {"max-steps", int64_t{-1}},
                                {"regression", false},
                                {"no-shuffle", true},
                                {"multi-label", awkward},
                                {"empty", std::string()},
                                {"train", std::vector<std::string>{"a.csv", awkward}},
                                {"eval", std::vector<std::string>{}}};
  std::string text = write_config(items, "finetune 0.1.0: the options of this run");
  CHECK(
      text.starts_with("# finetune 0.1.0: the options of this run\ntask = \"qa\"\nlr = 5e-05\n"
                       "epochs = 3.0\n"));
  auto entries = parse_config_text(text, "config.toml");
  REQUIRE(entries.size() == items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    CHECK(entries[i].name == items[i].name);
    CHECK(entries[i].line == int(i) + 2);
    CHECK(entries[i].is_array == std::holds_alternative<std::vector<std::string>>(items[i].value));
  }
  CHECK(*parse_double(entries[1].values[0]) == 5e-5);
  CHECK(*parse_double(entries[3].values[0]) == 1.0 / 3.0);
  CHECK(entries[4].values[0] == "32");
  CHECK(entries[5].values[0] == "-1");
  CHECK(entries[6].values[0] == "false");
  CHECK(entries[8].values[0] == awkward);
  CHECK(entries[9].values[0] == "");
  CHECK(entries[10].values == std::vector<std::string>{"a.csv", awkward});
  CHECK(entries[11].values.empty());
}

TEST_CASE("TOML as people write it") {
  auto entries = parse_config_text(
      "\xEF\xBB\xBF# my run\r\n\n"
      "batch_size=16 # small\r\n"
      "  'label-column' = 'C:\\dir'\n"
      "text-column = [ # two\n  \"a\", \n  'b',\n]\n"
      "epochs = +1_000",
      "run.toml");
  REQUIRE(entries.size() == 4);
  CHECK(entries[0].name == "batch-size");
  CHECK(entries[0].values[0] == "16");
  CHECK(entries[0].line == 3);
  CHECK(entries[1].name == "label-column");
  CHECK(entries[1].values[0] == "C:\\dir");
  CHECK(entries[2].values == std::vector<std::string>{"a", "b"});
  CHECK(entries[3].values[0] == "1000");
  CHECK(entries[3].line == 9);
  CHECK(one_value(R"("\u00e9\U0001F600\"\\\t")") == "é😀\"\\\t");
  CHECK(one_value("true") == "true");
  CHECK(one_value("-0.5e-3") == "-0.5e-3");
  CHECK(one_value("\"#no comment\"") == "#no comment");
  CHECK(parse_config_text("", "x").empty());
}

TEST_CASE("syntax errors name file and line") {
  struct Case {
    const char* text;
    const char* part;
  };
  for (const Case& wrong : std::initializer_list<Case>{
           {"\nlr", "run.toml:2: '=' is missing after 'lr'"},
           {"lr =", "a value is missing"},
           {"lr = fast", "'fast' is not a value"},
           {"lr = 1e", "'1e' is not a value"},
           {"lr = 1__0", "'1__0' is not a value"},
           {"lr = \"a", "not closed"},
           {"lr = \"a\nb\"", "run.toml:1: a string is not closed"},
           {"lr = [1, 2", "']' is missing"},
           {"lr = [1 2]", "',' or ']' is missing"},
           {"lr = [[1]]", "array inside an array"},
           {"lr = \"\"\"a\"\"\"", "multi-line"},
           {"lr = '\\' 5", "unexpected text"},
           {"lr = \"\\q\"", "not an escape"},
           {"lr = \"\\ud800\"", "not an escape"},
           {"lr = \"\\u12", "not an escape"},
           {"lr = 5 6", "unexpected text after the value of 'lr'"},
           {"[train]\nlr = 5", "tables are not used here"},
           {"= 5", "name = value"},
           {"lr = 1\n\nlr = 2", "run.toml:3: option 'lr' occurs twice (first in line 1)"},
           {"a = 1\nb = \"\xff\"", "run.toml:2: is not valid UTF-8"},
           {"date = 2020-01-01", "is not a value"}}) {
    CAPTURE(wrong.text);
    std::string message = failure(wrong.text);
    CAPTURE(message);
    CHECK(message.find("run.toml:") == 0);
    CHECK(contains(message, wrong.part));
  }
}

TEST_CASE("what a run has kept is part of it, and control bytes are shown as such") {
  for (ExitCode code : {ExitCode::usage, ExitCode::model}) {
    CHECK(test::error_line(code, [&] { parse_config_text("\x1b[2J", "step.h5", code); }) != "");
  }
  CHECK(contains(failure("lr = \x1b[31m\a"), "'\\x1b[31m\\x07' is not a value"));
  CHECK(contains(failure("lr = \"\\\x9b\""), "is not valid UTF-8"));
  CHECK(contains(failure("lr = \"\\\x1b\""), "'\\\\x1b' is not an escape"));
}

TEST_CASE("unknown options are refused with the closest name") {
  auto entries = parse_config_text("lr = 1\n\nbatch_sise = 8\n", "run.toml");
  check_config_names(parse_config_text("lr = 1", "run.toml"), {"lr"}, "run.toml");
  CHECK_THROWS_WITH_AS(check_config_names(entries, {"lr", "batch-size"}, "run.toml"),
                       "run.toml:3: unknown option 'batch-sise' (did you mean batch-size?)", Error);
  CHECK_THROWS_WITH_AS(check_config_names(entries, {"lr", "seed"}, "run.toml"),
                       "run.toml:3: unknown option 'batch-sise'", Error);
  test::TemporaryDirectory directory;
  CHECK_THROWS_WITH_AS(read_config(directory / "absent.toml"), doctest::Contains("absent.toml"),
                       Error);
}

TEST_CASE("differences between two configurations") {
  auto there = parse_config_text("lr = 5e-5\nseed = 1\ntext-column = ['a', 'b']\nx = 1", "a");
  auto now = parse_config_text("lr = 0.00005\nseed = 2\ntext-column = ['a']\ny = 1", "b");
  CHECK(config_differences(there, now, {"lr", "seed", "text-column", "x", "absent"}) ==
        std::vector<std::string>{"seed (1 there, 2 now)", "text-column (a, b there, a now)",
                                 "x (1 there, not set now)"});
}
