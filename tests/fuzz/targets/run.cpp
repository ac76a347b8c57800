// Targets of readers of a run: checkpoints, metrics, options, command lines and grids.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/options/config_options.h"
#include "cli/options/option_binding.h"
#include "cli/usage.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "core/files/text_file.h"
#include "core/sha256.h"
#include "experiments/sweep/grid.h"
#include "fuzz/target.h"
#include "fuzz/tiny_checkpoint.h"
#include "train/checkpoint/sealed_file.h"
#include "train/options/config_file.h"
#include "train/options/option_values.h"
#include "train/options/option_words.h"
#include "train/options/options.h"
#include "train/run/metrics_files.h"
#include "unit/weights/hdf5_sums.h"

namespace finetune::fuzz {
namespace {

// A run's checkpoint, behind its seal: read for going on, for `inspect`, and into a model's arenas.
void check_checkpoint(std::string_view input) {
  const fs::path path = scratch_file("step-00000100.h5", input);
  const CheckpointState state = read_checkpoint_state(path);
  require(state.step >= 0 && state.best_step <= state.step && evaluated_step(state) <= state.step,
          "a state that no run has");
  for (const CheckpointTensor& tensor : checkpoint_tensors(path)) {
    for (int64_t extent : tensor.shape)
      require(extent >= 0, in_quotes(tensor.name), " has no size");
  }
  static TinyModel model;
  const CheckpointState again = read_checkpoint(path, model.table, model.arenas());
  require(
      again.step == state.step && again.options == state.options && again.labels == state.labels,
      "a checkpoint reads in two ways");
}

void mend_checkpoint(const std::string& before, std::string& changed) {
  if (changed.size() < kSealBytes) return;
  test::mend_sums(before, changed);
  constexpr size_t kBlock = size_t{1} << 20;
  std::string sums;
  for (size_t at = kSealBytes; at < changed.size(); at += kBlock) {
    sums += sha256_of(std::string_view(changed).substr(at, kBlock));
  }
  std::string seal = concat("finetune checkpoint, format 1\nbytes ", changed.size(),
                            "\nsha256 of 1 MiB blocks ", sha256_of(sums), "\n");
  seal.resize(kSealBytes, '\n');
  changed.replace(0, kSealBytes, seal);
}

const Registration kCheckpointTarget({.name = "checkpoint",
                                      .run = check_checkpoint,
                                      .mend = mend_checkpoint});

// metrics.json, run.json and metrics.jsonl, read and written again.
void check_metrics(const fs::path& path) {
  const auto metrics = read_metrics(path);
  const fs::path copy = scratch_directory() / "copy.json";
  write_metrics(copy, metrics);
  require(read_metrics(copy) == metrics, "metrics come back changed");
}

void check_facts(const fs::path& path) {
  const NamedFacts facts = read_facts(path);
  const fs::path copy = scratch_directory() / "copy.json";
  write_facts(copy, facts);
  require(read_facts(copy) == facts, "facts come back changed");
}

// A resumed run keeps only whole lines of the log.
void check_log(const fs::path& path) {
  read_metrics_log(path);
  { MetricsLog log(path, 1 << 20, 1 << 20); }
  const std::string kept = read_text_file(path);
  require(kept.empty() || kept.back() == '\n', "a line is cut");
  const auto lines = std::count(kept.begin(), kept.end(), '\n');
  require(int64_t(read_metrics_log(path).size()) == lines, "a line that was kept is not read");
}

void check_files(std::string_view input) {
  const fs::path path = scratch_file("metrics.json", input);
  using Check = void (*)(const fs::path&);
  for (const Check check : {Check(check_metrics), Check(check_facts), Check(check_log)}) {
    try {
      check(path);
    } catch (const Error& error) {
      require(error.code() == ExitCode::usage || error.code() == ExitCode::model, error.what());
    }
  }
}

const Registration kMetricsJsonTarget({.name = "metrics_json", .run = check_files});

// config.toml: reading what was written gives the same.

// Names that need no quotes, such as those of options.
bool is_plain(const std::string& name) {
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return c == '-' || (c < 0x80 && std::isalnum(c)); });
}

void check_written(const std::vector<ConfigEntry>& entries) {
  std::vector<ConfigItem> items;
  for (const ConfigEntry& entry : entries) {
    if (is_plain(entry.name)) items.push_back({entry.name, entry.values});
  }
  const auto again = parse_config_text(write_config(items, "written"), "again.toml");
  require(again.size() == items.size(), again.size(), " of ", items.size(), " entries come back");
  for (size_t i = 0; i < items.size(); ++i) {
    require(again[i].name == items[i].name &&
                again[i].values == std::get<std::vector<std::string>>(items[i].value),
            "entry ", in_quotes(items[i].name), " comes back changed");
  }
}

void check_config_toml(std::string_view input) {
  const auto entries = parse_config_text(input, "config.toml");
  require(config_differences(entries, entries, all_option_names()).empty(),
          "a file differs from itself");
  check_written(entries);
  TrainOptions options;
  const std::vector<std::string> names = all_option_names();
  for (const ConfigEntry& entry : entries) {
    if (std::find(names.begin(), names.end(), entry.name) == names.end()) continue;
    if (entry.values.size() == 1) set_option(options, entry.name, entry.values);
  }
  check_config_names(entries, names, "config.toml");
}

