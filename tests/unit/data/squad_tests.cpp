// SQuAD files in every form: answers, limits, faults.
#include <doctest/doctest.h>

#include <string>
#include <tuple>
#include <vector>

#include "../shared.h"
#include "core/text/text.h"
#include "data/squad.h"
#include "data_fault.h"

using namespace finetune;
using namespace finetune::test;

namespace {

struct Questions {
  TemporaryDirectory scratch;
  SquadData read(std::string_view text, bool need_answers = true, int64_t limit = 0) {
    return read_squad({scratch.write("a.json", text)}, limit, need_answers);
  }
  std::string fault(std::string_view text, bool need_answers = true) {
    return data_fault(scratch, [&] { read(text, need_answers); });
  }
};

// "é" and "😀" are one code point, two and four bytes.
constexpr std::string_view kNested = R"({"version":"1.1","data":[
  {"title":"A","paragraphs":[
    {"context":"Café 😀 in Paris, \u00e9t\u00e9.","qas":[
      {"id":"q1","question":"Where?","answers":[{"text":"Paris","answer_start":10},
                                               {"text":"in Paris","answer_start":7}]},
      {"answers":[{"answer_start":17,"text":"été"}],"question":"When?","id":"q2"}]},
    {"qas":[{"id":"q3","question":"What?","answers":[{"text":"b","answer_start":2}]}],
     "context":"a b"}]},
  {"title":"B","paragraphs":[
    {"context":"a b","qas":[{"id":"q4","question":"Which?","answers":[{"text":"a","answer_start":1}]}]},
    {"context":"unused","qas":[]}]}]})";

}  // namespace

TEST_CASE_FIXTURE(Questions, "nested, as published") {
  SquadData data = read(kNested);
  REQUIRE(data.questions.size() == 4);
  CHECK(data.contexts == std::vector<std::string>{"Café 😀 in Paris, été.", "a b"});
  const SquadQuestion& first = data.questions[0];
  CHECK(first.id == "q1");
  CHECK(first.question == "Where?");
  CHECK(first.context == 0);
  CHECK_FALSE(first.is_impossible);
  REQUIRE(first.answers.size() == 2);
  CHECK(first.answers[0].text == "Paris");
  CHECK(first.answers[0].start_byte == 14);
  CHECK(first.answers[1].start_byte == 11);
  CHECK(data.questions[1].answers[0].start_byte == 21);
  CHECK(data.questions[2].context == 1);
  CHECK(data.questions[2].answers[0].start_byte == 2);
  CHECK(data.questions[3].context == 1);                // the same text, kept once
  CHECK(data.questions[3].answers[0].start_byte == 0);  // its text occurs once
  CHECK(data.questions[3].found == TargetFound::only_place);
  CHECK_FALSE(data.has_unanswerable);
}

TEST_CASE_FIXTURE(Questions, "version 2: no answers, no answer") {
  SquadData data = read(R"({"data":[{"paragraphs":[{"context":"abc","qas":[
    {"id":"1","question":"q","is_impossible":false,"answers":[{"text":"b","answer_start":1}]},
    {"id":"2","question":"q","is_impossible":true,"answers":[],
     "plausible_answers":[{"text":"c","answer_start":2}]},
    {"id":"3","question":"q","answers":[]},
    {"id":"4","question":"q","is_impossible":true}]}]}]})");
  REQUIRE(data.questions.size() == 4);
  CHECK(data.has_unanswerable);
  for (size_t i = 0; i < 4; ++i) CHECK(data.questions[i].is_impossible == (i > 0));
  CHECK(data.questions[1].answers.empty());
}

TEST_CASE_FIXTURE(Questions, "flat: under data, as an array, as JSON Lines") {
  const std::string one =
      R"({"id":"1","title":"t","question":"q","context":"xé y","answers":{"text":["y"],"answer_start":[3]}})";
  const std::string two =
      R"({"id":2,"answers":{"answer_start":[],"text":[]},"context":"xé y","question":"q"})";
  for (const std::string& text :
       {concat("{\"data\":[", one, ",", two, "]}"), concat("[", one, ", ", two, "]"),
        concat(one, "\n", two, "\n"), concat("\xEF\xBB\xBF", one, "\r\n\r\n", two)}) {
    SquadData data = read(text);
    REQUIRE(data.questions.size() == 2);
    CHECK(data.contexts == std::vector<std::string>{"xé y"});
    CHECK(data.questions[0].answers[0].start_byte == 4);
    CHECK(data.questions[1].id == "2");
    CHECK(data.questions[1].is_impossible);
    CHECK(looks_like_squad(scratch / "a.json"));
  }
}

