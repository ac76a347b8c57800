// A sweep's grid: its file, combinations, draws, and errors.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "../contains.h"
#include "core/error.h"
#include "error_line.h"
#include "experiments/sweep/grid.h"
#include "train/options/option_words.h"

using namespace finetune;
using finetune::test::contains;

namespace {

const std::string kFixed = "model = 'm'\ntrain = ['a.csv', 'b.csv']\neval = 'e.csv'\n";

Grid grid_of(const std::string& sweep, const std::string& fixed = kFixed) {
  return expand_grid(parse_grid(fixed + "[sweep]\n" + sweep, "grid.toml"), "out");
}

std::vector<std::string> names_of(const Grid& grid) {
  std::vector<std::string> names;
  for (const SweepRun& run : grid.runs) names.push_back(run.name);
  return names;
}

std::string grid_failure(const std::string& text) {
  return test::error_line(ExitCode::usage,
                          [&] { expand_grid(parse_grid(text, "grid.toml"), "out"); });
}

void refuses(const std::string& text, const std::vector<std::string>& words) {
  const std::string message = grid_failure(text);
  CAPTURE(text);
  CAPTURE(message);
  for (const std::string& word : words) CHECK(contains(message, word));
}

}  // namespace

TEST_CASE("a grid has all combinations, the last option changes fastest") {
  const Grid grid = grid_of("lr = [1e-4, 0.0003]\nseed = [ 1,\n 2, # two\n]\n");
  CHECK(names_of(grid) == std::vector<std::string>{"lr=1e-4,seed=1", "lr=1e-4,seed=2",
                                                   "lr=3e-4,seed=1", "lr=3e-4,seed=2"});
  CHECK(grid.options == std::vector<std::string>{"lr", "seed"});
  CHECK(grid.runs[3].options.learning_rate == 3e-4);
  CHECK(grid.runs[3].options.seed == 2);
  CHECK(grid.runs[3].options.train == std::vector<std::string>{"a.csv", "b.csv"});
  CHECK(grid.runs[3].options.output == "out/lr=3e-4,seed=2");
  CHECK(grid.runs[3].values == std::vector<std::string>{"3e-4", "2"});
  // A run's name does not depend on how a number is written.
  CHECK(names_of(grid_of("lr = [0.0001, +3e-4]\nseed = [1, 2]\n")) == names_of(grid));
}

TEST_CASE("options of every kind can differ") {
  const Grid grid = grid_of(
      "schedule = ['linear', \"cosine\"]\nno-shuffle = [true, false]\nmax_length = [64]\n"
      "text-column = [['a', 'b'], 'c']\nfreeze = ['none', '1']\nmicro-batch-tokens = ['auto', "
      "512]\n");
  CHECK(grid.runs.size() == 2 * 2 * 2 * 2 * 2);
  CHECK(grid.runs[0].name ==
        "schedule=linear,no-shuffle=true,max-length=64,text-column=a%2Cb,freeze=none,"
        "micro-batch-tokens=auto");
  CHECK(grid.runs[0].options.text_columns == std::vector<std::string>{"a", "b"});
  CHECK(grid.runs[0].options.no_shuffle);
  CHECK(grid.runs[0].options.max_length == 64);
  CHECK_FALSE(grid.runs[0].options.micro_batch_tokens);
  CHECK(grid.runs.back().options.schedule == "cosine");
  CHECK(grid.runs.back().options.micro_batch_tokens == 512);
  // No name leaves the directory, or is longer than a file system allows.
  const Grid paths = grid_of("baseline = ['../x', '..']\ntolerance = [['a=1']]\n");
  CHECK(paths.runs[0].name == "baseline=..%2Fx,tolerance=a%3D1");
  const Grid lengthy = grid_of("multi-label = ['" + std::string(300, 'x') + "', '" +
                               std::string(300, 'x') + "y']\n");
  CHECK(lengthy.runs[0].name.size() < 100);
  CHECK(lengthy.runs[0].name != lengthy.runs[1].name);
}

