// finetune tokenize: text to ids, tokens and offsets, one JSON line for each text of the input.
// With windows, one line for each window. Memory does not grow with the input.
#include <simdjson.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/options/option_binding.h"
#include "cli/standard_output.h"
#include "cli/usage.h"
#include "core/error.h"
#include "core/files/file_kind.h"
#include "core/files/files.h"
#include "core/log.h"
#include "core/text/json_text.h"
#include "core/text/json_value.h"
#include "core/text/text.h"
#include "data/columns/text_columns.h"
#include "data/rows/records.h"
#include "data/rows/table_shape.h"
#include "data/source/byte_source.h"
#include "tokenizer/encoding.h"
#include "tokenizer/tokenizer.h"
#include "weights/model_directory.h"

namespace finetune {
namespace {

constexpr const char* kTokenizeExamples = R"(Examples:
  finetune tokenize --model bert-base-uncased reviews.txt
  echo "A naive café" | finetune tokenize --model bert-base-uncased
  finetune tokenize --model minilm --jsonl --max-length 384 questions.jsonl

Each line of the input is one text. In a table (.csv, .tsv, .jsonl, .json) the column "text" or
--text-column has the texts, as for predict; standard input is a table if that option is given.
Output for each:
{"ids":[...],"tokens":[...],"offsets":[[begin,end],...]} with [CLS] and [SEP]; offsets count code
points of the text.
With --jsonl each line is {"text":...}, {"text":...,"text_pair":...} or
{"question":...,"context":...}; of the last form every window becomes a line, and offsets outside
the context are null.)";

constexpr size_t kMostLineBytes = size_t{64}
                                  << 20;  // as for a row of data (data/rows/row_grammar.h)

constexpr double kMostTokens = double(int64_t{1} << 31);

struct TokenizeOptions {
  std::string model;
  std::string input = "-";
  bool jsonl = false;
  std::string text_column;
  std::string delimiter = "auto";
  int64_t max_length = 0;  // 0: no truncation
  int64_t doc_stride = 128;
};

const OptionRow<TokenizeOptions> kTokenizeRows[] = {
    {{.name = "model",
      .required = commands::all,
      .help = "directory with the tokenizer's files, or an id in the Hugging Face cache",
      .value = "DIR"},
     &TokenizeOptions::model},
    {{.name = "input",
      .is_argument = true,
      .help = "text file, or - for standard input",
      .value = "FILE|-"},
     &TokenizeOptions::input},
    {{.name = "jsonl", .help = "input lines are JSON objects (see below)"},
     &TokenizeOptions::jsonl},
    {{.name = "text-column",
      .help =
          "of a table: the column with the texts, or several, joined by a blank (default: text)",
      .value = "NAME,..."},
     &TokenizeOptions::text_column},
    {{.name = "delimiter",
      .help = "separator of values in CSV; C: one character",
      .value = "auto|comma|semicolon|tab|bar|C"},
     &TokenizeOptions::delimiter},
    {{.name = "max-length",
      .help = "most tokens of a line (default: no limit)",
      .range = between(4, kMostTokens)},
     &TokenizeOptions::max_length},
    {{.name = "doc-stride",
      .help = "overlap of neighbouring windows, in tokens",
      .range = between(0, kMostTokens)},
     &TokenizeOptions::doc_stride},
};

// One part of an output line: tokens [begin, end) of a tokenized text.
struct Part {
  const TokenBuffer* tokens;
  const CodePointIndex* index;  // nullptr: offsets are null
  int64_t begin;
  int64_t end;
};

class Command {
 public:
  explicit Command(const TokenizeOptions& options)
      : options_(options),
        tokenizer_(Tokenizer::load(existing_tokenizer_directory(options.model))) {}

  void run() {
    const bool is_table = !options_.text_column.empty() || options_.delimiter != "auto";
    if (!options_.jsonl && (options_.input != "-" || is_table)) {
      read_rows();
    } else if (options_.input == "-") {
      std::ios::sync_with_stdio(false);  // else an error would look like the end
      read(std::cin, "standard input");
    } else {
      require_readable(options_.input);
      const InputFile given(options_.input);
      const InputFile text = is_pipe(options_.input) ? given : as_text(given);
      std::ifstream file(text.content, std::ios::binary);
      if (!file) throw system_failure(options_.input, errno, ExitCode::data);
      read(file, options_.input);
    }
    flush();
    flush_standard_output();
    if (!has_written_) warn(input_name(options_.input), " holds no rows");
  }

