// Finds labels that look the same to a person, and joins them for --normalize-labels.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace finetune {

// The normal form of docs/reference/data.md: invisible characters are removed, each run of white
// space becomes one blank, outer blanks are removed, characters are composed (NFC), and a whole
// number has no decimals ("1.0" becomes "1").
std::string normal_label(std::string_view label);

// In quotes, with invisible characters written out: 'food\u00a0', 'cafe\u0301'.
std::string visible_label(std::string_view label);

// Groups of names with the same normal form, or whose normal forms differ only in case; each group
// in the order of `names`.
std::vector<std::vector<std::string>> alike_labels(const std::vector<std::string>& names);

// "'food' and 'food\u00a0'; '1' and '1.0'": the first groups.
std::string named_alike(const std::vector<std::vector<std::string>>& groups);

// "'food\u00a0' is like 'food'", for the first of `names` that is like one of `known`, or nothing.
std::optional<std::string> likeness(const std::vector<std::string>& names,
                                    const std::vector<std::string>& known);

// The names that --normalize-labels gives to labels.
class LabelNames {
 public:
  // `known`: a model's labels, which keep their names.
  explicit LabelNames(const std::vector<std::string>& known = {});
  void count(std::string_view label);  // in the training rows
  // The known label that is equal or alike. Else the most frequent normal form of the labels that
  // are alike (of equally frequent ones, the first by code point). Else its own normal form.
  std::string name_of(std::string_view label) const;

 private:
  std::set<std::string, std::less<>> known_;
  std::unordered_map<std::string, std::string> known_by_key_;
  std::unordered_map<std::string, std::map<std::string, int64_t>>
      forms_;  // by key: the number of rows of each
};

// Records what --normalize-labels changes, for the log.
class JoinedLabels {
 public:
  void note(std::string_view label, std::string_view name);
  std::string describe() const;  // empty if no name has changed
  int64_t spellings() const;     // distinct labels that were renamed

 private:
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> spellings_;  // by name
};

}  // namespace finetune
