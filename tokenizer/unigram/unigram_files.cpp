// Reads unigram tokenizers from tokenizer.json.
#include "tokenizer/unigram/unigram_files.h"

#include <algorithm>

#include "core/error.h"
#include "core/text/text.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/surroundings.h"
#include "tokenizer/unigram/base64.h"

namespace finetune {
namespace {

using Array = simdjson::dom::array;
using Element = simdjson::dom::element;
using Object = simdjson::dom::object;
using Kind = UnigramStep::Kind;
using Prefix = UnigramDefinition::Prefix;

constexpr std::string_view kMark = "\xE2\x96\x81";
constexpr std::string_view kWhiteSpaceRuns = R"(\s{2,}|[\n\r\t])";  // DeBERTa's

[[noreturn]] void refuse(const JsonFile& file, std::string_view part, std::string_view value,
                         std::string_view supported) {
  throw model_error(file.path().string(), ": ", part, " ", in_quotes(value),
                    " is not supported for Unigram; ", supported);
}

std::string_view type_of(const JsonFile& file, const Object& part) {
  return file.get<std::string_view>(part, "type").value_or("");
}

// Calls read(part) for `whole`, or for each part of a Sequence.
template <typename Read>
void for_each_part(const JsonFile& file, const Object& whole, const char* list, Read&& read) {
  if (type_of(file, whole) != "Sequence") return read(whole);
  const auto parts = file.get<Array>(whole, list);
  if (!parts) throw model_error(file.path().string(), ": a Sequence has no \"", list, "\"");
  for (Element element : *parts) {
    Object part;
    if (element.get(part)) {
      throw model_error(file.path().string(), ": \"", list,
                        "\" holds something other than objects");
    }
    read(part);
  }
}

void read_model(const JsonFile& file, UnigramDefinition& definition) {
  const Object model = *file.get<Object>(file.root(), "model");
  if (file.get<bool>(model, "byte_fallback").value_or(false)) {
    refuse(file, "byte_fallback", "true", "set it to false");
  }
  const auto vocabulary = JsonFile::find(model, "vocab");
  Array pieces;
  if (!vocabulary || vocabulary->get(pieces) || pieces.size() == 0) {
    throw model_error(file.path().string(),
                      ": a Unigram model needs \"vocab\", a list of pieces with their scores");
  }
  if (int64_t(pieces.size()) > kMostTokens) {
    throw model_error(file.path().string(), ": the vocabulary has more than ", kMostTokens,
                      " tokens");
  }
  std::vector<double> scores;
  scores.reserve(pieces.size());
  for (Element entry : pieces) {
    Array pair;
    std::string_view piece;
    double score = 0;
    if (entry.get(pair) || pair.size() != 2 || pair.at(0).get(piece) || pair.at(1).get(score)) {
      throw model_error(file.path().string(), ": entry ", scores.size(), " of the vocabulary, ",
                        in_quotes(simdjson::minify(entry)), ", is not a piece and its score");
    }
    definition.vocabulary.add(piece, int32_t(scores.size()));
    scores.push_back(score);
  }
  definition.vocabulary.finish();
  const auto unknown = file.get<int64_t>(model, "unk_id");
  if (!unknown || *unknown < 0 || *unknown >= int64_t(scores.size())) {
    throw model_error(file.path().string(), ": \"unk_id\" must be the id of the unknown token, ",
                      "from 0 to ", scores.size() - 1);
  }
  definition.special.unk = int32_t(*unknown);
  definition.model =
      unigram::UnigramModel(definition.vocabulary.sorted(), scores, int32_t(*unknown));
}

// Returns whether the part is a step that comes before the map.
bool read_preparation(const JsonFile& file, const Object& part, std::string_view type,
                      UnigramDefinition& definition) {
  constexpr std::pair<std::string_view, Kind> kKinds[] = {{"NFC", Kind::compose},
                                                          {"NFKD", Kind::decompose},
                                                          {"StripAccents", Kind::strip_accents},
                                                          {"Lowercase", Kind::lowercase}};
  for (const auto& [name, kind] : kKinds) {
    if (type == name) return definition.steps.push_back({kind, false, false, {}}), true;
  }
  const auto pattern = type == "Replace" ? file.get<Object>(part, "pattern") : std::nullopt;
  if (!pattern) return false;
  if (file.get<std::string_view>(*pattern, "Regex").value_or("") == kWhiteSpaceRuns) {
    const std::string_view content = file.get<std::string_view>(part, "content").value_or("");
    if (content != " " && content != kMark) {
      refuse(file, "Replace by", content, "a space and U+2581 are");
    }
    definition.steps.push_back({Kind::join_white_space, false, false, std::string(content)});
    return true;
  }
  const auto quotes = file.get<std::string_view>(*pattern, "String").value_or("");
  if (quotes != "``" && quotes != "''") return false;
  if (file.get<std::string_view>(part, "content").value_or("") != "\"") return false;
  definition.steps.push_back({Kind::join_quotes, false, false, std::string(quotes.substr(1))});
  return true;
}

void read_step(const JsonFile& file, const Object& part, UnigramDefinition& definition) {
  constexpr std::string_view kSupported =
      "Replace of two quotes or of /\\s{2,}|[\\n\\r\\t]/, NFC, NFKD, StripAccents, Lowercase and "
      "Strip, then Precompiled, then Strip, and Replace of / {2,}/ by a space or U+2581 are";
  const std::string_view type = type_of(file, part);
  const bool is_first = std::ranges::all_of(definition.steps, [](const UnigramStep& step) {
    return step.prepares() || step.kind == Kind::strip;
  });
  if (is_first && read_preparation(file, part, type, definition)) return;
  if (type == "Precompiled" && is_first) {
    const auto encoded = file.get<std::string_view>(part, "precompiled_charsmap").value_or("");
    const auto bytes = decode_base64(encoded);
    definition.charsmap = bytes ? CharsMap::read(*bytes) : std::nullopt;
    if (!definition.charsmap) {
      throw model_error(file.path().string(), ": the precompiled_charsmap is damaged");
    }
    definition.steps.push_back({Kind::charsmap, false, false, {}});
  } else if (type == "Strip") {
    definition.steps.push_back({Kind::strip,
                                file.get<bool>(part, "strip_left").value_or(true),
                                file.get<bool>(part, "strip_right").value_or(true),
                                {}});
  } else if (type == "Replace") {
    const auto pattern = file.get<Object>(part, "pattern");
    const auto regex =
        pattern ? file.get<std::string_view>(*pattern, "Regex").value_or("") : std::string_view();
    const auto content = file.get<std::string_view>(part, "content").value_or("");
    if (regex != " {2,}") refuse(file, "Replace of", regex, kSupported);
    if (content != " " && content != kMark) refuse(file, "Replace by", content, kSupported);
    definition.steps.push_back({Kind::join_spaces, false, false, std::string(content)});
  } else {
    refuse(file, "normalizer", type, kSupported);
  }
}

Prefix read_prefix(const JsonFile& file, const Object& part) {
  const bool adds = file.get<bool>(part, "add_prefix_space").value_or(true);
  const auto scheme =
      file.get<std::string_view>(part, "prepend_scheme").value_or(adds ? "always" : "never");
  if (scheme == "always" && adds) return Prefix::always;
  if (scheme == "first" && adds) return Prefix::first;
  if (scheme == "never") return Prefix::never;
  refuse(file, "prepend_scheme", scheme,
         "always, first and never are, the first two without add_prefix_space false");
}

void read_pre_tokenizer(const JsonFile& file, UnigramDefinition& definition) {
  constexpr std::string_view kSupported =
      "Metaspace, WhitespaceSplit and isolated Punctuation before it, are";
  bool marks = false;
  if (const auto whole = file.get<Object>(file.root(), "pre_tokenizer")) {
    for_each_part(file, *whole, "pretokenizers", [&](const Object& part) {
      const std::string_view type = type_of(file, part);
      if (type == "WhitespaceSplit" && !marks) {
        definition.split_white_space = true;
      } else if (type == "Punctuation" && !marks) {
        const auto behavior = file.get<std::string_view>(part, "behavior").value_or("Isolated");
        if (behavior != "Isolated") refuse(file, "Punctuation with behavior", behavior, kSupported);
        definition.split_punctuation = true;
      } else if (type == "Metaspace" && !marks) {
        const auto mark = file.get<std::string_view>(part, "replacement").value_or(kMark);
        if (mark != kMark) refuse(file, "the replacement", mark, "U+2581 is");
        if (!file.get<bool>(part, "split").value_or(true)) {
          refuse(file, "Metaspace with split", "false", "set it to true");
        }
        definition.prefix = read_prefix(file, part);
        marks = true;
      } else {
        refuse(file, "pre_tokenizer", type, kSupported);
      }
    });
  }
  if (!marks) throw model_error(file.path().string(), ": the pre_tokenizer has no Metaspace");
}

Surroundings read_post_processor(const JsonFile& file) {
  Surroundings around;
  if (const auto processor = file.get<Object>(file.root(), "post_processor")) {
    const std::string_view type = type_of(file, *processor);
    if (type != "TemplateProcessing") {
      refuse(file, "post_processor", type, "TemplateProcessing is");
    }
    around = read_template_processor(file, *processor);
  }
  require_surroundings(file, around);
  return around;
}

}  // namespace

void apply_prefix_option(const JsonFile* config, PieceIds ids, UnigramDefinition& definition) {
  if (!config || ids == PieceIds::as_stored) return;
  const auto adds = config->get<bool>(config->root(), "add_prefix_space");
  if (!adds) return;
  const bool deberta = ids == PieceIds::deberta;
  definition.prefix = *adds ? Prefix::always : deberta ? Prefix::first : Prefix::never;
  if (*adds || deberta) return;
  definition.split_white_space = true;
  // Joined spaces become a mark in tokenizer.json, and none is left here.
  std::erase_if(definition.steps, [](const UnigramStep& step) {
    return step.kind == Kind::strip || step.kind == Kind::join_spaces;
  });
}

namespace {

// Options of tokenizer_config.json that transformers 5 applies to DeBERTa's tokenizer.json.
void apply_deberta_options(const JsonFile& config, UnigramDefinition& definition) {
  const auto splits = config.get<bool>(config.root(), "split_by_punct");
  if (splits) definition.split_punctuation = *splits;
  const auto lower = config.get<bool>(config.root(), "do_lower_case");
  if (!lower) return;
  std::erase_if(definition.steps,
                [](const UnigramStep& step) { return step.kind == Kind::lowercase; });
  if (*lower)
    definition.steps.insert(definition.steps.begin(), {Kind::lowercase, false, false, {}});
}

}  // namespace

UnigramDefinition read_unigram_tokenizer_json(const JsonFile& file) {
  UnigramDefinition definition;
  const std::filesystem::path directory = file.path().parent_path();
  read_model(file, definition);
  if (const auto normalizer = file.get<Object>(file.root(), "normalizer")) {
    for_each_part(file, *normalizer, "normalizers",
                  [&](const Object& part) { read_step(file, part, definition); });
  }
  read_pre_tokenizer(file, definition);
  const Surroundings around = read_post_processor(file);
  add_listed_tokens(file, definition);
  const auto config = open_tokenizer_config(directory);
  if (config) definition.stated = read_stated_inputs(*config);
  const PieceIds ids = piece_ids_of(directory);
  apply_prefix_option(config.get(), ids, definition);
  if (config && ids == PieceIds::deberta) apply_deberta_options(*config, definition);
  const SpecialNames names =
      add_configured_tokens(directory, config.get(), definition, own_names(definition));
  set_special_tokens(names, around, definition.special.unk, file.path(), definition);
  definition.files = present_files(
      directory, {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                  "added_tokens.json", "sentencepiece.bpe.model", "spiece.model", "spm.model"});
  return definition;
}

}  // namespace finetune
