// Compares labels as a person would, by Unicode's rules.
#include "tasks/labels/label_names.h"

#include <algorithm>

#include "core/text/ascii.h"
#include "core/text/counted.h"
#include "core/text/text.h"
#include "core/text/utf8.h"
#include "tokenizer/unicode/composition.h"
#include "tokenizer/unicode/unicode_tables.h"

namespace finetune {
namespace {

constexpr size_t kMostGroups = 5;     // in a message
constexpr size_t kMostInGroup = 8;    // names
constexpr size_t kLongestName = 200;  // bytes
constexpr char32_t kBrailleBlank = 0x2800;

// "1.0" and "-3.00" without the point and the zeros; other texts unchanged.
std::string_view without_zero_decimals(std::string_view text) {
  const size_t point = text.find('.');
  if (point == std::string_view::npos || point + 1 == text.size()) return text;
  std::string_view whole = text.substr(0, point);
  const std::string_view decimals = text.substr(point + 1);
  if (whole.starts_with('-')) whole.remove_prefix(1);
  const bool is_whole = !whole.empty() && std::all_of(whole.begin(), whole.end(), is_digit) &&
                        decimals.find_first_not_of('0') == std::string_view::npos;
  return is_whole ? text.substr(0, point) : text;
}

// A key that is equal for labels that are alike.
std::string key_of(std::string_view label) {
  const std::string form = normal_label(label);
  std::string lower;
  for (size_t at = 0; at < form.size();) {
    const utf8::Decoded d = utf8::decode(form, at);
    at += d.length;
    if (d.c == 0x130) {
      lower += "i\u0307";
    } else {
      utf8::append(unicode::lower(d.c), lower);
    }
  }
  return unicode::composed(lower);
}

std::string escape(char32_t c) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out = c < 0x10000 ? "\\u" : "\\U";
  for (int shift = c < 0x10000 ? 12 : 28; shift >= 0; shift -= 4) out += digits[c >> shift & 15];
  return out;
}

}  // namespace

std::string normal_label(std::string_view label) {
  std::string seen;
  bool space = false;
  for (size_t at = 0; at < label.size();) {
    const utf8::Decoded d = utf8::decode(label, at);
    at += d.length;
    if (unicode::is_invisible(d.c)) continue;
    if (unicode::has(d.c, unicode::kSpace)) {
      space = !seen.empty();
      continue;
    }
    if (space) seen += ' ';
    space = false;
    utf8::append(d.c, seen);
  }
  return std::string(without_zero_decimals(unicode::composed(seen)));
}

std::string visible_label(std::string_view label) {
  std::string out;
  for (size_t at = 0; at < label.size();) {
    const utf8::Decoded d = utf8::decode(label, at);
    const bool is_hidden = unicode::is_invisible(d.c) || d.c == kBrailleBlank ||
                           (d.c != ' ' && unicode::has(d.c, unicode::kSpace | unicode::kMark));
    if (is_hidden)
      out += escape(d.c);
    else
      out += label.substr(at, d.length);
    at += d.length;
  }
  return in_quotes(out, kLongestName);
}

std::vector<std::vector<std::string>> alike_labels(const std::vector<std::string>& names) {
  std::map<std::string, std::vector<std::string>> by_key;
  for (const std::string& name : names) {
    std::vector<std::string>& group = by_key[key_of(name)];
    if (std::find(group.begin(), group.end(), name) == group.end()) group.push_back(name);
  }
  std::vector<std::vector<std::string>> groups;
  for (auto& [key, group] : by_key) {
    if (group.size() > 1) groups.push_back(std::move(group));
  }
  return groups;
}

std::string named_alike(const std::vector<std::vector<std::string>>& groups) {
  std::string out;
  for (size_t g = 0; g < groups.size() && g < kMostGroups; ++g) {
    if (g > 0) out += "; ";
    for (size_t i = 0; i < groups[g].size() && i < kMostInGroup; ++i) {
      out += concat(i == 0 ? "" : " and ", visible_label(groups[g][i]));
    }
    if (groups[g].size() > kMostInGroup) out += " and …";
  }
  return groups.size() > kMostGroups ? out + "; …" : out;
}

std::optional<std::string> likeness(const std::vector<std::string>& names,
                                    const std::vector<std::string>& known) {
  std::unordered_map<std::string, const std::string*> by_key;
  for (const std::string& name : known) by_key.emplace(key_of(name), &name);
  for (const std::string& name : names) {
    const auto found = by_key.find(key_of(name));
    if (found == by_key.end() || *found->second == name) continue;
    return concat(visible_label(name), " is like ", visible_label(*found->second));
  }
  return std::nullopt;
}

LabelNames::LabelNames(const std::vector<std::string>& known) : known_(known.begin(), known.end()) {
  for (const std::string& name : known) known_by_key_.emplace(key_of(name), name);
}

void LabelNames::count(std::string_view label) {
  ++forms_[key_of(label)][normal_label(label)];
}

std::string LabelNames::name_of(std::string_view label) const {
  if (known_.contains(label)) return std::string(label);
  const std::string key = key_of(label);
  if (const auto known = known_by_key_.find(key); known != known_by_key_.end()) {
    return known->second;
  }
  const auto forms = forms_.find(key);
  if (forms == forms_.end()) return normal_label(label);
  return std::max_element(forms->second.begin(), forms->second.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

void JoinedLabels::note(std::string_view label, std::string_view name) {
  if (label == name) return;
  auto found = spellings_.find(name);
  if (found == spellings_.end())
    found = spellings_.emplace(name, std::set<std::string, std::less<>>()).first;
  if (!found->second.contains(label)) found->second.emplace(label);
}

int64_t JoinedLabels::spellings() const {
  int64_t count = 0;
  for (const auto& [name, spellings] : spellings_) count += int64_t(spellings.size());
  return count;
}

std::string JoinedLabels::describe() const {
  if (spellings_.empty()) return "";
  std::vector<std::string> changes;
  for (const auto& [name, spellings] : spellings_) {
    std::vector<std::string> shown;
    for (const std::string& spelling : spellings) shown.push_back(visible_label(spelling));
    changes.push_back(concat(join_some(shown, kMostInGroup), " to ", visible_label(name)));
    if (changes.size() > kMostGroups) break;
  }
  std::string shown;
  for (size_t i = 0; i < changes.size() && i < kMostGroups; ++i) {
    shown += concat(i == 0 ? "" : "; ", changes[i]);
  }
  return concat("--normalize-labels changes ", counted(spellings(), "label"), ": ", shown,
                changes.size() > kMostGroups ? "; …" : "");
}

}  // namespace finetune
