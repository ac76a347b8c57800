// Reads byte-level BPE from tokenizer.json, or from vocab.json and merges.txt.
#include "tokenizer/bpe/bpe_files.h"

#include <unordered_map>

#include "core/error.h"
#include "core/files/files.h"
#include "core/text/text.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/surroundings.h"

namespace finetune {
namespace {

using Array = simdjson::dom::array;
using Element = simdjson::dom::element;
using Object = simdjson::dom::object;

constexpr const char* kBesideMerges[] = {"tokenizer_config.json", "special_tokens_map.json",
                                         "added_tokens.json"};

[[noreturn]] void refuse(const JsonFile& file, std::string_view part, std::string_view value,
                         std::string_view supported) {
  throw model_error(file.path().string(), ": ", part, " ", in_quotes(value),
                    " is not supported for BPE; ", supported);
}

std::string_view type_of(const JsonFile& file, const Object& part) {
  return file.get<std::string_view>(part, "type").value_or("");
}

// ---- vocabulary and merges ----

// Maps pieces to ids while merges are read. Vocabulary searches a sorted list, which is slower.
using Ids = std::unordered_map<std::string_view, int32_t>;

Ids read_pieces(const JsonFile& file, const Object& vocabulary, BpeDefinition& definition) {
  if (vocabulary.size() == 0) {
    throw model_error(file.path().string(), ": the vocabulary is empty");
  }
  if (int64_t(vocabulary.size()) > kMostTokens) {
    throw model_error(file.path().string(), ": the vocabulary has more than ", kMostTokens,
                      " tokens");
  }
  Ids ids;
  ids.reserve(vocabulary.size());
  for (auto [piece, value] : vocabulary) {
    int64_t id = -1;
    if (value.get(id)) id = -1;
    ids[piece] = checked_id(file.path(), piece, id);
    definition.vocabulary.add(piece, int32_t(id));
  }
  definition.vocabulary.finish();
  return ids;
}

// Adds merges one by one; `place` of an error is "merges.txt:7" or "tokenizer.json: merge 7".
class MergeReader {
 public:
  MergeReader(const Ids& ids, size_t count, BpeDefinition& definition)
      : ids_(ids), definition_(definition) {
    if (count > size_t(kMostTokens)) {
      throw model_error("the vocabulary has more than ", kMostTokens, " merges");
    }
    definition_.merges = bpe::MergeTable(count);
  }
  template <typename Place>
  void add(std::string_view left, std::string_view right, Place&& place) {
    const std::string merged = concat(left, right);
    const auto id_of = [&](std::string_view piece) {
      const auto found = ids_.find(piece);
      if (found != ids_.end()) return found->second;
      throw model_error(place(), ": the merge of ", in_quotes(left), " and ", in_quotes(right),
                        " needs the token ", in_quotes(piece),
                        ", which the vocabulary does not have");
    };
    definition_.merges.add(id_of(left), id_of(right), rank_++, id_of(merged));
  }
  // Adds a line of merges.txt: "left right", with one space.
  template <typename Place>
  void add_line(std::string_view line, Place&& place) {
    const size_t space = line.find(' ');
    if (space == line.npos || line.find(' ', space + 1) != line.npos) {
      throw model_error(place(), ": ", in_quotes(line),
                        " is not a merge: two tokens with one space between them");
    }
    add(line.substr(0, space), line.substr(space + 1), place);
  }

 private:
  const Ids& ids_;
  BpeDefinition& definition_;
  uint32_t rank_ = 0;
};

constexpr std::string_view kVersionLine = "#version";

void read_merges(const JsonFile& file, const Array& merges, const Ids& ids,
                 BpeDefinition& definition) {
  MergeReader reader(ids, merges.size(), definition);
  size_t number = 0;
  for (Element merge : merges) {
    ++number;
    const auto place = [&] { return concat(file.path().string(), ": merge ", number); };
    std::string_view left, right;
    Array pair;
    if (merge.get(left) == simdjson::SUCCESS) {
      if (!left.starts_with(kVersionLine)) reader.add_line(left, place);
    } else if (merge.get(pair) || pair.size() != 2 || pair.at(0).get(left) ||
               pair.at(1).get(right)) {
      throw model_error(place(), ": ", in_quotes(simdjson::minify(merge)),
                        " is not a merge: two tokens");
    } else {
      reader.add(left, right, place);
    }
  }
}

void read_merge_lines(const fs::path& path, const Ids& ids, BpeDefinition& definition) {
  const std::string text = read_text_file(path, ExitCode::model);
  std::vector<std::string_view> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  MergeReader reader(ids, lines.size(), definition);
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string_view line = lines[i];
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(kVersionLine)) continue;
    reader.add_line(line, [&] { return concat(path.string(), ":", i + 1); });
  }
}

// ---- tokenizer.json ----

void read_model(const JsonFile& file, BpeDefinition& definition) {
  const Object model = *file.get<Object>(file.root(), "model");
  if (file.get<double>(model, "dropout").value_or(0) != 0) {
    throw model_error(file.path().string(),
                      ": \"dropout\" is not supported for BPE; set it to null");
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const std::string_view value = file.get<std::string_view>(model, key).value_or("");
    if (!value.empty()) refuse(file, key, value, "byte-level BPE has none");
  }
  const auto vocabulary = file.get<Object>(model, "vocab");
  const auto merges = file.get<Array>(model, "merges");
  if (!vocabulary || !merges) {
    throw model_error(file.path().string(), ": the BPE model needs \"vocab\" and \"merges\"");
  }
  read_merges(file, *merges, read_pieces(file, *vocabulary, definition), definition);
  definition.fuse_unknown = file.get<bool>(model, "fuse_unk").value_or(false);
  definition.ignore_merges = file.get<bool>(model, "ignore_merges").value_or(false);
  if (const auto unknown = file.get<std::string_view>(model, "unk_token")) {
    definition.unknown = require_token(definition, file.path(), "unknown", *unknown);
  }
}

