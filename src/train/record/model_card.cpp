// Writes model cards.
#include "train/record/model_card.h"

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/files/files.h"
#include "core/files/text_file.h"
#include "core/text/counted.h"
#include "core/text/printable.h"
#include "core/text/quoted_string.h"
#include "core/text/shell_word.h"
#include "core/text/shown_numbers.h"
#include "engine/export_model.h"
#include "tasks/baseline.h"
#include "tasks/registry.h"
#include "tasks/scores/main_measure.h"
#include "tasks/scores/metric_table.h"
#include "tasks/scores/result_lines.h"
#include "train/options/table/option_table.h"
#include "train/record/card_lines.h"
#include "train/record/result_line.h"
#include "weights/hub_cache.h"

namespace finetune {
namespace {

// Quotes `text` as a double-quoted scalar of YAML.
std::string yaml(std::string_view text) {
  return double_quoted(printable(text));
}

// Escapes `text` so that Markdown shows it unchanged.
std::string markdown(std::string_view text) {
  constexpr std::string_view kMarkup = "\\`*_[]<>|~&#$";
  std::string out;
  for (const char c : printable(text)) {
    if (kMarkup.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string file_names(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const std::string& path : paths) names.push_back(fs::path(path).filename().string());
  return join(names, ", ");
}

// Facts from the card of the pretrained model.
struct BaseCard {
  std::string model;  // its name on the hub; empty: unknown
  std::string license;
  std::vector<std::string> languages;
};

bool is_plain(std::string_view value) {
  const auto fits = [](char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '-' ||
           c == '.' || c == '/' || c == '_';
  };
  return !value.empty() && value.size() <= 100 && std::all_of(value.begin(), value.end(), fits);
}

// A scalar of YAML without its quotes and without the comment after it; empty for null.
std::string_view scalar(std::string_view value) {
  value = trim(value);
  if (value.starts_with('"') || value.starts_with('\'')) {
    const size_t end = value.find(value.front(), 1);
    return end == value.npos ? "" : value.substr(1, end - 1);
  }
  if (value.starts_with('#')) return "";
  value = trim(value.substr(0, value.find(" #")));
  return value == "null" || value == "Null" || value == "NULL" || value == "~" ? "" : value;
}

// Returns the scalar if it has only plain characters, else "".
std::string_view plain_scalar(std::string_view value) {
  value = scalar(value);
  return is_plain(value) ? value : "";
}

void add_languages(std::string_view value, std::vector<std::string>& languages) {
  value = trim(value);
  const bool is_list = value.starts_with('[');
  if (is_list) value = value.substr(1, std::min(value.find(']'), value.size()) - 1);
  for (std::string_view each : is_list ? split(value, ',') : std::vector{value}) {
    if (const auto language = plain_scalar(each); !language.empty()) {
      languages.emplace_back(language);
    }
  }
}

// Returns the beginning of a card, or "" if there is none or it cannot be read.
std::string card_text(const fs::path& path) {
  constexpr size_t kMost = 1 << 16;
  try {
    return read_beginning(path, kMost, ExitCode::model);
  } catch (const Error&) {
    return "";
  }
}

// Reads the few keys that the new card needs; leaves out values in unusual forms.
BaseCard read_card(const fs::path& path) {
  BaseCard card;
  std::string text = card_text(path);
  std::erase(text, '\r');
  if (!text.starts_with("---\n")) return card;
  const bool is_own = text.find(kCardMarker) != std::string::npos;
  const std::string_view front = std::string_view(text).substr(0, text.find("\n---", 3));
  std::string_view key;
  for (std::string_view line : split(front, '\n')) {
    const std::string_view content = trim(line);
    if (content.empty() || content.starts_with('#')) continue;
    if (content.starts_with("- ")) {
      if (key == "language") add_languages(content.substr(2), card.languages);
      continue;
    }
    const size_t colon = std::min(line.find(':'), line.size());
    key = line.substr(0, colon);
    const std::string_view value = line.substr(std::min(colon + 1, line.size()));
    const std::string_view name = plain_scalar(value);
    if (key == "language") add_languages(value, card.languages);
    if (key == "license") card.license = name;
    if (key == "base_model" && is_own) card.model = name;
  }
  return card;
}

// The pretrained model's id on the hub, or else its directory's name.
std::string name_of_base(const fs::path& base) {
  if (const auto origin = hub_origin(base)) return origin->id;
  return fs::absolute(base / "").lexically_normal().parent_path().filename().string();
}

std::string_view purpose(const ModelCard& card) {
  if (card.given.regression) return "regression";
  if (!card.given.multi_label.empty()) return "classification with several labels a text";
  return traits_of(card.task).title;
}

// "dev.csv", or "train.csv (held out)".
std::string evaluation_data(const ModelCard& card) {
  if (card.given.folds) {
    return concat(file_names(card.given.train), " (out of ", *card.given.folds, " folds)");
  }
  return card.given.eval.empty() ? file_names(card.given.train) + " (held out)"
                                 : file_names(card.given.eval);
}

std::vector<MetricInfo> metrics_in(const ModelCard& card) {
  std::vector<MetricInfo> found;
  for (const MetricInfo& metric : kMetricTable) {
    if (metric.hub.empty() || is_repeated_measure(metric.name, card.metrics)) continue;
    if (card.metrics.contains(std::string(metric.name))) found.push_back(metric);
  }
  return found;
}

std::string title_of(const MetricInfo& metric) {
  return concat(metric.title, metric.is(kPercent) ? " (0 to 100)" : "");
}

double value_of(const MetricInfo& metric, const ModelCard& card) {
  return card.metrics.at(std::string(metric.name));
}

// The metric without the n-grams, if the model is mixed with them.
std::optional<double> value_alone(const MetricInfo& metric, const Metrics& metrics) {
  constexpr size_t kPrefix = std::string_view("eval_").size();
  const auto found = metrics.find(concat("baseline_unmixed_", metric.name.substr(kPrefix)));
  return found == metrics.end() ? std::nullopt : std::optional(found->second);
}

std::string title_of(const ModelCard& card) {
  const std::string base = name_of_base(card.base), data = file_names(card.given.train);
  return is_quick(card.given) ? concat("a linear head on the frozen ", base, ", fitted to ", data)
                              : concat(base, " fine-tuned on ", data);
}

// Lists the model's results in the form that the hub's index of models uses.
std::string model_index(const ModelCard& card) {
  const std::vector<MetricInfo> metrics = metrics_in(card);
  if (metrics.empty()) return "";
  std::string text = "metrics:\n", listed;
  for (const MetricInfo& metric : metrics) {
    const std::string line = concat("- ", metric.hub, "\n");
    if (listed.find(line) == std::string::npos) listed += line;
  }
  text += concat(listed, "model-index:\n- name: ", yaml(title_of(card)),
                 "\n  results:\n  - task:\n      type: ", traits_of(card.task).hub_task,
                 "\n    dataset:\n      name: ", yaml(evaluation_data(card)),
                 "\n      type: ", traits_of(card.task).hub_data, "\n    metrics:\n");
  const auto list = [&](const MetricInfo& metric, std::string_view whose, double value) {
    text +=
        concat("    - type: ", metric.hub, "\n      name: ", yaml(concat(title_of(metric), whose)),
               "\n      value: ", number_text(value), "\n");
  };
  const auto alone = [&](const MetricInfo& metric) { return value_alone(metric, card.metrics); };
  for (const MetricInfo& metric : metrics) {
    if (alone(metric)) list(metric, ", the model alone, as transformers loads it", *alone(metric));
  }
  for (const MetricInfo& metric : metrics) {
    list(metric, alone(metric) ? " with n-grams, as finetune predicts" : "",
         value_of(metric, card));
  }
  return text;
}

std::string front_matter(const ModelCard& card) {
  BaseCard base = read_card(card.base / kModelCardFile);
  if (const auto origin = hub_origin(card.base)) base.model = origin->id;
  std::string text = concat(
      "---\nlibrary_name: transformers\npipeline_tag: ", traits_of(card.task).hub_task, "\n");
  if (!base.model.empty()) text += concat("base_model: ", yaml(base.model), "\n");
  if (!base.license.empty()) text += concat("license: ", yaml(base.license), "\n");
  if (!base.languages.empty()) text += "language:\n";
  for (const std::string& language : base.languages) text += concat("- ", yaml(language), "\n");
  text += concat("tags:\n- finetune\n- ", yaml(card.model_type), "\n", model_index(card), "---\n");
  return text;
}

std::string results(const ModelCard& card) {
  const std::vector<std::string> lines = result_lines(card.metrics);
  if (lines.empty() && card.eval_rows == 0)
    return "No rows were held out: how good the model is, is not known.\n";
  std::string text;
  for (const std::string& line : lines) text += concat("- ", markdown(line), "\n");
  text += "\n| measure | value |\n|---|---|\n";
  for (const MetricInfo& metric : metrics_in(card)) {
    text += concat("| ", title_of(metric), " | ", three_digits(value_of(metric, card)), " |\n");
  }
  return text;
}

std::string data(const ModelCard& card) {
  const auto row = [](std::string_view name, const std::string& value) {
    return value.empty() ? "" : concat("| ", name, " | ", markdown(value), " |\n");
  };
  const bool has_eval = card.eval_rows > 0;
  const auto count = [&](int64_t rows) { return counted(rows, traits_of(card.task).example); };
  const TrainOptions& given = card.given;
  return concat(
      "| | |\n|---|---|\n",
      row("training", concat(file_names(given.train), ": ", count(card.train_rows))),
      has_eval ? row("evaluation", concat(evaluation_data(card), ": ", count(card.eval_rows))) : "",
      row("text", join(given.text_columns, ", ")), row("second text", given.text_pair_column),
      row("numbers", join(given.number_columns, ", ")),
      row("categories", join(given.category_columns, ", ")),
      card.task != TaskKind::classification
          ? ""
          : row(given.regression ? "number" : "label", given.label_column),
      row(given.train.size() + given.eval.size() > 1 ? "sha256 of the files' sha256" : "sha256",
          card.data_sha256));
}

std::string labels(const ModelCard& card) {
  constexpr size_t kMost = 100;
  if (card.labels.empty()) return "";
  std::vector<std::string> names;
  for (const std::string& label : card.labels) names.push_back(markdown(label));
  std::string more;
  if (names.size() > kMost) {
    more = concat("; and ", names.size() - kMost, " more (id2label in config.json)");
    names.resize(kMost);
  }
  return concat("\n## Labels\n\n", card.labels.size(), ": ", join(names, "; "), more, ".\n");
}

std::string limits(const ModelCard& card) {
  const bool has_windows = card.task == TaskKind::qa || card.given.long_text == "windows";
  std::string text = concat("\n## Limits\n\n- Texts beyond ", card.max_length, " tokens are ",
                            has_windows ? "read in overlapping windows" : "cut", ".\n");
  if (!card.labels.empty()) {
    text += card.given.multi_label.empty()
                ? "- Every text gets one of these labels, also one that fits none.\n"
                : "- A text gets any number of these labels, maybe none.\n";
  }
  if (is_quick(card.given)) {
    text += concat("- The encoder is frozen. A linear head reads ",
                   card.pools_by_mean ? "the mean of its tokens, which the last layer computes"
                                      : "its first token",
                   ".\n");
  }
  if (card.is_best_of_many && card.task != TaskKind::mlm) {
    text +=
        "- The best checkpoint was chosen on the rows of the results above, so results on new rows "
        "are usually\n  a little worse.\n";
  }
  const bool has_side_columns =
      !card.given.number_columns.empty() || !card.given.category_columns.empty();
  if (card.metrics.contains("baseline_unmixed_accuracy")) {
    text +=
        "- The results are those of `finetune`, which combines the model with n-grams of words "
        "(`ngrams.bin`).\n  transformers computes BERT alone";
    if (has_side_columns) text += ", which cannot take the columns beside the text";
    text += ".\n";
  } else if (has_side_columns) {
    text +=
        "- The columns beside the text have no effect: no n-grams are combined with the model.\n";
  }
  if (const std::string verdict = baseline_verdict(card.metrics); !verdict.empty()) {
    text += concat("- ", markdown(verdict), "\n");
  }
  return text + "- It repeats what is wrong or one-sided in its training rows.\n";
}

bool is_path(const OptionInfo& info) {
  return info.value.starts_with("FILE") || info.value.starts_with("DIR");
}

std::vector<std::string> words_of(const ConfigValue& value) {
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) return *list;
  if (const auto* text = std::get_if<std::string>(&value)) return {*text};
  if (const auto* number = std::get_if<double>(&value)) return {format_number(*number)};
  if (const auto* number = std::get_if<int64_t>(&value)) return {concat(*number)};
  return {};
}

// Returns the command's name, then each option with its values.
std::vector<std::string> command_parts(const ModelCard& card) {
  const Commands command = card.task == TaskKind::mlm ? commands::adapt : commands::train;
  std::vector<std::string> parts{command == commands::adapt ? "finetune adapt" : "finetune train"};
  if (command == commands::train && card.task != TaskKind::classification) {
    parts.push_back(concat("--task ", name_of(card.task)));
  }
  for (const ConfigItem& item : options_given(card.given)) {
    const TrainOption* row = find_train_option(item.name);
    FINETUNE_CHECK(row != nullptr);
    std::string part = concat("--", row->info.name_in(command));
    for (std::string word : words_of(item.value)) {
      if (row->info.is_model)
        word = name_of_base(card.base);
      else if (is_path(row->info))
        word = fs::path(word).filename().string();
      part += " " + shell_word(word);
    }
    parts.push_back(std::move(part));
  }
  if (card.given.seed != TrainOptions().seed) parts.push_back(concat("--seed ", card.given.seed));
  parts.emplace_back("--output RUN");
  return parts;
}

}  // namespace

std::string command_of(const ModelCard& card) {
  constexpr size_t kColumns = 90;
  std::string text, line;
  for (const std::string& part : command_parts(card)) {
    if (!line.empty() && line.size() + part.size() > kColumns) {
      text += line + " \\\n";
      line = "   ";
    }
    line += concat(line.empty() ? "" : " ", part);
  }
  return text + line;
}

std::string model_card(const ModelCard& card) {
  return concat(front_matter(card), "\n", kCardMarker, FINETUNE_VERSION,
                "; a card without this line is kept when the model is trained again -->\n\n# ",
                markdown(title_of(card)), "\n\nFor ", purpose(card),
                ", trained with finetune " FINETUNE_VERSION " on ", card.date.substr(0, 10),
                " (UTC).\n\n## Results\n\n", results(card), kDataHeading, "\n", data(card),
                labels(card), limits(card), "\n## How it was made\n\n```sh\n", command_of(card),
                "\n```\n", kWeightsSumLine, card.weights_sha256, "\n");
}

}  // namespace finetune