TEST_CASE_FIXTURE(Questions, "answers are optional for prediction") {
  constexpr std::string_view text =
      R"([{"id":"1","question":"q","context":"abc"},
          {"id":"2","question":"q","context":"abc","answers":[{"text":"b"}]}])";
  SquadData data = read(text, false);
  CHECK(data.questions.size() == 2);
  CHECK_FALSE(data.has_unanswerable);
  CHECK(data.questions[1].target_answer()->start_byte == 1);
  CHECK(fault(text) == "a.json: question '1': key 'answers' is missing");
}

TEST_CASE_FIXTURE(Questions, "limit keeps the first questions") {
  SquadData data = read(kNested, true, 3);
  CHECK(data.questions.size() == 3);
  CHECK(data.questions.back().id == "q3");
  std::filesystem::path absent = scratch / "not read.json";
  CHECK(read_squad({scratch / "a.json", absent}, 1, true).questions.size() == 1);
}

TEST_CASE_FIXTURE(Questions, "the answer that training takes is one whose place is known") {
  // "Zoë" is four bytes; "two" occurs in "network", too.
  constexpr std::string_view context = "Zoë has  two dogs in the network. A\\u00a0dog barks.";
  const auto found = [&](std::string_view answers) {
    const SquadData data = read(concat(R"([{"id":"1","question":"q","context":")", context,
                                       R"(","answers":)", answers, "}]"));
    const SquadQuestion& question = data.questions.at(0);
    const SquadAnswer* target = question.target_answer();
    return std::tuple(question.found, target ? target->start_byte : -1,
                      target ? target->end_byte : -1);
  };
  using enum TargetFound;
  using Found = std::tuple<TargetFound, int64_t, int64_t>;
  CHECK(found(R"([{"text":"two","answer_start":9}])") == Found(first_answer, 10, 13));
  CHECK(found(R"([{"text":"two","answer_start":0},{"text":"dogs","answer_start":13}])") ==
        Found(later_answer, 14, 18));
  // An offset in bytes, negative or beyond the context: the text's only occurrence is used.
  for (const char* start : {"14", "-1", "9000000000000000000"}) {
    CHECK(found(concat(R"([{"text":"dogs","answer_start":)", start, "}]")) ==
          Found(only_place, 14, 18));
  }
  CHECK(found(R"([{"text":"cats","answer_start":1},{"text":"dogs","answer_start":1}])") ==
        Found(only_place, 14, 18));
  CHECK(found(R"([{"text":"two","answer_start":1}])") == Found(nowhere, -1, -1));
  CHECK(found(R"([{"text":"cats","answer_start":13}])") == Found(nowhere, -1, -1));
  // White space at the ends is ignored; inside, all white space is equal.
  CHECK(found(R"([{"text":" two ","answer_start":9}])") == Found(first_answer, 10, 13));
  CHECK(found(R"([{"text":"two","answer_start":7}])") == Found(first_answer, 10, 13));
  CHECK(found(R"([{"text":"has two","answer_start":4}])") == Found(first_answer, 5, 13));
  CHECK(found(R"([{"text":"A dog","answer_start":0}])") == Found(only_place, 35, 41));
  CHECK(found(R"([{"text":"hastwo","answer_start":4}])") == Found(nowhere, -1, -1));
}

TEST_CASE_FIXTURE(Questions, "an answer without text is no answer") {
  for (const char* answers :
       {R"([{"text":"","answer_start":-1}])", R"([{"text":"  ","answer_start":0}])",
        R"({"text":[""],"answer_start":[-1]})", "[]", R"({"text":[],"answer_start":[]})"}) {
    const SquadData data =
        read(concat(R"([{"id":"1","question":"q","context":"abc","answers":)", answers, "}]"));
    CHECK(data.questions[0].is_impossible);
    CHECK(data.questions[0].answers.empty());
    CHECK(data.questions[0].found == TargetFound::none);
    CHECK(data.has_unanswerable);
  }
}

TEST_CASE_FIXTURE(Questions,
                  "a flag that contradicts the answers is noted, and the answers decide") {
  SquadData data = read(R"([
    {"id":"1","question":"q","context":"ab","is_impossible":true,"answers":[{"text":"b","answer_start":1}]},
    {"id":"2","question":"q","context":"ab","is_impossible":false,"answers":[]},
    {"id":"3","question":"q","context":"ab","is_impossible":true,"answers":[]},
    {"id":"4","question":"q","context":"ab","answers":[]}])");
  for (size_t q = 0; q < 4; ++q) {
    CHECK(data.questions[q].is_impossible == (q > 0));
    CHECK(data.questions[q].contradicts_flag == (q < 2));
  }
}