TEST_CASE("draws lie in their range, go on with more of them, and depend on the seed") {
  const auto draws = [](int count, const std::string& more = "") {
    return names_of(grid_of(
        concat("lr = { min = 1e-5, max = 1e-3, log = true, draws = ", count, more, " }\n")));
  };
  const auto eight = draws(8), sixteen = draws(16);
  CHECK(eight.size() == 8);
  CHECK(std::equal(eight.begin(), eight.end(), sixteen.begin()));
  CHECK(draws(8, ", seed = 42") == eight);
  CHECK(draws(8, ", seed = 7") != eight);
  const Grid many = grid_of("lr = { min = 1e-5, max = 1e-3, log = true, draws = 200 }\n");
  int64_t low = 0;
  for (const SweepRun& run : many.runs) {
    CHECK(run.options.learning_rate >= 1e-5);
    CHECK(run.options.learning_rate <= 1e-3);
    CHECK(run.name.size() <= std::string("lr=0.000123").size());  // three digits
    low += run.options.learning_rate < 1e-4;
  }
  CHECK(low > 80);  // half of the logarithms
  CHECK(low < 120);
  // Whole numbers, all of which occur.
  std::set<int64_t> sizes;
  for (const SweepRun& run : grid_of("batch-size = { min = 4, max = 7, draws = 4 }\n").runs) {
    sizes.insert(*run.options.batch_size);
  }
  CHECK(sizes == std::set<int64_t>{4, 5, 6, 7});
}

TEST_CASE("ranges without draws of their own are drawn together") {
  const Grid grid = grid_of(
      "draws = 5\ndraw-seed = 3\nlr = { min = 1e-5, max = 1e-3, log = true }\nseed = [1, 2]\n"
      "dropout = { min = 0, max = 0.5 }\n");
  CHECK(grid.runs.size() == 10);
  CHECK(grid.options == std::vector<std::string>{"lr", "seed", "dropout"});
  std::set<std::pair<double, double>> points;
  for (const SweepRun& run : grid.runs) {
    points.emplace(*run.options.learning_rate, *run.options.dropout);
  }
  CHECK(points.size() == 5);
  // Each option has its own draws: adding another option changes none.
  const Grid alone = grid_of(
      "draws = 5\ndraw-seed = 3\nlr = { min = 1e-5, max = 1e-3, log = true }\nseed = [1, 2]\n");
  for (size_t r = 0; r < 10; ++r) {
    CHECK(alone.runs[r].options.learning_rate == grid.runs[r].options.learning_rate);
  }
}

TEST_CASE("numbers in names are short") {
  CHECK(number_word(1e-4) == "1e-4");
  CHECK(number_word(0.001) == "0.001");
  CHECK(number_word(3e6) == "3e6");
  CHECK(number_word(1.25e-10) == "1.25e-10");
  CHECK(number_word(0) == "0");
  CHECK(number_word(-2.5) == "-2.5");
}

