// Compares the words of label names.
#include "tasks/labels/name_texts.h"

#include <algorithm>
#include <set>

namespace finetune {
namespace {

std::set<std::string> words_of(const std::string& name) {
  constexpr size_t kLetters = 3;
  std::set<std::string> words;
  std::string word;
  for (char c : name + " ") {
    if (static_cast<unsigned char>(c) >= 0x80 || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      word += c;
      continue;
    }
    if (word.size() >= kLetters) words.insert(word);
    word.clear();
  }
  return words;
}

}  // namespace

std::vector<std::string> texts_of_names(const std::vector<std::string>& names) {
  std::vector<std::string> texts = names;
  bool differ = false;
  for (std::string& text : texts) {
    std::replace(text.begin(), text.end(), '_', ' ');
    differ = differ || words_of(text) != words_of(texts.front());
  }
  return differ ? texts : std::vector<std::string>();
}

}  // namespace finetune