TEST_CASE_FIXTURE(Questions, "questions without ids are numbered over all files") {
  constexpr std::string_view one = R"({"question":"q","context":"a","answers":[]})";
  constexpr std::string_view with_null = R"({"id":null,"question":"q","context":"a","answers":[]})";
  const InputFile a = scratch.write("a.json", concat("[", one, ",", with_null, "]"));
  const InputFile b = scratch.write("b.jsonl", concat(one, "\n"));
  const SquadData data = read_squad({a, b}, 0, true);
  REQUIRE(data.questions.size() == 3);
  CHECK(data.questions[0].id == "q-1");
  CHECK(data.questions[1].id == "q-2");
  CHECK(data.questions[2].id == "q-3");
}

TEST_CASE_FIXTURE(Questions, "an id that occurs twice names both places") {
  constexpr std::string_view one = R"({"id":"7","question":"q","context":"a","answers":[]})";
  const InputFile a = scratch.write("a.json", concat("[", one, "]"));
  const InputFile b = scratch.write("b.json", concat("[", one, "]"));
  const std::string of_two = data_fault(scratch, [&] { read_squad({a, b}, 0, true); });
  CHECK(
      of_two ==
      "b.json: question 1 has the id '7' of question 1 of a.json; give each question an id of its "
      "own, or leave out all ids");
  CHECK(fault(concat(R"([{"id":"q-2","question":"q","context":"a","answers":[]},)",
                     R"({"question":"q","context":"a","answers":[]}])")) ==
        "a.json: question 2, which has no id, would have the id 'q-2' of question 1; "
        "give each question an id of its own, or leave out all ids");
}

TEST_CASE_FIXTURE(Questions, "answers are read as people write them") {
  using enum TargetFound;
  const auto found = [&](const std::string& answers) {
    const SquadData data = read(
        concat(R"([{"id":"1","question":"q","context":"year 1912, a dog and a dog","answers":)",
               answers, "}]"));
    const SquadQuestion& question = data.questions[0];
    const SquadAnswer* target = question.target_answer();
    return std::pair(question.found, target ? target->start_byte : -1);
  };
  const std::pair year{first_answer, int64_t{5}}, alone{only_place, int64_t{5}};
  CHECK(found(R"([{"text":"1912","answer_start":"5"}])") == year);
  CHECK(found(R"([{"text":"1912","answer_start":5.0}])") == year);
  CHECK(found(R"([{"text":1912,"answer_start":5}])") == year);
  CHECK(found(R"({"text":"1912","answer_start":5})") == year);
  CHECK(found(R"({"text":["1912"],"answer_start":5})") == year);
  CHECK(found(R"([{"text":"1912","answer_start":null}])") == alone);
  CHECK(found(R"("1912")") == alone);
  CHECK(found(R"(["1912","a dog"])") == alone);
  CHECK(found(R"("a dog")") == std::pair(nowhere, int64_t{-1}));
  CHECK(found(R"("")") == std::pair(none, int64_t{-1}));
  const SquadData data = read(R"([
    {"id":"1","question":"q","context":"a b","answer":"b"},
    {"id":"2","question":"q","context":"a b","answers":null,"is_impossible":"true"},
    {"id":"3","question":"q","context":"a b","answers":[],"is_impossible":1}])");
  CHECK(data.questions[0].found == only_place);
  CHECK(data.questions[1].is_impossible);
  CHECK(data.questions[2].is_impossible);
}