void read_normalizer(const JsonFile& file, BpeDefinition& definition) {
  const auto normalizer = file.get<Object>(file.root(), "normalizer");
  if (!normalizer) return;
  const std::string_view type = type_of(file, *normalizer);
  if (type != "NFC") refuse(file, "normalizer", type, "NFC or null is");
  definition.compose = true;
}

void read_pre_tokenizer(const JsonFile& file, BpeDefinition& definition) {
  constexpr const char* kSupported = "ByteLevel with use_regex is";
  const auto part = file.get<Object>(file.root(), "pre_tokenizer");
  if (!part)
    throw model_error(file.path().string(), " has no pre_tokenizer; ", kSupported, " supported");
  const std::string_view type = type_of(file, *part);
  if (type != "ByteLevel") refuse(file, "pre_tokenizer", type, kSupported);
  if (!file.get<bool>(*part, "use_regex").value_or(true)) {
    refuse(file, "pre_tokenizer", "ByteLevel without use_regex", kSupported);
  }
  definition.add_prefix_space = file.get<bool>(*part, "add_prefix_space").value_or(true);
}

void read_processor(const JsonFile& file, const Object& processor, Surroundings& around,
                    BpeDefinition& definition) {
  const std::string_view type = type_of(file, processor);
  const auto read_trimming = [&] {
    definition.trim_offsets = file.get<bool>(processor, "trim_offsets").value_or(true);
    definition.trim_keeps_prefix = file.get<bool>(processor, "add_prefix_space").value_or(true);
  };
  if (type == "Sequence") {
    if (const auto parts = file.get<Array>(processor, "processors")) {
      for (Element part : *parts) {
        Object object;
        if (part.get(object) || type_of(file, object) == "Sequence") continue;
        read_processor(file, object, around, definition);
      }
    }
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    around = read_pair_processor(file, processor, type == "BertProcessing" ? 1 : 2);
    if (type == "RobertaProcessing") read_trimming();
  } else if (type == "TemplateProcessing") {
    around = read_template_processor(file, processor);
  } else if (type == "ByteLevel") {
    read_trimming();
  } else {
    refuse(file, "post_processor", type, "RobertaProcessing, TemplateProcessing and ByteLevel are");
  }
}

Surroundings read_post_processor(const JsonFile& file, BpeDefinition& definition) {
  Surroundings around;
  definition.trim_offsets = false;
  if (const auto processor = file.get<Object>(file.root(), "post_processor")) {
    read_processor(file, *processor, around, definition);
  }
  require_surroundings(file, around);
  return around;
}

// ---- both ----

// Options that tokenizer_config.json states take precedence.
void override_spaces(const JsonFile& config, bool trims, BpeDefinition& definition) {
  if (const auto add = config.get<bool>(config.root(), "add_prefix_space")) {
    definition.add_prefix_space = *add;
    if (trims) definition.trim_keeps_prefix = *add;
  }
  if (const auto trim = config.get<bool>(config.root(), "trim_offsets"); trim && trims) {
    definition.trim_offsets = *trim;
  }
}

// Without tokenizer.json no file says how a pair is joined, so only RoBERTa's relatives are read.
void require_roberta(const JsonFile& config) {
  const std::string_view name =
      config.get<std::string_view>(config.root(), "tokenizer_class").value_or("RobertaTokenizer");
  for (std::string_view known : {"Roberta", "Longformer", "Bart"}) {
    if (name.starts_with(known)) return;
  }
  throw model_error(config.path().string(), ": tokenizer_class ", in_quotes(name),
                    " with vocab.json and merges.txt is not supported, only RobertaTokenizer is; a "
                    "tokenizer.json is needed");
}

}  // namespace

BpeDefinition read_bpe_tokenizer_json(const JsonFile& file) {
  BpeDefinition definition;
  const fs::path directory = file.path().parent_path();
  read_model(file, definition);
  read_normalizer(file, definition);
  read_pre_tokenizer(file, definition);
  const Surroundings around = read_post_processor(file, definition);
  add_listed_tokens(file, definition);
  const auto config = open_tokenizer_config(directory);
  if (config) {
    override_spaces(*config, definition.trim_offsets, definition);
    definition.stated = read_stated_inputs(*config);
  }
  const SpecialNames names =
      add_configured_tokens(directory, config.get(), definition, own_names(definition));
  set_special_tokens(names, around, definition.unknown, file.path(), definition);
  definition.files = present_files(directory, {"tokenizer.json", kBesideMerges[0], kBesideMerges[1],
                                               kBesideMerges[2], "vocab.json", "merges.txt"});
  return definition;
}

BpeDefinition read_vocab_and_merges(const fs::path& directory) {
  BpeDefinition definition;
  const JsonFile vocabulary(directory / "vocab.json");
  read_merge_lines(directory / "merges.txt", read_pieces(vocabulary, vocabulary.root(), definition),
                   definition);
  const auto config = open_tokenizer_config(directory);
  if (config) {
    require_roberta(*config);
    override_spaces(*config, true, definition);
    definition.stated = read_stated_inputs(*config);
  }
  const SpecialNames names =
      add_configured_tokens(directory, config.get(), definition, own_names(definition));
  set_special_tokens(names, {names.cls, names.sep, 2}, definition.unknown, vocabulary.path(),
                     definition);
  definition.files = present_files(directory, {"vocab.json", "merges.txt", kBesideMerges[0],
                                               kBesideMerges[1], kBesideMerges[2]});
  return definition;
}

}  // namespace finetune
