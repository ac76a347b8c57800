// Labels that a person takes for the same one, and how --normalize-labels joins them.
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

// The normal form of docs/reference/data.md: no invisible characters, each run of white space one
// blank, none at the ends, characters composed (NFC), and a whole number without its decimals
// ("1.0" is "1").
std::string normal_label(std::string_view label);

// In quotes, with invisible characters written out: 'food\u00a0', 'cafe\u0301'.
std::string visible_label(std::string_view label);

// Groups of names that have the same normal form, or that differ in the case of letters beyond
// that; each in the order of `names`.
std::vector<std::vector<std::string>> alike_labels(const std::vector<std::string>& names);

// "'food' and 'food\u00a0'; '1' and '1.0'": the first groups.
std::string named_alike(const std::vector<std::vector<std::string>>& groups);

// "'food\u00a0' is like 'food'" of the first of `names` that is like one of `known`, or nothing.
std::optional<std::string> likeness(const std::vector<std::string>& names,
                                    const std::vector<std::string>& known);

// The names that labels get by --normalize-labels.
class LabelNames {
 public:
  // Labels of a model, which keep their names.
  explicit LabelNames(const std::vector<std::string>& known = {});
  void count(std::string_view label);  // of the rows that decide
  // A known label that is the same or like it; else the most frequent normal form of the labels
  // that are like it, of equally frequent ones the first by code point; else its own normal form.
  std::string name_of(std::string_view label) const;

 private:
  std::set<std::string, std::less<>> known_;
  std::unordered_map<std::string, std::string> known_by_key_;
  std::unordered_map<std::string, std::map<std::string, int64_t>>
      forms_;  // by key, with their rows
};

// Notes what --normalize-labels changes, for the log.
class JoinedLabels {
 public:
  void note(std::string_view label, std::string_view name);
  std::string describe() const;  // empty if no name has changed
  int64_t spellings() const;     // distinct ones that are not their names

 private:
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> spellings_;  // by name
};

}  // namespace finetune