TEST_CASE_FIXTURE(Questions, "faults name the file, and the question or the byte") {
  CHECK(fault("") == "a.json: is empty");
  CHECK(fault(R"({"data":[]})") == "a.json: holds no questions");
  CHECK(fault("[]") == "a.json: holds no questions");
  CHECK(fault("  \n") == "a.json: holds no questions");
  CHECK(fault(R"({"data":[{"paragraphs":[{"context":"abc","qas":[]}]}]})") ==
        "a.json: holds no questions");
  CHECK(fault(R"({"version":"1.1"})") ==
        "a.json: item 1 has none of 'data', 'paragraphs', 'context'");
  CHECK(fault(R"({"data":[{"paragraphs":[{"qas":[{"id":"7","question":"q"}]}]}]})") ==
        "a.json: question '7': key 'context' is missing");
  CHECK(fault(R"([{"id":"7","context":"abc"}])") ==
        "a.json: question '7': key 'question' is missing");
  CHECK(fault(R"([{"id":"7","question":"q","context":"abc","answers":[{"text":"b"}]}])") ==
        "a.json: question '7': key 'answer_start' is missing");
  CHECK(fault(R"([{"id":"7","question":"q","context":"abc","answers":[]},
                  {"id":"7","question":"q","context":"abc","answers":[]}])") ==
        "a.json: question 2 has the id '7' of question 1; give each question an id of its own, or "
        "leave out all ids");
  CHECK(fault(R"([{"id":"7","answers":{"text":["a","b"],"answer_start":[1]}}])") ==
        "a.json: question '7': key 'context' is missing");
  const auto fault_of = [&](const std::string& members) {
    return fault(concat("[{\"context\":\"abc\",\n", members, ",\n\"id\":\"7\"}]"));
  };
  const std::string where = "a.json:2: question '7': key ";
  CHECK(fault_of(R"("answers":{"text":["a","b"],"answer_start":[1]})") ==
        where + "'answers': 2 answer texts but 1 answer_start");
  CHECK(fault_of(R"("answers":[{"answer_start":1.5}])") ==
        where + "'answers': answer_start is a whole number, not '1.5'");
  CHECK(fault_of(R"("answers":[{"text":"a","answer_start":"four"}])") ==
        where + "'answers': answer_start is a whole number, not 'four'");
  CHECK(fault_of(R"("answers":[{"answer_start":1}])") ==
        where + "'answers': an answer without 'text'");
  CHECK(fault_of(R"("answers":true)") == where + "'answers': a string is expected, not 't'");
  CHECK(fault_of(R"("question":7)") == where + "'question': a string is expected, not '7'");
  CHECK(fault_of(R"("is_impossible":"maybe")") ==
        where + "'is_impossible': is true or false, not 'maybe'");
  CHECK(fault(R"([{"id":"7","question":"q","context":null}])") ==
        "a.json:1: question '7': key 'context': a string is expected, not 'n'");
  CHECK(fault(R"([{"id":"7","question":"q","context":"abc","answers":null}])") ==
        "a.json: question '7': key 'answers' is null; [] means that there is no answer");
  CHECK(fault("[{\"id\":\"7\"\n \"answers\":[]}]") ==
        "a.json:2: not SQuAD JSON: ',' or '}' is expected, not '\"' (byte 13)");
  CHECK(fault("[{\"id\":\"caf\xE9\"}]") == "a.json:1: not UTF-8 at byte 12");
  CHECK(fault(std::string(100000, '[')) == "a.json:1: not SQuAD JSON: nested too deeply (byte 10)");
  CHECK(data_fault(scratch, [&] { read_squad({scratch / "no.json"}, 0, true); }) ==
        "no.json: No such file or directory");
}

TEST_CASE_FIXTURE(Questions, "a file that is cut short says so wherever it is cut") {
  std::string whole(kNested);
  for (size_t size = 1; size < whole.size(); ++size) {
    CHECK(fault(whole.substr(0, size)) ==
          concat("a.json: the JSON ends too early, at byte ", size, "; is the file cut short?"));
  }
}

TEST_CASE_FIXTURE(Questions, "tables of questions") {
  const auto table = [&](std::string_view text) {
    return read_squad({scratch.write("a.csv", text)}, 0, true);
  };
  SquadData data = table(
      "id,question,context,answers\n"
      "a,Who?,\"It, I\n\",\"{\"\"text\"\": [\"\"I\"\"], \"\"answer_start\"\": [4]}\"\n"
      ",What?,x é y,\"{'text': array(['y'], dtype=object), 'answer_start': array([4], "
      "dtype=int32)}\"\n"
      "c,None?,x é y,\"{'text': [], 'answer_start': []}\"\n"
      "d,None?,x,\n");
  REQUIRE(data.questions.size() == 4);
  CHECK(data.contexts.size() == 3);
  CHECK(data.questions[0].target_answer()->start_byte == 4);
  CHECK(data.questions[1].id == "q-2");
  CHECK(data.questions[1].target_answer()->start_byte == 5);
  CHECK(data.questions[2].is_impossible);
  CHECK(data.questions[3].is_impossible);
  data = table(
      "question;context;answer_text;answer_start\nWhich?;a b;b;2\nNone?;a b;;\nOnly?;a b;a;\n");
  CHECK(data.questions[0].target_answer()->start_byte == 2);
  CHECK(data.questions[1].is_impossible);
  CHECK(data.questions[2].found == TargetFound::only_place);
  const auto fault_of = [&](std::string_view text) {
    return data_fault(scratch, [&] { table(text); });
  };
  CHECK(fault_of("id,question,context\n1,q,c\n") ==
        "a.csv: question '1': key 'answers' is missing");
  CHECK(fault_of("question,context,answers\nq,c,['Paris'\n")
            .starts_with("a.csv:2: the answers '['Paris'' are not understood ("));
  data = table("question,context,answers\nq,to Paris,Paris\nq,to Paris,None\nq,a 1 b 1,1\n");
  CHECK(data.questions[0].target_answer()->start_byte == 3);
  CHECK(data.questions[1].is_impossible);
  CHECK(data.questions[2].found == TargetFound::nowhere);
}

