// Reads post-processors of tokenizer.json and sets the special tokens.
#include "tokenizer/surroundings.h"

#include <vector>

#include "core/error.h"

namespace finetune {
namespace {

using Array = simdjson::dom::array;
using Element = simdjson::dom::element;
using Object = simdjson::dom::object;

std::string name_of_pair(const JsonFile& file, const Object& processor, const char* key) {
  const auto pair = file.get<Array>(processor, key);
  std::string_view text;
  if (!pair || pair->at(0).get(text)) {
    throw model_error(file.path().string(), ": the post_processor has no \"", key, "\"");
  }
  return std::string(text);
}

// The items of a template: the name of each special token, and "" for a sequence.
std::vector<std::string> template_items(const JsonFile& file, const Object& processor,
                                        const char* key) {
  std::vector<std::string> items;
  if (const auto list = file.get<Array>(processor, key)) {
    for (Element item : *list) {
      std::string_view name;
      items.emplace_back(item["SpecialToken"]["id"].get(name) ? "" : name);
    }
  }
  return items;
}

}  // namespace

int32_t separators_of_template(const JsonFile& file, const Object& processor) {
  const std::vector<std::string> pair = template_items(file, processor, "pair");
  return pair.size() == 6 && !pair[2].empty() && pair[2] == pair[3] ? 2 : 1;
}

Surroundings read_template_processor(const JsonFile& file, const Object& processor) {
  const std::vector<std::string> single = template_items(file, processor, "single");
  const std::vector<std::string> pair = template_items(file, processor, "pair");
  const bool is_single =
      single.size() == 3 && !single[0].empty() && single[1].empty() && !single[2].empty();
  if (is_single) {
    const std::string &cls = single[0], &sep = single[2];
    using Items = std::vector<std::string>;
    if (pair.empty() || pair == Items{cls, "", sep, "", sep}) return {cls, sep, 1};
    if (pair == Items{cls, "", sep, sep, "", sep}) return {cls, sep, 2};
  }
  throw model_error(file.path().string(),
                    ": the post_processor's template is neither BERT's, [CLS] A [SEP] B [SEP], nor "
                    "RoBERTa's, <s> A </s></s> B </s>");
}

Surroundings read_pair_processor(const JsonFile& file, const Object& processor,
                                 int32_t separators) {
  return {name_of_pair(file, processor, "cls"), name_of_pair(file, processor, "sep"), separators};
}

void require_surroundings(const JsonFile& file, const Surroundings& around) {
  if (!around.cls.empty() && !around.sep.empty()) return;
  throw model_error(file.path().string(),
                    ": the post_processor adds no special tokens around a text, which an encoder "
                    "needs: this is the tokenizer of a generator");
}

void set_special_tokens(const SpecialNames& names, const Surroundings& around, int32_t unknown,
                        const std::filesystem::path& path, TokenizerDefinition& definition) {
  SpecialTokens& special = definition.special;
  special.cls = require_token(definition, path, "classification", around.cls);
  special.sep = require_token(definition, path, "separator", around.sep);
  special.separators = around.separators;
  special.unk = unknown >= 0 ? unknown : definition.vocabulary.find(names.unk);
  special.pad = definition.vocabulary.find(names.pad);
  special.mask = definition.vocabulary.find(names.mask);
}

}  // namespace finetune