const Registration kConfigTomlTarget({.name = "config_toml", .run = check_config_toml});

// A sweep's grid.toml: the runs that it makes.
void check_grid(std::string_view input) {
  const GridFile file = parse_grid(input, "grid.toml");
  require(!file.swept.empty(), "a grid of nothing");
  const Grid grid = expand_grid(file, "sweep");
  std::set<std::string_view> names;
  require(!grid.runs.empty(), "a grid without runs");
  for (const SweepRun& run : grid.runs) {
    require(names.insert(run.name).second, "two runs are named ", in_quotes(run.name));
    require(run.name.size() < 256 && run.name.find('/') == std::string::npos, in_quotes(run.name),
            " is no name of a directory");
    require(run.values.size() == grid.options.size(), "values are not one an option");
  }
}

// Ten thousand runs, each with its options.
const Registration kGridTomlTarget({.name = "grid_toml",
                                    .run = check_grid,
                                    .memory = size_t{256} << 20});

// Converts an input to the words of a command line.

// One word per line; words contain no zero byte.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::string_view line : split(text, '\n'))
    words.emplace_back(line.substr(0, line.find('\0')));
  if (!words.empty() && words.back().empty()) words.pop_back();
  return words;
}

// Parses command lines of all commands without running them.
struct Parsed {};

// Commands own the variables of their options, so their actions cannot be removed.
struct ParsedOnly : CLI::App {
  using CLI::App::App;
  void pre_callback() override { throw Parsed(); }
};

struct Command {
  const char* name;
  void (*add)(Subcommand program, int& exit_code);
};
constexpr Command kCommands[] = {
    {"train", add_train_command},       {"sweep", add_sweep_command},
    {"evaluate", add_evaluate_command}, {"predict", add_predict_command},
    {"tokenize", add_tokenize_command}, {"inspect", add_inspect_command},
    {"convert", add_convert_command},   {"compare", add_compare_command},
    {"report", add_report_command},     {"score", add_score_command},
    {"bench", add_bench_command},       {"plan", add_plan_command},
    {"doctor", add_doctor_command},
};

// As in cli/parser.cpp, without running the command. Creating hundreds of options takes longer than
// parsing, so commands that the words do not start with get none.
void parse(std::vector<std::string> words) {
  ParsedOnly app("", "finetune");
  int exit_code = 0;
  app.set_version_flag("-V,--version", "0", "");
  app.require_subcommand(1);
  app.fallthrough(false);
  for (const Command& command : kCommands) {
    if (!words.empty() && words[0] == command.name) {
      command.add(Subcommand(&app), exit_code);
    } else {
      app.add_subcommand(command.name);
    }
  }
  check_names(app, words);
  const auto solo = make_solo_communicator();
  words = with_config_file(std::move(words), *solo);
  let_last_value_count(app);
  std::reverse(words.begin(), words.end());
  try {
    app.parse(std::move(words));
  } catch (const Parsed&) {
    return;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      require(!app.help().empty(), "no help");
      return;
    }
    require(!usage_message(app, error).empty(), "a mistake without a message");
  }
}

// The words, then the file that --config names.
void check_command_line(std::string_view input) {
  const auto parts = parts_of(input, 2);
  const fs::path config = scratch_file("config.toml", parts[1]);
  std::vector<std::string> words = words_of(parts[0]);
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with("--config=")) words[i] = concat("--config=", config.string());
    if (words[i] == "--config" && i + 1 < words.size()) words[i + 1] = config.string();
  }
  parse(std::move(words));
}

const Registration kCommandLineTarget({.name = "command_line", .run = check_command_line});

// train's options: valid ones survive config.toml and the transfer between processes.
TrainOptions options_of(const std::vector<ConfigEntry>& entries) {
  TrainOptions options;
  for (const ConfigEntry& entry : entries) {
    if (entry.values.empty()) continue;
    const std::string fault = set_option(options, entry.name, entry.values);
    require(fault.empty(), in_quotes(entry.name), " is written, but: ", fault);
  }
  return options;
}

void check_train_options(std::string_view input) {
  Parser parser("finetune", "", "0");
  TrainOptions options;
  const Subcommand command = parser.root().add_subcommand("train", "");
  add_options(command, train_options(), options, {.command = commands::train});
  std::vector<std::string> words = words_of(input);
  words.insert(words.begin(), "train");
  parser.check_names(words);
  if (parser.parse(words)) return;
  validate(options);
  const std::string config = write_config(config_items(options), "");
  const TrainOptions again = options_of(parse_config_text(config, "config.toml"));
  require(write_config(config_items(again), "") == config, "options come back changed: ", config);
  require(write_config(config_items(options_from_text(options_to_text(options))), "") == config,
          "options are not the same on another process");
}

const Registration kTrainOptionsTarget({.name = "train_options", .run = check_train_options});

}  // namespace
}  // namespace finetune::fuzz
