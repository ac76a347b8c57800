// SQuAD files: answers must be at their places in the contexts.
#include "data/squad.h"

#include <set>

#include "core/error.h"
#include "data/questions/answer_place.h"
#include "fuzz/target.h"

namespace finetune::fuzz {
namespace {

void check_questions(const SquadData& data) {
  std::set<std::string_view> ids;
  require(!data.questions.empty(), "no question and no error");
  for (const SquadQuestion& question : data.questions) {
    require(ids.insert(question.id).second, "question ", in_quotes(question.id), " comes twice");
    require(question.context < data.contexts.size(), "a question without a context");
    const std::string_view context = data.contexts[question.context];
    require(question.answers.empty() || !question.is_impossible, "an answer to what has none");
    for (const SquadAnswer& answer : question.answers) {
      if (answer.start_byte < 0) continue;
      const std::optional<AnswerPlace> place = only_place(
          context.substr(size_t(answer.start_byte), size_t(answer.end_byte - answer.start_byte)),
          answer.text);
      require(answer.start_byte < answer.end_byte && uint64_t(answer.end_byte) <= context.size() &&
                  place.has_value(),
              "answer ", in_quotes(answer.text), " is not at its place");
    }
    require(question.answers.empty() == (question.found == TargetFound::none) &&
                (question.found <= TargetFound::only_place) ==
                    (question.answers.empty() || question.target_answer()->start_byte >= 0),
            "the target of question ", in_quotes(question.id), " has no place");
  }
}

void check_squad(std::string_view input) {
  const InputFile file(scratch_file("train.json", input));
  looks_like_squad(file);
  std::string fault;
  try {
    check_questions(read_squad({file}, 0, true));
  } catch (const Error& error) {
    fault = error.what();
  }
  const SquadData data = read_squad({file}, 0, false);
  check_questions(data);
  const SquadData one = read_squad({file}, 1, false);
  require(one.questions.size() == 1 && one.questions[0].id == data.questions[0].id,
          "the first question is another one");
}

const Registration kSquadTarget({.name = "squad", .run = check_squad, .memory = kPackedMemory});

}  // namespace
}  // namespace finetune::fuzz
