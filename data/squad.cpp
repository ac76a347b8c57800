// Parses every form of SQuAD JSON in one pass and converts code-point offsets to byte offsets.
#include "data/squad.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/files/files.h"
#include "core/option_advice.h"
#include "core/text/utf8.h"
#include "data/json_cursor.h"
#include "data/questions/answer_place.h"
#include "data/questions/python_literal.h"
#include "data/questions/squad_form.h"
#include "data/questions/written_answers.h"
#include "data/rows/records.h"
#include "data/rows/row_stream.h"
#include "data/source/byte_source.h"

namespace finetune {
namespace {

constexpr int kMostSquadNesting = 8;  // of "data", "paragraphs" and arrays

// The source of a question.
struct Origin {
  size_t file = 0;     // number of files read before
  int64_t number = 0;  // in the file, from 1
};

struct WrittenQuestion {
  std::string id, question;
  bool has_id = false, has_question = false, has_answers = false;
  bool has_null = false;  // "answers" is null
  std::optional<bool> is_impossible;
  std::vector<WrittenAnswer> answers;
  std::optional<JsonFault> fault;  // the first one among its values
};

int64_t line_of(std::string_view text, size_t at) {
  return 1 + std::count(text.begin(), text.begin() + ptrdiff_t(std::min(at, text.size())), '\n');
}

// Reads all forms in one pass. An object is an article ("paragraphs"), a paragraph ("context",
// "qas"), a flat row ("context", "question", ...) or a wrapper of these objects ("data").
class SquadReader {
 public:
  SquadReader(int64_t limit, bool need_answers) : limit_(limit), need_answers_(need_answers) {}

  void read(const InputFile& given) {
    const InputFile input = as_text(in_memory(given));
    file_ = input.name.string();
    files_.push_back(file_);
    questions_before_ = data_.questions.size();
    const MappedFile file(input.content);
    if (is_table(input.name, file.text())) return read_table_of(input);
    file.read_intact([&] { read_text(file.text()); });
  }

  bool full() const { return limit_ > 0 && int64_t(data_.questions.size()) >= limit_; }

  SquadData finish() { return std::move(data_); }

 private:
  // Reads a table with the columns question and context, optionally id, and answers or answer_text
  // with answer_start.
  void read_table_of(const InputFile& input) {
    const Table table = read_table({input});
    const auto column = [&](std::string_view name) {
      return table.has_column(name) ? std::optional(table.column(name)) : std::nullopt;
    };
    const auto context = column("context"), question = column("question"), id = column("id"),
               answers_of = column("answers"), text = column("answer_text"),
               start = column("answer_start");
    if (!context || !question) {
      throw data_error(file_,
                       ": a table of questions has the columns 'question' and 'context'; its "
                       "columns are: ",
                       listed_columns(table.columns()));
    }
    for (const Row& row : table.rows()) {
      if (full()) return;
      WrittenQuestion written;
      written.question = row.values[*question];
      written.has_question = true;
      if (id) written.id = row.values[*id];
      written.has_id = !written.id.empty();
      if (answers_of) {
        answers_in_cell(row.values[*answers_of], table.where(row), written);
      } else if (text) {
        const std::string_view at = start ? row.values[*start] : std::string_view();
        const auto number = parse_answer_start(at);
        if (!number) {
          throw data_error(table.where(row), ": answer_start is a whole number, not ",
                           in_quotes(at));
        }
        written.has_answers = true;
        written.answers = {{std::string(row.values[*text]), *number, true}};
      }
      add(written, index_of(std::string(row.values[*context])));
    }
    table.check_intact();
  }

  // The cell holds JSON, a Python literal, or the answer alone; an empty cell means that there is
  // no answer.
  static void answers_in_cell(std::string_view cell, const std::string& where,
                              WrittenQuestion& out) {
    const std::string_view text = trim(cell);
    out.has_answers = true;
    if (text.empty()) return;
    if (std::string_view("[{('\"").find(text[0]) == text.npos && !text.starts_with("array(")) {
      const bool is_none = text == "None" || text == "null" || text == "nan" || text == "NaN";
      out.answers = {{std::string(is_none ? "" : text), -1, true}};
      return;
    }
    const std::string json = json_of_python(cell);
    JsonCursor cursor(json);
    try {
      out.answers = read_answers(cursor);
      if (!cursor.at_end()) cursor.fail("text after the answers");
    } catch (const JsonFault& fault) {
      throw data_error(
          where, ": the answers ", in_quotes(cell), " are not understood (", fault.what,
          "); write {\"text\": [\"...\"], \"answer_start\": [0]}, or columns answer_text "
          "and answer_start");
    }
  }

