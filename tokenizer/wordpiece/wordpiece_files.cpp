// Reads WordPiece definitions from tokenizer.json or vocab.txt.
#include "tokenizer/wordpiece/wordpiece_files.h"

#include <memory>

#include "core/error.h"
#include "core/files/files.h"
#include "core/text/text.h"
#include "tokenizer/json_file.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/surroundings.h"

namespace finetune {
namespace {

using Array = simdjson::dom::array;
using Object = simdjson::dom::object;

// tokenizer.json

void require_type(const JsonFile& file, std::string_view part, std::string_view type,
                  std::string_view expected) {
  if (type == expected) return;
  throw model_error(file.path().string(), ": ", part, " ", in_quotes(type),
                    " is not supported; a BERT tokenizer has ", expected);
}

void read_model(const JsonFile& file, WordPieceDefinition& definition) {
  auto model = file.get<Object>(file.root(), "model");
  if (!model) throw model_error(file.path().string(), " has no \"model\"");
  auto vocab = JsonFile::find(*model, "vocab");
  std::string_view guessed = JsonFile::find(*model, "merges") ? "BPE"
                             : vocab && vocab->is_array()     ? "Unigram"
                                                              : "WordPiece";
  require_type(file, "model", file.get<std::string_view>(*model, "type").value_or(guessed),
               "WordPiece");
  auto vocabulary = file.get<Object>(*model, "vocab");
  if (!vocabulary || vocabulary->size() == 0) {
    throw model_error(file.path().string(), ": the vocabulary is empty");
  }
  if (int64_t(vocabulary->size()) > kMostTokens) {
    throw model_error(file.path().string(), ": the vocabulary has more than ", kMostTokens,
                      " tokens");
  }
  for (auto [piece, value] : *vocabulary) {
    int64_t id = -1;
    if (value.get(id)) id = -1;
    definition.vocabulary.add(piece, checked_id(file.path(), piece, id));
  }
  definition.vocabulary.finish();
  definition.continuing_prefix =
      std::string(file.get<std::string_view>(*model, "continuing_subword_prefix").value_or("##"));
  definition.max_input_chars_per_word =
      file.get<int64_t>(*model, "max_input_chars_per_word").value_or(100);
  definition.special.unk =
      require_token(definition, file.path(), "unknown",
                    file.get<std::string_view>(*model, "unk_token").value_or("[UNK]"));
}

void read_normalizer(const JsonFile& file, WordPieceDefinition& definition) {
  auto normalizer = file.get<Object>(file.root(), "normalizer");
  if (!normalizer) {
    definition.normalizer = {false, false, false, false};
    return;
  }
  require_type(file, "normalizer", file.get<std::string_view>(*normalizer, "type").value_or(""),
               "BertNormalizer");
  NormalizerOptions& options = definition.normalizer;
  options.clean_text = file.get<bool>(*normalizer, "clean_text").value_or(true);
  options.handle_chinese_chars = file.get<bool>(*normalizer, "handle_chinese_chars").value_or(true);
  options.lowercase = file.get<bool>(*normalizer, "lowercase").value_or(true);
  options.strip_accents = file.get<bool>(*normalizer, "strip_accents").value_or(options.lowercase);
}

// Applies the options that tokenizer_config.json beside tokenizer.json states.
void override_normalizer(const JsonFile& config, NormalizerOptions& options) {
  auto lower = config.get<bool>(config.root(), "do_lower_case");
  auto chinese = config.get<bool>(config.root(), "tokenize_chinese_chars");
  auto strip = config.get<bool>(config.root(), "strip_accents");
  bool strip_stated = !config.root().at_key("strip_accents").error();
  std::string_view tokenizer_class =
      config.get<std::string_view>(config.root(), "tokenizer_class").value_or("BertTokenizer");
  const bool applies_options =
      tokenizer_class.find("Bert") != tokenizer_class.npos || tokenizer_class.starts_with("MPNet");
  if (!applies_options) return;
  if (lower && *lower != options.lowercase) {
    if (options.strip_accents == options.lowercase) options.strip_accents = *lower;
    options.lowercase = *lower;
  }
  if (chinese) options.handle_chinese_chars = *chinese;
  if (strip) options.strip_accents = *strip;
  if (strip_stated && !strip) options.strip_accents = options.lowercase;
}

// The template must have BERT's shape ("[CLS] A [SEP]"); it names the special tokens. MPNet's
// tokenizer has RobertaProcessing if transformers 5 wrote it.
void read_template(const JsonFile& file, WordPieceDefinition& definition) {
  std::string cls = "[CLS]", sep = "[SEP]";
  if (auto processor = file.get<Object>(file.root(), "post_processor")) {
    std::string_view type = file.get<std::string_view>(*processor, "type").value_or("");
    if (type == "BertProcessing" || type == "RobertaProcessing") {
      const Surroundings around =
          read_pair_processor(file, *processor, type == "BertProcessing" ? 1 : 2);
      cls = around.cls;
      sep = around.sep;
      definition.special.separators = around.separators;
    } else {
      require_type(file, "post_processor", type, "TemplateProcessing");
      std::string_view first, last, sequence;
      auto single = file.get<Array>(*processor, "single");
      if (!single || single->size() != 3 || single->at(0)["SpecialToken"]["id"].get(first) ||
          single->at(1)["Sequence"]["id"].get(sequence) ||
          single->at(2)["SpecialToken"]["id"].get(last)) {
        throw model_error(file.path().string(),
                          ": the post_processor's template is not BERT's, [CLS] A [SEP]");
      }
      cls = std::string(first);
      sep = std::string(last);
      definition.special.separators = separators_of_template(file, *processor);
    }
  }
  definition.special.cls = require_token(definition, file.path(), "classification", cls);
  definition.special.sep = require_token(definition, file.path(), "separator", sep);
}

}  // namespace

WordPieceDefinition read_tokenizer_json(const JsonFile& file) {
  WordPieceDefinition definition;
  const fs::path directory = file.path().parent_path();
  read_model(file, definition);
  read_normalizer(file, definition);
  if (auto pre = file.get<Object>(file.root(), "pre_tokenizer")) {
    require_type(file, "pre_tokenizer", file.get<std::string_view>(*pre, "type").value_or(""),
                 "BertPreTokenizer");
  } else {
    throw model_error(file.path().string(), " has no pre_tokenizer; a BERT tokenizer has one");
  }
  add_listed_tokens(file, definition);
  read_template(file, definition);
  const auto config = open_tokenizer_config(directory);
  if (config) {
    override_normalizer(*config, definition.normalizer);
    definition.stated = read_stated_inputs(*config);
  }
  const SpecialNames names = add_configured_tokens(directory, config.get(), definition);
  definition.special.pad = definition.vocabulary.find(names.pad);
  definition.special.mask = definition.vocabulary.find(names.mask);
  definition.files =
      present_files(directory, {"tokenizer.json", "tokenizer_config.json",
                                "special_tokens_map.json", "added_tokens.json", "vocab.txt"});
  return definition;
}

namespace {

// Whether the special tokens are MPNet's: <s> A </s> for a text, <s> A </s></s> B </s> for a pair.
bool has_mpnet_tokens(const JsonFile* config, const Vocabulary& vocabulary) {
  const auto name =
      config ? config->get<std::string_view>(config->root(), "tokenizer_class") : std::nullopt;
  if (name && !name->empty()) return name->starts_with("MPNet");
  return vocabulary.find("<s>") >= 0 && vocabulary.find("[CLS]") < 0;
}

void read_vocabulary_lines(const fs::path& path, Vocabulary& vocabulary) {
  const std::string whole = read_text_file(path, ExitCode::model);
  std::string_view text = whole;
  if (size_t at = invalid_utf8(text); at != text.npos) {
    throw model_error(path.string(), " is not valid UTF-8 at byte ", at);
  }
  int32_t id = 0;
  while (!text.empty()) {
    if (id == kMostTokens) {
      throw model_error(path.string(), ": the vocabulary has more than ", kMostTokens, " tokens");
    }
    size_t end = text.find_first_of("\r\n");
    vocabulary.add(text.substr(0, end), id++);
    if (end == text.npos) break;
    end += text.substr(end, 2) == "\r\n" ? 2 : 1;
    text.remove_prefix(end);
  }
  if (id == 0) throw model_error(path.string(), ": the vocabulary is empty");
  vocabulary.finish();
}

}  // namespace

WordPieceDefinition read_vocab_txt(const fs::path& directory) {
  WordPieceDefinition definition;
  fs::path path = directory / "vocab.txt";
  read_vocabulary_lines(path, definition.vocabulary);
  const auto config = open_tokenizer_config(directory);
  if (config) {
    const Object& root = config->root();
    auto words = config->get<std::string_view>(root, "word_tokenizer_type");
    if (words && *words != "basic") {
      throw model_error(config->path().string(), ": word_tokenizer_type ", in_quotes(*words),
                        " is not supported, only BERT's own word splitting");
    }
    NormalizerOptions& options = definition.normalizer;
    options.lowercase = config->get<bool>(root, "do_lower_case").value_or(true);
    options.strip_accents = config->get<bool>(root, "strip_accents").value_or(options.lowercase);
    options.handle_chinese_chars = config->get<bool>(root, "tokenize_chinese_chars").value_or(true);
    definition.stated = read_stated_inputs(*config);
  }
  const bool mpnet = has_mpnet_tokens(config.get(), definition.vocabulary);
  SpecialNames own;
  if (mpnet) own = {"[UNK]", "</s>", "<pad>", "<s>", "<mask>", true, true};
  const SpecialNames names = add_configured_tokens(directory, config.get(), definition, own);
  definition.special.separators = mpnet ? 2 : 1;
  definition.special.unk = require_token(definition, path, "unknown", names.unk);
  definition.special.cls = require_token(definition, path, "classification", names.cls);
  definition.special.sep = require_token(definition, path, "separator", names.sep);
  definition.special.pad = definition.vocabulary.find(names.pad);
  definition.special.mask = definition.vocabulary.find(names.mask);
  definition.files = present_files(directory, {"vocab.txt", "tokenizer_config.json",
                                               "special_tokens_map.json", "added_tokens.json"});
  return definition;
}

}  // namespace finetune
