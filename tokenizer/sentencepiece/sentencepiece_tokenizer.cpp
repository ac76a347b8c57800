// Loads a sentencepiece model, and encodes text with byte offsets.
#include "tokenizer/sentencepiece/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <new>
#include <optional>

#include "core/error.h"
#include "core/files/files.h"
#include "core/text/text.h"
#include "core/text/utf8.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/json_file.h"
#include "tokenizer/sentencepiece/charsmap.h"
#include "tokenizer/sentencepiece/sentencepiece_text.h"
#include "tokenizer/sentencepiece/unigram.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/unicode/unicode_tables.h"

namespace finetune {
namespace {

using Object = simdjson::dom::object;
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

// The library rejects some models by a status, others by an exception from a trie builder.
bool loads(sentencepiece::SentencePieceProcessor& processor, std::string_view model) {
  try {
    return processor.LoadFromSerializedProto({model.data(), model.size()}).ok();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception&) {
    return false;
  }
}

// Finds the unknown piece by its type, as encoding does. unk_id() also requires a certain name.
int32_t unknown_piece(const sentencepiece::SentencePieceProcessor& processor) {
  int32_t id = 0;
  while (id < processor.GetPieceSize() && !processor.IsUnknown(id)) ++id;
  return id < processor.GetPieceSize() ? id : -1;
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(const fs::path& path);

  void encode(std::string_view text, TokenBuffer& out) const override;
  int32_t vocabulary_size() const override { return size_; }
  std::string_view token(int32_t id) const override {
    if (id >= 0 && id < processor_.GetPieceSize()) return processor_.IdToPiece(id);
    for (const AddedToken& token : added_) {
      if (token.id == id) return token.content;
    }
    return {};
  }
  bool continues_word(int32_t id) const override { return !token(id).starts_with(kSpaceMark); }
  std::vector<fs::path> files() const override { return files_; }

 private:
  void read_config(const fs::path& path);
  void add_token(AddedToken token, int64_t id);
  int32_t find(std::string_view piece) const;  // -1 if absent
  void encode_segment(std::string_view text, uint32_t begin, uint32_t end, TokenBuffer& out) const;
  struct Piece {
    std::string text;  // normalized, spaces as U+2581
    int32_t id;
    size_t begin, end;  // bytes of the encoded text
  };
  std::vector<Piece> pieces_of(std::string_view text) const;
  void push(const PreparedText& prepared, size_t begin, size_t end, int32_t id,
            TokenBuffer& out) const;
  bool push_digits_and_comma(const PreparedText& prepared, const Piece& piece,
                             TokenBuffer& out) const;

  sentencepiece::SentencePieceProcessor processor_;
  std::optional<Unigram> unigram_;
  SentencePieceOptions options_;
  bool splits_digits_from_comma_ = false;
  std::string cls_, sep_, mask_ = "[MASK]";
  std::vector<AddedToken> added_;
  AddedTokenMatcher matcher_;
  int32_t size_ = 0;
  std::vector<fs::path> files_;
};

SentencePieceTokenizer::SentencePieceTokenizer(const fs::path& path) {
  std::string bytes = read_text_file(path, ExitCode::model);
  if (bytes.empty() || !has_sound_charsmaps(bytes) || !loads(processor_, bytes)) {
    throw model_error(path.string(), " is not a sentencepiece model, or is damaged");
  }
  unigram_ = Unigram::read(bytes);
  size_ = processor_.GetPieceSize();
  bool albert = find("[CLS]") >= 0 && find("[SEP]") >= 0;
  cls_ = albert ? "[CLS]" : "<s>";
  sep_ = albert ? "[SEP]" : "</s>";
  splits_digits_from_comma_ = albert;
  options_ = albert ? SentencePieceOptions{} : SentencePieceOptions{false, false, true};
  files_.push_back(path);
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const fs::path file = path.parent_path() / name;
    if (path_exists(file, ExitCode::model)) files_.push_back(file);
  }
  fs::path config = path.parent_path() / "tokenizer_config.json";
  if (path_exists(config, ExitCode::model)) read_config(config);
  special_.cls = find(cls_);
  special_.sep = find(sep_);
  special_.mask = find(mask_);
  special_.unk = unknown_piece(processor_);
  special_.pad = processor_.pad_id() >= 0 ? processor_.pad_id() : find("<pad>");
  if (special_.cls < 0 || special_.sep < 0) {
    throw model_error(path.string(),
                      ": the vocabulary has neither [CLS] and [SEP] nor <s> and "
                      "</s>, which a BERT needs around its texts");
  }
  if (added_.empty()) {
    for (std::string_view name : {std::string_view("<unk>"), std::string_view("<pad>"),
                                  std::string_view(cls_), std::string_view(sep_)}) {
      if (find(name) >= 0) add_token({std::string(name), -1, false, false, false, false, true}, -1);
    }
    if (find(mask_) >= 0) add_token({mask_, -1, false, true, false, false, true}, -1);
  }
  std::vector<std::string> patterns;
  for (const AddedToken& token : added_) patterns.push_back(token.content);
  matcher_ = AddedTokenMatcher(added_, patterns);
}

void SentencePieceTokenizer::read_config(const fs::path& path) {
  JsonFile config(path);
  const Object& root = config.root();
  std::string_view type = config.get<std::string_view>(root, "tokenizer_class").value_or("");
  for (std::string_view shifted : {"Barthez", "MBart", "XGLM"}) {
    if (type.starts_with(shifted)) {
      throw model_error(path.string(), ": tokenizer_class ", in_quotes(type),
                        " is not supported; its ids are not those of its sentencepiece model");
    }
  }
  options_.lowercase = config.get<bool>(root, "do_lower_case").value_or(options_.lowercase);
  options_.remove_space = config.get<bool>(root, "remove_space").value_or(options_.remove_space);
  options_.keep_accents = config.get<bool>(root, "keep_accents").value_or(options_.keep_accents);
  stated_ = read_stated_inputs(config);
  auto name = [&](const char* key, std::string& token) {
    auto value = JsonFile::find(root, key);
    if (!value) return;
    if (value->is_object()) {
      token = config.get<std::string_view>(value->get<Object>(), "content").value_or(token);
    } else {
      token = *config.get<std::string_view>(root, key);
    }
  };
  name("cls_token", cls_);
  name("sep_token", sep_);
  name("mask_token", mask_);
  read_added_tokens_decoder(config, [&](AddedToken token, int64_t id) {
    if (find(token.content) < 0) id = checked_id(path, token.content, id);
    add_token(std::move(token), id);
  });
}

void SentencePieceTokenizer::add_token(AddedToken token, int64_t id) {
  int32_t known = find(token.content);
  token.id = known >= 0 ? known : int32_t(id);
  if (token.content.empty() || token.id < 0) return;
  size_ = std::max(size_, token.id + 1);
  added_.push_back(std::move(token));
}

int32_t SentencePieceTokenizer::find(std::string_view piece) const {
  int id = processor_.PieceToId(piece);
  return id >= 0 && processor_.IdToPiece(id) == piece ? id : -1;
}

void SentencePieceTokenizer::encode(std::string_view text, TokenBuffer& out) const {
  FINETUNE_CHECK(text.size() < UINT32_MAX);
  matcher_.split(
      text,
      [&](size_t begin, size_t end) { encode_segment(text, uint32_t(begin), uint32_t(end), out); },
      [&](const AddedTokenMatcher::Match& match) {
        out.ids.push_back(match.id);
        out.begins.push_back(uint32_t(match.begin));
        out.ends.push_back(uint32_t(match.end));
      });
}

void SentencePieceTokenizer::encode_segment(std::string_view text, uint32_t begin, uint32_t end,
                                            TokenBuffer& out) const {
  PreparedText prepared;
  prepare(text, begin, end, options_, prepared);
  if (prepared.text.empty()) return;
  for (const Piece& piece : pieces_of(prepared.text)) {
    if (splits_digits_from_comma_ && push_digits_and_comma(prepared, piece, out)) continue;
    push(prepared, piece.begin, piece.end, piece.id, out);
  }
}

// Returns the library's pieces. For a unigram model the text is segmented again (see unigram.h).
std::vector<SentencePieceTokenizer::Piece> SentencePieceTokenizer::pieces_of(
    std::string_view text) const {
  sentencepiece::ImmutableSentencePieceText encoded =
      processor_.EncodeAsImmutableProto({text.data(), text.size()});
  std::vector<Piece> pieces;
  std::string normalized;
  std::vector<size_t> begins, ends;  // bytes of `text` behind each byte of `normalized`
  for (size_t i = 0; i < encoded.pieces_size(); ++i) {
    const auto piece = encoded.pieces(int(i));
    size_t begin = piece.begin(), end = piece.end();
    if (!unigram_) {
      pieces.push_back({piece.piece(), int32_t(piece.id()), begin, end});
      continue;
    }
    std::string_view own = piece.piece();
    std::string_view surface = text.substr(begin, end - begin);
    // A mark that the library put before the text has no source bytes.
    if (own.starts_with(kSpaceMark) &&
        (surface.empty() || !unicode::has(utf8::decode(surface, 0).c, unicode::kSpace))) {
      normalized += kSpaceMark;
      begins.resize(normalized.size(), begin);
      ends.resize(normalized.size(), begin);
      own.remove_prefix(kSpaceMark.size());
    }
    bool one_to_one = count_code_points(own) == count_code_points(surface);
    for (size_t at = 0, from = begin; at < own.size();) {
      size_t length = utf8::decode(own, at).length;
      size_t to = one_to_one ? from + utf8::decode(text, from).length : end;
      normalized += own.substr(at, length);
      begins.resize(normalized.size(), from);
      ends.resize(normalized.size(), to);
      at += length;
      if (one_to_one) from = to;
    }
  }
  if (!unigram_) return pieces;
  std::vector<Unigram::Segment> segments;
  unigram_->segment(normalized, segments);
  for (const Unigram::Segment& s : segments) {
    pieces.push_back(
        {normalized.substr(s.begin, s.end - s.begin), s.id, begins[s.begin], ends[s.end - 1]});
  }
  return pieces;
}

// Adds bytes [begin, end) of the prepared text, without leading white space.
void SentencePieceTokenizer::push(const PreparedText& prepared, size_t begin, size_t end,
                                  int32_t id, TokenBuffer& out) const {
  while (begin < end) {
    utf8::Decoded d = utf8::decode(prepared.text, begin);
    if (!unicode::has(d.c, unicode::kSpace)) break;
    begin += d.length;
  }
  uint32_t first = begin < prepared.begins.size() ? prepared.begins[begin] : prepared.ends.back();
  out.ids.push_back(id);
  out.begins.push_back(first);
  out.ends.push_back(begin < end ? prepared.ends[end - 1] : first);
}

// ALBERT splits "9," into "9" and ",": encodes a piece of digits and a comma again without the
// comma.
bool SentencePieceTokenizer::push_digits_and_comma(const PreparedText& prepared, const Piece& piece,
                                                   TokenBuffer& out) const {
  if (piece.text.size() < 2 || piece.text.back() != ',') return false;
  char32_t before = utf8::decode_before(piece.text, piece.text.size() - 1).c;
  if (!unicode::has(before, unicode::kDigit)) return false;
  bool marked = piece.text.starts_with(kSpaceMark);
  std::string digits = piece.text.substr(0, piece.text.size() - 1);
  for (size_t at = digits.find(kSpaceMark); at != digits.npos; at = digits.find(kSpaceMark)) {
    digits.erase(at, kSpaceMark.size());
  }
  // Where the digits begin, if they are the same in the prepared text and in the piece.
  size_t at = prepared.text.substr(piece.begin, piece.end - piece.begin).find(digits);
  bool same = at != std::string::npos;
  at += piece.begin;
  bool first = true;
  for (const Piece& part : pieces_of(digits)) {
    std::string_view name = part.text;
    bool drop_mark = first && !marked && name.starts_with(kSpaceMark);
    first = false;
    if (drop_mark) name.remove_prefix(kSpaceMark.size());
    if (name.empty()) continue;
    push(prepared, same ? at + part.begin : piece.begin, same ? at + part.end : piece.end,
         processor_.PieceToId(name), out);
  }
  push(prepared, piece.end - 1, piece.end, processor_.PieceToId(","), out);
  return true;
}

}  // namespace

std::unique_ptr<Tokenizer> load_sentencepiece(const fs::path& path) {
  return std::make_unique<SentencePieceTokenizer>(path);
}

}  // namespace finetune