 private:
  bool next_line(std::istream& in, std::string& line);
  void read(std::istream& in, const std::string& name);
  void read_rows();
  void refuse_header(const std::string& line) const;
  void text_line(std::string_view text);
  void json_line(const std::string& line);
  Error error(const std::string& message) const {
    return data_error(place_.first, ":", place_.second, ": ", message);
  }
  std::optional<std::string_view> member(const simdjson::dom::object& object,
                                         const char* key) const;
  void write_texts(std::string_view text, std::optional<std::string_view> pair);
  void write_windows(std::string_view question, std::string_view context);
  void write_line(std::initializer_list<Part> parts, bool null_specials);
  void append_token(int32_t id);
  void flush();

  TokenizeOptions options_;
  std::unique_ptr<Tokenizer> tokenizer_;
  simdjson::dom::parser parser_;
  std::pair<std::string, int64_t> place_;
  TokenBuffer first_, second_;
  std::string ids_, tokens_, offsets_, out_;
  bool has_written_ = false;
};

// Reads the next line without its end. Returns false after the last line.
bool Command::next_line(std::istream& in, std::string& line) {
  line.clear();
  char piece[1 << 14];
  ++place_.second;
  for (;;) {
    in.getline(piece, sizeof piece);
    const bool ends = in.good();  // at a line's end, which gcount() includes
    line.append(piece, size_t(in.gcount()) - size_t(ends));
    if (line.size() > kMostLineBytes) {
      throw error(concat("the line is longer than ", kMostLineBytes >> 20, " MiB"));
    }
    if (ends) return true;
    if (in.eof() || in.bad() || in.gcount() == 0) return !line.empty();
    in.clear();  // the piece is full
  }
}

void Command::read(std::istream& in, const std::string& name) {
  place_ = {name, 0};
  std::string line;
  while (next_line(in, line)) {
    if (place_.second == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!options_.jsonl) {
      if (place_.second == 1) refuse_header(line);
      write_texts(line, std::nullopt);
    } else if (!trim(line).empty()) {
      json_line(line);
    }
  }
  if (in.bad()) throw system_failure(name, errno, ExitCode::data, "cannot be read: ");
}

// Refuses the header of a table, because each row would become one text with commas.
void Command::refuse_header(const std::string& line) const {
  const std::optional<char> delimiter = header_delimiter(line, true, '\0', {"text"});
  if (!delimiter || line.find(*delimiter) == std::string::npos) return;
  throw error("is the header of a table with a column 'text'; --text-column text reads it");
}

void Command::read_rows() {
  ColumnNames names;
  if (!options_.text_column.empty()) {
    for (std::string_view name : split(options_.text_column, ',')) {
      names.text.emplace_back(name);
    }
  }
  RowOptions rows;
  rows.delimiter = parse_delimiter(options_.delimiter);
  rows.columns = names.of_texts();
  rows.may_be_empty = true;
  RowReader reader(options_.input, rows);
  const bool plain = reader.format() == RowFormat::plain_text;
  if (plain && !options_.text_column.empty()) {
    throw usage_error("--text-column: ", input_name(options_.input),
                      " is read as one text a line and has no columns; --delimiter says that it "
                      "is a table");
  }
  const TextColumns texts =
      plain ? TextColumns{{0}, {}} : find_text_columns(reader.columns(), options_.input, names);
  std::string buffer;
  for (Row row; reader.next(row);) {
    write_texts(joined_text(row.values, texts, buffer), std::nullopt);
  }
}

std::optional<std::string_view> Command::member(const simdjson::dom::object& object,
                                                const char* key) const {
  simdjson::dom::element value;
  if (object.at_key(key).get(value)) return std::nullopt;
  std::string_view text;
  if (value.get(text)) throw error(concat("\"", key, "\" is not a string"));
  return text;
}

void Command::json_line(const std::string& line) {
  simdjson::dom::element root;
  if (auto code = parser_.parse(line).get(root)) {
    throw error(concat("not valid JSON (", json_fault(code), ")"));
  }
  simdjson::dom::object object;
  if (root.get(object)) throw error("not a JSON object");
  auto text = member(object, "text");
  auto question = member(object, "question");
  auto context = member(object, "context");
  if (text) return write_texts(*text, member(object, "text_pair"));
  if (!question || !context) {
    throw error("neither \"text\" nor both \"question\" and \"context\"");
  }
  write_windows(*question, *context);
}

void Command::write_texts(std::string_view text, std::optional<std::string_view> pair) {
  first_.clear();
  second_.clear();
  tokenizer_->encode(text, first_);
  CodePointIndex index(text);
  CodePointIndex pair_index(pair.value_or(""));
  if (pair) tokenizer_->encode(*pair, second_);
  PairLengths lengths{int64_t(first_.size()), int64_t(second_.size())};
  if (options_.max_length > 0) {
    const SpecialTokens& special = tokenizer_->special();
    int64_t budget = options_.max_length - (pair ? special.around_pair() : special.around_single());
    lengths = pair ? truncate_longest_first(lengths.first, lengths.second, budget)
                   : PairLengths{std::min(lengths.first, budget), 0};
  }
  if (pair) {
    write_line({{&first_, &index, 0, lengths.first}, {&second_, &pair_index, 0, lengths.second}},
               false);
  } else {
    write_line({{&first_, &index, 0, lengths.first}}, false);
  }
}

void Command::write_windows(std::string_view question, std::string_view context) {
  first_.clear();
  second_.clear();
  tokenizer_->encode(question, first_);
  tokenizer_->encode(context, second_);
  CodePointIndex index(context);
  int64_t question_length = int64_t(first_.size());
  int64_t length = int64_t(second_.size());
  std::vector<TokenRange> ranges{{0, length}};
  int64_t room = options_.max_length - question_length - tokenizer_->special().around_pair();
  if (options_.max_length > 0 && length > room) {
    if (room <= options_.doc_stride) {
      throw error(concat("the question has ", question_length, " tokens, so --max-length ",
                         options_.max_length, " leaves ", std::max<int64_t>(room, 0),
                         " for the context; it must leave more than --doc-stride ",
                         options_.doc_stride));
    }
    ranges = windows(length, room, options_.doc_stride);
  }
  for (const TokenRange& range : ranges) {
    write_line({{&first_, nullptr, 0, question_length}, {&second_, &index, range.begin, range.end}},
               true);
  }
}

void Command::append_token(int32_t id) {
  char number[16];
  auto end = std::to_chars(number, number + sizeof number, id).ptr;
  ids_.append(number, end);
  ids_ += ',';
  append_json_string(tokenizer_->token(id), tokens_);  // may hold bytes that are not UTF-8
  tokens_ += ',';
}

void Command::write_line(std::initializer_list<Part> parts, bool null_specials) {
  has_written_ = true;
  const char* special_offset = null_specials ? "null," : "[0,0],";
  ids_.clear();
  tokens_.clear();
  offsets_.clear();
  append_token(tokenizer_->special().cls);
  offsets_ += special_offset;
  char number[32];
  for (const Part& part : parts) {
    const int32_t separators = &part == parts.end() - 1 ? 1 : tokenizer_->special().separators;
    for (int64_t i = part.begin; i < part.end; ++i) {
      append_token(part.tokens->ids[size_t(i)]);
      if (!part.index) {
        offsets_ += "null,";
        continue;
      }
      char* at = number;
      *at++ = '[';
      at = std::to_chars(at, number + 31, (*part.index)(part.tokens->begins[size_t(i)])).ptr;
      *at++ = ',';
      at = std::to_chars(at, number + 31, (*part.index)(part.tokens->ends[size_t(i)])).ptr;
      *at++ = ']';
      *at++ = ',';
      offsets_.append(number, at);
    }
    for (int32_t i = 0; i < separators; ++i) {
      append_token(tokenizer_->special().sep);
      offsets_ += special_offset;
    }
  }
  ids_.pop_back();
  tokens_.pop_back();
  offsets_.pop_back();
  out_ += "{\"ids\":[";
  out_ += ids_;
  out_ += "],\"tokens\":[";
  out_ += tokens_;
  out_ += "],\"offsets\":[";
  out_ += offsets_;
  out_ += "]}\n";
  if (out_.size() > 1 << 16) flush();
}

void Command::flush() {
  write_standard_output(out_);
  out_.clear();
}

}  // namespace

void add_tokenize_command(Subcommand program, int& exit_code) {
  auto options = std::make_shared<TokenizeOptions>();
  const Subcommand command = program.add_subcommand(
      "tokenize", "Turn text into token ids and offsets, one JSON line per input line");
  add_options(command, kTokenizeRows, *options);
  command.footer(kTokenizeExamples);
  command.callback([options, &exit_code] {
    if (options->jsonl && (!options->text_column.empty() || options->delimiter != "auto")) {
      throw usage_error(
          "--jsonl has keys of its own; --text-column and --delimiter are for tables");
    }
    Command(*options).run();
    exit_code = 0;
  });
}

}  // namespace finetune
