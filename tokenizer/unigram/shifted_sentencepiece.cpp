// Reads sentencepiece models of XLM-RoBERTa, CamemBERT, ALBERT and DeBERTa.
// fairseq shifted the ids of the first two.
#include <bit>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/files/files.h"
#include "core/text/text.h"
#include "core/text/utf8.h"
#include "tokenizer/sentencepiece/model_fields.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/surroundings.h"
#include "tokenizer/unicode/unicode_tables.h"
#include "tokenizer/unigram/unigram_files.h"

namespace finetune {
namespace {

namespace fs = std::filesystem;
using Kind = UnigramStep::Kind;

struct Piece {
  std::string_view text;
  double score = 0;
  uint64_t type = kNormal;
};

struct SentencePieceModel {
  std::vector<Piece> pieces;
  std::string_view charsmap;
  bool is_unigram = true;
};

// Calls read(field) for the fields of a message. Returns whether its bytes are valid.
template <typename Read>
bool for_each_field(std::string_view message, Read&& read) {
  ProtoPart field;
  while (!message.empty()) {
    if (!read_part(message, field)) return false;
    read(field);
  }
  return true;
}

// Views of `bytes`, or nothing if they are not a model file.
std::optional<SentencePieceModel> parse(std::string_view bytes) {
  SentencePieceModel model;
  bool valid = true;
  valid &= for_each_field(bytes, [&](const ProtoPart& field) {
    if (field.number == kPiece) {
      Piece piece;
      valid &= for_each_field(field.bytes, [&](const ProtoPart& part) {
        if (part.number == 1) piece.text = part.bytes;
        if (part.number == 2) piece.score = double(std::bit_cast<float>(uint32_t(part.value)));
        if (part.number == 3) piece.type = part.value;
      });
      valid &= utf8::is_valid(piece.text);
      model.pieces.push_back(piece);
    } else if (field.number == kTrainerSpec) {
      valid &= for_each_field(field.bytes, [&](const ProtoPart& part) {
        if (part.number == kModelType) model.is_unigram = part.value == kModelUnigram;
      });
    } else if (field.number == kNormalizerSpec) {
      valid &= for_each_field(field.bytes, [&](const ProtoPart& part) {
        if (part.number == kCharsMap) model.charsmap = part.bytes;
      });
    }
  });
  if (!valid || model.pieces.empty()) return std::nullopt;
  return model;
}

bool keeps_ids(PieceIds ids) {
  return ids == PieceIds::albert || ids == PieceIds::deberta;
}

int32_t unknown_id(const SentencePieceModel& model, PieceIds ids, const fs::path& path) {
  constexpr int32_t kShifted = 3;
  if (!keeps_ids(ids)) return kShifted;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    if (model.pieces[i].type == kUnknown) return int32_t(i);
  }
  throw model_error(path.string(), ": none of its pieces is the unknown token");
}

void require_fairseq_layout(const SentencePieceModel& model, const fs::path& path) {
  constexpr std::string_view kFirst[] = {"<unk>", "<s>", "</s>"};
  for (size_t i = 0; i < std::size(kFirst); ++i) {
    if (i < model.pieces.size() && model.pieces[i].text == kFirst[i]) continue;
    throw model_error(path.string(), ": piece ", i, " is not ", kFirst[i],
                      ", so its ids are not those of XLM-RoBERTa or CamemBERT");
  }
}

// The pieces that come first in the vocabulary; pieces [from, end) of the model follow them.
struct Layout {
  std::vector<Piece> front;
  size_t from;
};

Layout layout_of(PieceIds ids) {
  if (ids == PieceIds::camembert) {
    return {{{"<s>NOTUSED"}, {"<pad>"}, {"</s>NOTUSED"}, {"<unk>"}, {"<unk>NOTUSED", -100}}, 1};
  }
  if (keeps_ids(ids)) return {{}, 0};
  return {{{"<s>"}, {"<pad>"}, {"</s>"}, {"<unk>"}}, 3};
}

// Lowers the score of pieces such as "9,", as transformers does, so that "9" and "," win.
double score_of(const Piece& piece, PieceIds ids) {
  constexpr double kLast = 100;
  if (ids != PieceIds::albert || piece.text.size() < 2 || piece.text.back() != ',') {
    return piece.score;
  }
  const char32_t before = utf8::decode_before(piece.text, piece.text.size() - 1).c;
  return unicode::has(before, unicode::kDigit) ? piece.score - kLast : piece.score;
}

void read_pieces(const SentencePieceModel& model, PieceIds ids, int32_t unknown,
                 const fs::path& path, UnigramDefinition& definition) {
  Layout layout = layout_of(ids);
  std::vector<Piece>& pieces = layout.front;
  pieces.insert(pieces.end(), model.pieces.begin() + std::ptrdiff_t(layout.from),
                model.pieces.end());
  if (!keeps_ids(ids)) pieces.push_back({"<mask>"});
  if (int64_t(pieces.size()) > kMostTokens) {
    throw model_error(path.string(), ": the vocabulary has more than ", kMostTokens, " tokens");
  }
  std::vector<double> scores;
  scores.reserve(pieces.size());
  for (const Piece& piece : pieces) {
    if (!std::isfinite(piece.score)) {
      throw model_error(path.string(), ": the score of piece ", in_quotes(piece.text),
                        " is not a finite number");
    }
    definition.vocabulary.add(piece.text, int32_t(scores.size()));
    scores.push_back(score_of(piece, ids));
  }
  definition.vocabulary.finish();
  definition.model = unigram::UnigramModel(definition.vocabulary.sorted(), scores, unknown);
}

// Makes control and user-defined pieces added tokens, which are matched in the text literally.
void add_special_pieces(const SentencePieceModel& model, PieceIds ids,
                        UnigramDefinition& definition) {
  std::unordered_set<std::string> known;
  for (const AddedToken& token : definition.added) known.insert(token.content);
  const auto add = [&](std::string_view content, bool special) {
    const int32_t id = definition.vocabulary.find(content);
    if (id >= 0 && !content.empty() && known.emplace(content).second) {
      definition.added.push_back({std::string(content), id, false, false, false, false, special});
    }
  };
  for (const Piece& piece : model.pieces) {
    if (piece.type == kControl || piece.type == kUserDefined) {
      add(piece.text, piece.type == kControl);
    }
  }
  if (ids != PieceIds::camembert) return;
  for (const char* name : {"<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED"}) add(name, true);
}

// Adds ALBERT's steps by the options of tokenizer_config.json. `config` may be null.
void set_albert_preparation(const JsonFile* config, UnigramDefinition& definition) {
  const auto option = [&](const char* key, bool otherwise) {
    return config ? config->get<bool>(config->root(), key).value_or(otherwise) : otherwise;
  };
  const auto add = [&](Kind kind, std::string content = {}) {
    definition.steps.push_back({kind, false, false, std::move(content)});
  };
  add(Kind::join_quotes, "`");
  add(Kind::join_quotes, "'");
  if (!option("keep_accents", false)) {
    add(Kind::decompose);
    add(Kind::strip_accents);
  }
  if (option("do_lower_case", true)) add(Kind::lowercase);
}

// The same for DeBERTa.
void set_deberta_preparation(const JsonFile* config, UnigramDefinition& definition) {
  const auto option = [&](const char* key) {
    return config && config->get<bool>(config->root(), key).value_or(false);
  };
  definition.split_punctuation = option("split_by_punct");
  if (option("do_lower_case")) definition.steps.push_back({Kind::lowercase, false, false, {}});
  definition.steps.push_back({Kind::strip, true, true, {}});
}

// DeBERTa's sentencepiece model has no mask, so the mask gets the next id.
void append_mask(const std::string& name, const fs::path& path, UnigramDefinition& definition) {
  if (name.empty() || definition.vocabulary.find(name) >= 0) return;
  AddedToken mask;
  mask.content = name;
  mask.normalized = false;
  mask.special = true;
  add_token(definition, std::move(mask), definition.vocabulary.size(), path);
  definition.vocabulary.finish();
}

void set_steps(const SentencePieceModel& model, PieceIds ids, const fs::path& path,
               UnigramDefinition& definition) {
  if (!model.charsmap.empty()) {
    definition.charsmap = CharsMap::read(model.charsmap);
    if (!definition.charsmap) {
      throw model_error(path.string(), ": its character map is damaged");
    }
    definition.steps.push_back({Kind::charsmap, false, false, {}});
  }
  if (keeps_ids(ids)) {
    definition.steps.push_back({Kind::join_spaces, false, false, " "});
    return;
  }
  definition.steps.push_back({Kind::strip, false, true, {}});
  definition.steps.push_back({Kind::join_spaces, false, false, "\xE2\x96\x81"});
}

// Returns the string at `key`; "" without the file or the key.
std::string text_in(const JsonFile* file, const char* key) {
  if (!file) return {};
  return std::string(file->get<std::string_view>(file->root(), key).value_or(""));
}

}  // namespace