  uint32_t index_of(std::string context) {
    auto [known, is_new] = contexts_.try_emplace(context, uint32_t(data_.contexts.size()));
    if (is_new) data_.contexts.push_back(std::move(context));
    return known->second;
  }

  void read_text(const std::string_view whole) {
    std::string_view text = whole;
    check_text(text);
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    text_ = text;
    JsonCursor cursor(text);
    try {
      while (!cursor.at_end()) value(cursor, 0);  // one document, or one row per line
    } catch (const JsonFault& fault) {
      if (fault.at >= text.size()) {
        throw too_short(whole);
      }
      throw data_error(file_, ":", line_of(text, fault.at), ": not SQuAD JSON: ", fault.what,
                       " (byte ", fault.at + (whole.size() - text.size()) + 1, ")");
    }
    if (data_.questions.size() == questions_before_ && !full())
      throw data_error(file_, ": holds no questions");
  }

  Error too_short(std::string_view text) const {
    return data_error(file_, ": the JSON ends too early, at byte ", text.size(),
                      "; is the file cut short?");
  }

  void check_text(std::string_view text) const {
    if (text.empty()) throw data_error(file_, ": is empty");
    if (utf8::is_valid(text)) return;
    size_t at = invalid_utf8(text);
    bool begins_character = static_cast<unsigned char>(text[at]) >= 0xC2;
    if (begins_character && text.size() - at < 4) throw too_short(text);
    throw data_error(file_, ":", line_of(text, at), ": not UTF-8 at byte ", at + 1);
  }

  void value(JsonCursor& cursor, int depth) {
    if (depth > kMostSquadNesting) cursor.fail("nested too deeply");
    if (full())
      cursor.skip_value();
    else if (cursor.peek() == '[')
      cursor.array([&] { value(cursor, depth + 1); });
    else
      element(cursor, depth);
  }

  void element(JsonCursor& cursor, int depth) {
    std::string context;
    bool has_context = false, is_wrapper = false, has_qas = false;
    WrittenQuestion row;
    std::vector<WrittenQuestion> questions;
    cursor.object([&](const JsonString& key) {
      char first = cursor.peek();
      if ((key.raw == "data" || key.raw == "paragraphs") && first == '[') {
        is_wrapper = true;
        cursor.array([&] { value(cursor, depth + 1); });
      } else if (key.raw == "qas") {
        has_qas = true;
        cursor.array([&] { questions.push_back(question(cursor)); });
      } else if (key.raw == "context") {
        has_context = true;
        read_value(cursor, key.raw, row.fault,
                   [&](JsonCursor& value) { context = text_of(value.string()); });
      } else {
        question_member(cursor, key.raw, row);
      }
    });
    if (is_wrapper) return;
    if (!has_qas) questions.push_back(std::move(row));
    if (!has_context) {
      if (has_qas && questions.empty()) return;
      throw data_error(file_, ": ", name_of(questions.front()),
                       questions.front().has_id ? ": key 'context' is missing"
                                                : " has none of 'data', 'paragraphs', 'context'");
    }
    if (questions.empty()) return;
    if (has_qas && row.fault) questions.front().fault = row.fault;
    const uint32_t index = index_of(std::move(context));
    for (WrittenQuestion& each : questions) {
      if (!full()) add(each, index);
    }
  }

  WrittenQuestion question(JsonCursor& cursor) {
    WrittenQuestion out;
    cursor.object([&](const JsonString& key) { question_member(cursor, key.raw, out); });
    return out;
  }

  // Calls read(cursor) for a key's value. A value of another type is skipped and noted: the error
  // names the question, whose id may follow.
  template <typename Read>
  static void read_value(JsonCursor& cursor, std::string_view key, std::optional<JsonFault>& fault,
                         Read&& read) {
    JsonCursor behind = cursor;
    try {
      read(behind);
      cursor = behind;
    } catch (const JsonFault& found) {
      cursor.skip_value();
      if (!fault) fault = {found.at, concat("key '", key, "': ", found.what)};
    }
  }

  static void question_member(JsonCursor& cursor, std::string_view key, WrittenQuestion& out) {
    read_value(cursor, key, out.fault, [&](JsonCursor& value) { read_member(value, key, out); });
  }

  static void read_member(JsonCursor& cursor, std::string_view key, WrittenQuestion& out) {
    if (key == "id") {
      const bool is_string = cursor.peek() == '"';
      out.id = is_string ? text_of(cursor.string()) : std::string(cursor.scalar());
      out.has_id = is_string || out.id != "null";
    } else if (key == "question") {
      out.question = text_of(cursor.string());
      out.has_question = true;
    } else if (key == "is_impossible") {
      out.is_impossible = read_flag(cursor);
    } else if (key == "answers" || (key == "answer" && !out.has_answers)) {
      out.has_null = cursor.peek() == 'n';
      out.has_answers = !out.has_null;
      out.answers = read_answers(cursor);
    } else {
      cursor.skip_value();
    }
  }