TEST_CASE_FIXTURE(Questions, "looks_like_squad") {
  auto looks = [&](std::string_view text) { return looks_like_squad(scratch.write("b", text)); };
  CHECK(looks(kNested));
  CHECK(looks(R"({"version":"v2.0","data":[)"));
  CHECK_FALSE(looks("text,label\na,b\n"));
  CHECK_FALSE(looks(""));
  CHECK_FALSE(looks(R"({"text":"a","label":1})"));
  CHECK_FALSE(looks(R"({"data":"a","label":1})"));
  CHECK_FALSE(looks(R"({"context":"a","label":1})"));
  CHECK_FALSE(looks(R"({"data":[{"text":"a","label":1}]})"));
  CHECK(looks(R"({"data":[]})"));
  CHECK(looks("id,question,context,answers\n1,q,c,[]\n"));
  CHECK(looks("answer_text;context; question ;answer_start\n"));
  CHECK_FALSE(looks("id,question,context\n1,q,c\n"));  // texts, as well as questions
  CHECK(data_fault(scratch, [&] { looks_like_squad(scratch / "no.json"); }) ==
        "no.json: No such file or directory");
}

namespace {

struct Expected {
  const char* file;
  size_t questions, impossible, answers, contexts;
};

void check_counts(const Expected& expected, const std::filesystem::path& path) {
  CAPTURE(path);
  SquadData data = read_squad({path}, 0, true);
  size_t impossible = 0, answers = 0, wrong = 0, misplaced = 0;
  for (const SquadQuestion& question : data.questions) {
    impossible += question.is_impossible;
    misplaced += !question.is_impossible && question.found != TargetFound::first_answer;
    answers += question.answers.size();
    const std::string& context = data.contexts[question.context];
    for (const SquadAnswer& answer : question.answers) {
      wrong += answer.start_byte < 0 ||
               context.compare(size_t(answer.start_byte), answer.text.size(), answer.text) != 0;
    }
  }
  CHECK(data.questions.size() == expected.questions);
  CHECK(impossible == expected.impossible);
  CHECK(answers == expected.answers);
  CHECK(data.contexts.size() == expected.contexts);
  CHECK(data.has_unanswerable == (expected.impossible > 0));
  CHECK(misplaced == 0);
  CHECK(wrong == 0);
  CHECK(looks_like_squad(path));
}

}  // namespace

TEST_CASE("small SQuAD files have as many questions, answers and contexts as Python counts") {
  const Expected all[] = {{"data/samples/squad-train.json", 438, 0, 438, 81},
                          {"data/samples/squad-dev.json", 112, 0, 341, 45},
                          {"tests/golden/qa-postprocess/questions.json", 150, 71, 265, 150},
                          {"tests/golden/qa-features-questions.json", 30, 0, 30, 7}};
  for (const Expected& expected : all) check_counts(expected, source_path(expected.file));
}

TEST_CASE("published files have the published numbers of questions") {
  // Counts: squad/README.txt beside the files; contexts counted with Python's json.
  const Expected all[] = {{"data/squad/train-v1.1.json", 87599, 0, 87599, 18891},
                          {"data/squad/dev-v1.1.json", 10570, 0, 34726, 2067},
                          {"data/squad/dev-v2.0.json", 11873, 5945, 20302, 1204},
                          {"data/squad/train-v1.1-4000.json", 4000, 0, 4000, 3645},
                          {"data/squad/v2.0-split-train.json", 9239, 4627, 16246, 960},
                          {"data/squad/v2.0-split-dev.json", 2634, 1318, 4056, 244},
                          {"data/xquad/xquad.zh.json", 1190, 0, 1190, 240},
                          {"data/xquad/xquad.ar.json", 1190, 0, 1190, 240}};
  for (const Expected& expected : all) {
    if (have_shared(expected.file)) check_counts(expected, shared_path(expected.file));
  }
}