TEST_CASE("what is wrong with a grid names its line, its value and what to do") {
  refuses("model = 'm'\n", {"grid.toml:", "no table [sweep]"});
  refuses(kFixed + "[sweep]\n", {"grid.toml:", "names no option"});
  refuses(kFixed + "[grid]\nlr = [1]\n", {"grid.toml:4", "'grid'", "[sweep]"});
  refuses(kFixed + "[sweep]\nlr = [1e-4]\n[sweep]\n", {"grid.toml:6", "second table"});
  refuses(kFixed + "[sweep]\nlrr = [1e-4]\n", {"grid.toml:5", "'lrr'", "did you mean lr?"});
  refuses("lrr = 3\n" + kFixed + "[sweep]\nlr = [1e-4]\n", {"grid.toml:1", "'lrr'", "lr?"});
  refuses(kFixed + "[sweep]\nlearning_rate = [1]\n", {"grid.toml:5", "--lr"});
  refuses(kFixed + "[sweep]\nlr = []\n", {"grid.toml:5", "lr", "empty"});
  refuses(kFixed + "[sweep]\nlr = 1e-4\n", {"grid.toml:5", "lr", "write a list"});
  refuses(kFixed + "[sweep]\nlr = [1e-4, 'fast']\n", {"grid.toml:5", "lr", "'fast'", "number"});
  refuses(kFixed + "[sweep]\nlr = [1e-4, 5000]\n", {"grid.toml:5", "lr", "5000", "below 1000"});
  refuses(kFixed + "[sweep]\nseed = [1, -2]\n", {"grid.toml:5", "seed", "'-2'"});
  refuses(kFixed + "[sweep]\nlr = [1e-4, 0.0001]\n", {"grid.toml:5", "lr", "'0.0001'", "twice"});
  refuses(kFixed + "[sweep]\nlr = [[1e-4, 2e-4]]\n", {"grid.toml:5", "lr", "one word"});
  refuses(kFixed + "[sweep]\nlr = [1e-4]\nlr = [2e-4]\n", {"grid.toml:6", "'lr'", "line 5"});
  refuses(kFixed + "lr = 1\n[sweep]\nlr = [1e-4]\n", {"grid.toml:6", "lr", "line 4"});
  refuses(kFixed + "[sweep]\noutput = ['a']\n", {"grid.toml:5", "output", "whole sweep"});
  refuses(kFixed + "resume = true\n[sweep]\nlr = [1]\n", {"grid.toml:4", "resume", "leave it out"});
  refuses(kFixed + "lr = [1, 2]\n[sweep]\nseed = [1]\n", {"grid.toml:4", "lr", "[sweep]"});
  refuses(kFixed + "epochs = 'many'\n[sweep]\nseed = [1]\n", {"grid.toml:4", "epochs", "'many'"});
  refuses(kFixed + "[sweep]\nschedule = ['linear', 'cosin']\n",
          {"grid.toml:5", "'cosin'", "cosine"});
  refuses(kFixed + "[sweep]\neval-fraction = [0, 0.5]\n", {"run eval-fraction=0.5", "exclude"});
  refuses("model = 'm'\n[sweep]\nlr = [1]\n", {"--train is required"});
  const auto range = [](const std::string& text) {
    return kFixed + "[sweep]\nlr = {" + text + "}\n";
  };
  refuses(range("min = 1"), {"grid.toml:5", "min and max"});
  refuses(range("min = 2, max = 1, draws = 3"), {"grid.toml:5", "min 2 is not below max 1"});
  refuses(range("min = -1e308, max = 1.5e308, draws = 3"), {"grid.toml:5", "too wide"});
  refuses(kFixed + "[sweep]\nbatch-size = { min = 8, max = 1e90, draws = 3 }\n",
          {"batch-size", "2^53"});
  refuses(kFixed + "[sweep]\nbatch-size = { min = 1.2, max = 1.8, draws = 1 }\n",
          {"batch-size", "no whole number", "1.2"});
  refuses(range("min = 0, max = 1, log = true, draws = 3"), {"grid.toml:5", "no logarithm"});
  refuses(range("min = 0, max = 1"), {"grid.toml:5", "lr", "draws"});
  refuses(range("min = 0, max = 1, draws = 0"), {"grid.toml:5", "draws", "'0'"});
  refuses(range("min = 0, max = 1, steps = 3"), {"grid.toml:5", "'steps'", "draws"});
  refuses(range("min = 0, max = 1 draws = 3"), {"grid.toml:5", "','"});
  refuses(range("min = 0, max = 5000, draws = 50"), {"grid.toml:5", "below 1000"});
  refuses(kFixed + "[sweep]\nbatch-size = { min = 1, max = 3, draws = 4 }\n",
          {"grid.toml:5", "only 3 values for 4 draws"});
  refuses(range("min = 1, min = 2, max = 3, draws = 3"), {"grid.toml:5", "'min' occurs twice"});
  refuses(range("min = 1, max = 3, draws = 3, draws = 4"), {"'draws' occurs twice"});
  for (const char* name : {"draws", "draw-seed"}) {
    refuses(kFixed + concat("[sweep]\n", name, " = 2\n", name, " = 3\nlr = { min = 1, max = 2 }\n"),
            {"grid.toml:6", "occurs twice (first in line 5)", name});
  }
  std::string many;
  for (int i = 0; i < 1001; ++i) many += concat("option-", i, " = [1]\n");
  refuses(kFixed + "[sweep]\n" + many, {"grid.toml:1005", "more entries than there are options"});
  refuses(kFixed + "[sweep]\nschedule = { min = 1, max = 3, draws = 2 }\n",
          {"grid.toml:5", "not a number", "list"});
  refuses(kFixed + "[sweep]\ndraws = 3\nlr = [1e-4]\n", {"draws in [sweep]"});
  refuses(kFixed + "[sweep]\nseed = { min = 1, max = 9000, draws = 9000 }\nlr = [1, 2]\n",
          {"more than 10000 runs"});
}