  std::string name_of(const WrittenQuestion& question) const {
    if (question.has_id) return concat("question ", in_quotes(question.id));
    return concat("item ", data_.questions.size() + 1);
  }

  void add(WrittenQuestion& written, uint32_t context_index) {
    const std::string_view context = data_.contexts[context_index];
    if (written.fault) {
      throw data_error(file_, ":", line_of(text_, written.fault->at), ": ", name_of(written), ": ",
                       written.fault->what);
    }
    auto missing = [&](std::string_view key) {
      return data_error(file_, ": ", name_of(written), ": key '", key, "' is missing");
    };
    if (!written.has_question) throw missing("question");
    const bool says_impossible = written.is_impossible.value_or(false);
    if (!written.has_answers && !says_impossible && need_answers_) {
      if (!written.has_null) throw missing("answers");
      throw data_error(file_, ": ", name_of(written),
                       ": key 'answers' is null; [] means that there is no answer");
    }
    if (!written.has_id) written.id = concat("q-", data_.questions.size() + 1);
    check_is_new(written);
    SquadQuestion question;
    question.context = context_index;
    for (WrittenAnswer& answer : written.answers) {
      if (!answer.has_start && need_answers_) throw missing("answer_start");
      if (is_blank(answer.text)) continue;  // {"text": "", "answer_start": -1} means no answer
      const AnswerPlace place = place_at(context, answer.text, answer.has_start ? answer.start : -1)
                                    .value_or(AnswerPlace());
      question.answers.push_back({std::move(answer.text), place.begin, place.end});
    }
    // As in the official scripts: a question without answers is impossible; the flag counts only if
    // there is no key "answers".
    question.is_impossible = written.has_answers ? question.answers.empty() : says_impossible;
    question.contradicts_flag =
        written.is_impossible && *written.is_impossible != question.is_impossible;
    find_target(question, context);
    data_.has_unanswerable |= question.is_impossible;
    question.id = std::move(written.id);
    question.question = std::move(written.question);
    data_.questions.push_back(std::move(question));
  }

  void check_is_new(const WrittenQuestion& written) {
    const Origin origin{files_.size() - 1, int64_t(data_.questions.size() - questions_before_) + 1};
    const auto [known, is_new] = origins_.try_emplace(written.id, origin);
    if (is_new) return;
    const Origin& first = known->second;
    throw data_error(file_, ": question ", origin.number,
                     written.has_id ? " has" : ", which has no id, would have", " the id ",
                     in_quotes(written.id), " of question ", first.number,
                     first.file == origin.file ? "" : concat(" of ", files_[first.file]),
                     "; give each question an id of its own, or leave out all ids");
  }

  // Chooses the first answer found at its answer_start, else the first whose text occurs exactly
  // once.
  static void find_target(SquadQuestion& question, std::string_view context) {
    std::vector<SquadAnswer>& answers = question.answers;
    if (answers.empty()) return;
    const auto placed = std::find_if(answers.begin(), answers.end(), [](const SquadAnswer& answer) {
      return answer.start_byte >= 0;
    });
    if (placed != answers.end()) {
      question.target = int32_t(placed - answers.begin());
      question.found = question.target == 0 ? TargetFound::first_answer : TargetFound::later_answer;
      return;
    }
    question.found = TargetFound::nowhere;
    for (size_t i = 0; i < answers.size(); ++i) {
      const std::optional<AnswerPlace> place = only_place(context, answers[i].text);
      if (!place) continue;
      answers[i].start_byte = place->begin;
      answers[i].end_byte = place->end;
      question.target = int32_t(i);
      question.found = TargetFound::only_place;
      return;
    }
  }

  int64_t limit_;
  bool need_answers_;
  std::string file_;
  std::string_view text_;  // of the file being read, without its byte order mark
  SquadData data_;
  std::vector<std::string> files_;
  size_t questions_before_ = 0;                      // in the files before this one
  std::unordered_map<std::string, Origin> origins_;  // of ids
  std::unordered_map<std::string, uint32_t> contexts_;
};

}  // namespace

SquadData read_squad(const std::vector<InputFile>& files, int64_t limit, bool need_answers) {
  FINETUNE_CHECK(!files.empty());
  const UnusedOptions unused({"skip-bad-rows", "encoding", "delimiter"});
  SquadReader reader(limit, need_answers);
  for (const auto& file : files) {
    if (!reader.full()) reader.read(file);
  }
  return reader.finish();
}

}  // namespace finetune
