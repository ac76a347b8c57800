// Reads predictions.json and null_odds.json, and matches them to questions.
#include "tasks/scores/prediction_files.h"

#include <simdjson.h>

#include <unordered_map>

#include "core/error.h"
#include "core/files/files.h"
#include "core/text/json_text.h"

namespace finetune {
namespace {

// Calls entry(id, value) for each member of the object in `path`, in order.
template <typename Entry>
void for_each_member(const fs::path& path, std::string_view what, Entry entry) {
  const InputFile input = in_memory(path, kSecondsForWriter);
  const std::string text = read_text_file(input.content);
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (auto error = parser.parse(text).get(root)) {
    throw data_error(path.string(), ": not JSON: ", json_fault(error));
  }
  simdjson::dom::object object;
  if (root.get(object)) {
    throw data_error(path.string(), ": not a JSON object; expected {id: ", what, "}");
  }
  for (auto member : object) entry(member.key, member.value);
}

using QuestionIds = std::unordered_map<std::string_view, uint32_t>;

QuestionIds question_ids(const SquadData& data) {
  QuestionIds ids;
  ids.reserve(data.questions.size());
  for (size_t q = 0; q < data.questions.size(); ++q) ids.emplace(data.questions[q].id, uint32_t(q));
  return ids;
}

}  // namespace

PredictionFile read_predictions(const fs::path& path, const SquadData& data) {
  const QuestionIds ids = question_ids(data);
  PredictionFile out;
  out.answers.assign(data.questions.size(), nullptr);
  out.missing = int64_t(data.questions.size());
  for_each_member(path, "answer", [&](std::string_view id, simdjson::dom::element value) {
    std::string_view text;
    if (value.get(text)) {
      throw data_error(path.string(), ": the prediction of ", in_quotes(id), " is not a string");
    }
    auto found = ids.find(id);
    if (found == ids.end()) {
      ++out.unknown;
      return;
    }
    out.texts.emplace_back(text);
    const std::string*& answer = out.answers[found->second];
    if (!answer) --out.missing;
    answer = &out.texts.back();  // of a repeated id the last one counts
  });
  return out;
}

void require_answers(const PredictionFile& predictions, const fs::path& path) {
  const auto& answers = predictions.answers;
  if (predictions.missing < int64_t(answers.size())) return;
  throw data_error(path.string(), ": none of its ", predictions.unknown,
                   " ids is a question of the data; are these the predictions for another file?");
}

std::vector<NoAnswerScore> read_no_answer_scores(const fs::path& path, const SquadData& data,
                                                 const PredictionFile& predictions) {
  const QuestionIds ids = question_ids(data);
  std::vector<NoAnswerScore> out;
  std::vector<int64_t> place(data.questions.size(), -1);
  for_each_member(path, "number", [&](std::string_view id, simdjson::dom::element value) {
    double number = 0;
    if (value.get(number)) {
      throw data_error(path.string(), ": the value of ", in_quotes(id), " is not a number");
    }
    auto found = ids.find(id);
    if (found == ids.end() || !predictions.answers[found->second]) return;
    if (place[found->second] < 0) {
      place[found->second] = int64_t(out.size());
      out.push_back({found->second, number});
    } else {
      out[size_t(place[found->second])].value = number;
    }
  });
  for (size_t q = 0; q < place.size(); ++q) {
    if (predictions.answers[q] && place[q] < 0) {
      throw data_error(path.string(), ": no value for question ", in_quotes(data.questions[q].id),
                       ", which has a prediction");
    }
  }
  return out;
}

}  // namespace finetune