PieceIds piece_ids_of(const fs::path& directory) {
  const fs::path path = directory / "config.json";
  std::optional<const JsonFile> model;
  if (path_exists(path, ExitCode::model)) model.emplace(path);
  const JsonFile* const config = model ? &*model : nullptr;
  const std::string type = text_in(config, "model_type");
  if (type == "albert") return PieceIds::albert;
  if (type == "deberta-v2") return PieceIds::deberta;
  std::string name = text_in(open_tokenizer_config(directory).get(), "tokenizer_class");
  for (const char* key : {"tokenizer_class", "model_type"}) {
    if (name.empty()) name = text_in(config, key);
  }
  if (name.starts_with("XLMRoberta") || name == "xlm-roberta") return PieceIds::xlm_roberta;
  if (name.starts_with("DebertaV2")) return PieceIds::deberta;
  if (name.starts_with("Camembert") || name == "camembert") return PieceIds::camembert;
  return PieceIds::as_stored;
}

PieceIds piece_ids_of_model(const fs::path& path) {
  const PieceIds ids = piece_ids_of(path.parent_path());
  return ids == PieceIds::as_stored && path.filename() == "spm.model" ? PieceIds::deberta : ids;
}

UnigramDefinition read_shifted_sentencepiece(const fs::path& path, PieceIds ids) {
  const std::string bytes = read_text_file(path, ExitCode::model);
  const auto model = parse(bytes);
  if (!model) throw model_error(path.string(), " is not a sentencepiece model, or is damaged");
  if (!model->is_unigram) throw model_error(path.string(), " is not a unigram model");
  const bool kept = keeps_ids(ids);
  if (!kept) require_fairseq_layout(*model, path);
  UnigramDefinition definition;
  const int32_t unknown = unknown_id(*model, ids, path);
  const fs::path directory = path.parent_path();
  const auto config = open_tokenizer_config(directory);
  read_pieces(*model, ids, unknown, path, definition);
  if (!kept) add_special_pieces(*model, ids, definition);
  if (ids == PieceIds::albert) set_albert_preparation(config.get(), definition);
  if (ids == PieceIds::deberta) set_deberta_preparation(config.get(), definition);
  set_steps(*model, ids, path, definition);
  if (config) definition.stated = read_stated_inputs(*config);
  apply_prefix_option(config.get(), ids, definition);
  SpecialNames own = own_names(definition);
  own.mask_normalized = ids == PieceIds::xlm_roberta;
  if (ids == PieceIds::albert) own = {"<unk>", "[SEP]", "<pad>", "[CLS]", "[MASK]", true, false};
  if (ids == PieceIds::deberta) own.unk_normalized = own.mask_named = true;
  const SpecialNames names = add_configured_tokens(directory, config.get(), definition, own);
  // After the configured tokens: ALBERT's mask keeps its lstrip, unless a file says otherwise.
  if (kept) add_special_pieces(*model, ids, definition);
  if (ids == PieceIds::deberta) append_mask(names.mask, path, definition);
  const int32_t separators = kept ? 1 : 2;
  set_special_tokens(names, {names.cls, names.sep, separators}, unknown, path, definition);
  definition.files = present_files(directory, {path.filename().c_str(), "tokenizer_config.json",
                                               "special_tokens_map.json", "added_tokens.json"});
  return definition;
}

}  // namespace finetune
