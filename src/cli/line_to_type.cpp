// Assigns words without options to options by the words' kind: a model, data, a text.
#include "cli/line_to_type.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "core/text/shell_word.h"
#include "core/text/text.h"

namespace finetune {
namespace {

namespace fs = std::filesystem;

enum class Kind { model, data, grid, output };

// An option of a command, or an argument without an option (`option` is empty).
struct Place {
  std::string_view command, option;
  Kind kind;
  std::string_view stand_in;  // shown if the word is missing; empty: optional
};

constexpr Place kPlaces[] = {
    {"train", "--model", Kind::model, "MODEL"},
    {"train", "--train", Kind::data, "FILE"},
    {"train", "--eval", Kind::data, ""},
    {"train", "--output", Kind::output, "DIR"},
    {"adapt", "--model", Kind::model, "MODEL"},
    {"adapt", "--text", Kind::data, "FILE"},
    {"adapt", "--eval", Kind::data, ""},
    {"adapt", "--output", Kind::output, "DIR"},
    {"sweep", "", Kind::grid, "GRID"},
    {"sweep", "--output", Kind::output, "DIR"},
    {"evaluate", "--model", Kind::model, "MODEL"},
    {"evaluate", "--data", Kind::data, "FILE"},
    {"evaluate", "--output", Kind::output, ""},
    {"predict", "--model", Kind::model, "MODEL"},
    {"predict", "--input", Kind::data, "FILE"},
    {"predict", "--output", Kind::output, "-"},
    {"next", "--model", Kind::model, "MODEL"},
    {"next", "--input", Kind::data, "FILE"},
    {"next", "--output", Kind::output, "next.csv"},
    {"check", "--train", Kind::data, "FILE"},
    {"check", "--eval", Kind::data, ""},
    {"check", "--model", Kind::model, ""},
    {"plan", "--model", Kind::model, "MODEL"},
    {"plan", "--train", Kind::data, "FILE"},
    {"plan", "--eval", Kind::data, ""},
    {"convert", "--model", Kind::model, "MODEL"},
    {"convert", "--output", Kind::output, "DIR"},
    {"tokenize", "--model", Kind::model, "MODEL"},
    {"tokenize", "", Kind::data, "FILE"},
    {"score", "--data", Kind::data, "FILE"},
    {"score", "--predictions", Kind::data, "FILE"},
};

struct Filled {
  Place place;
  bool given = false;  // its option is on the line already
  std::string word;
};

bool ends_with_one_of(std::string_view word, std::initializer_list<const char*> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](const char* ending) { return ends_with_ignoring_case(word, ending); });
}

// Returns nothing for a word of unknown kind.
std::optional<Kind> kind_of_word(const std::string& word) {
  if (word == "-") return Kind::data;
  if (ends_with_one_of(word, {".toml"})) return Kind::grid;
  if (ends_with_one_of(word, {".safetensors", ".bin", ".h5", ".index"})) return Kind::model;
  if (ends_with_one_of(word, {".csv", ".tsv", ".jsonl", ".json", ".txt", ".gz", ".zst"})) {
    return Kind::data;
  }
  std::error_code ignored;
  const fs::file_status status = fs::status(word, ignored);
  if (fs::is_directory(status)) return Kind::model;
  if (fs::exists(status)) return Kind::data;
  return std::nullopt;
}

class Line {
 public:
  explicit Line(const GivenWords& given) : given_(given) {
    for (const Place& place : kPlaces) {
      if (place.command != given.command) continue;
      const bool there =
          std::find(given.names.begin(), given.names.end(), place.option) != given.names.end();
      filled_.push_back({place, there, ""});
    }
  }

  // Places words of known kind first. The other words get the places that are left.
  bool place_all() {
    std::vector<std::string> unknown;
    for (const std::string& word : given_.loose) {
      const auto kind = kind_of_word(word);
      if (!kind || !place(word, [&](const Place& p) { return p.kind == *kind; }))
        unknown.push_back(word);
    }
    return std::all_of(unknown.begin(), unknown.end(), [&](const std::string& word) {
      return (is_text(word) && place_text(word)) || place_anywhere(word);
    });
  }

  std::string shown() const {
    std::string line = text_.empty() ? "" : concat("echo ", shell_word(text_), " | ");
    line += concat("finetune ", given_.command);
    for (const Filled& each : filled_) {
      const std::string word = each.word.empty() ? std::string(each.place.stand_in) : each.word;
      if (each.given || word.empty()) continue;
      if (!each.place.option.empty()) line += concat(" ", each.place.option);
      line += concat(" ", shell_word(word));
    }
    for (const std::string& word : given_.options) line += concat(" ", shell_word(word));
    return line;
  }

 private:
  bool is_free(const Filled& each) const { return !each.given && each.word.empty(); }

  bool has_free(Kind kind) const {
    return std::any_of(filled_.begin(), filled_.end(), [&](const Filled& each) {
      return each.place.kind == kind && is_free(each);
    });
  }

  template <typename Fits>
  bool place(const std::string& word, Fits fits) {
    for (Filled& each : filled_) {
      if (!is_free(each) || !fits(each.place)) continue;
      each.word = word;
      return true;
    }
    return false;
  }

  // Fills required places before the others.
  bool place_anywhere(const std::string& word) {
    return place(word, [](const Place& p) { return !p.stand_in.empty(); }) ||
           place(word, [](const Place&) { return true; });
  }

  // A text is not a file; it is a sentence, or a word of one, or the model is already placed.
  bool is_text(const std::string& word) const {
    if (given_.command != "predict" || kind_of_word(word)) return false;
    return word.find(' ') != std::string::npos || are_words() || !has_free(Kind::model);
  }

  bool are_words() const {
    return given_.loose.size() > 1 &&
           std::none_of(given_.loose.begin(), given_.loose.end(), [](const std::string& word) {
             return kind_of_word(word) || word.find('/') != std::string::npos;
           });
  }

  bool place_text(const std::string& word) {
    if (text_.empty() && !place("-", [](const Place& p) { return p.kind == Kind::data; }))
      return false;
    text_ += concat(text_.empty() ? "" : " ", word);
    return true;
  }

  const GivenWords& given_;
  std::vector<Filled> filled_;
  std::string text_;
};

}  // namespace

std::optional<std::string> line_to_type(const GivenWords& given) {
  Line line(given);
  if (!line.place_all()) return std::nullopt;
  return line.shown();
}

std::optional<std::string> line_for_path(const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (!fs::exists(status)) return std::nullopt;
  if (fs::is_directory(status)) return concat("finetune inspect ", shell_word(path));
  return line_to_type({"train", {}, {}, {path}});
}

}  // namespace finetune
