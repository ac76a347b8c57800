// Normal forms of labels, names that are joined, and lists of labels in one value.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tasks/labels/label_list.h"
#include "tasks/labels/label_names.h"
#include "tasks/labels/name_texts.h"

using namespace finetune;

namespace {

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("the normal form of a label") {
  CHECK(normal_label("Food") == "Food");
  CHECK(normal_label(" \tfood\u00a0 \u3000drink\r\n") == "food drink");
  CHECK(normal_label("f\u200bo\u00ado\ufeffd\x01\ufe0f") == "food");
  CHECK(normal_label("\u200b \u200e") == "");
  CHECK(normal_label("Cafe\u0301") == "Caf\u00e9");
  CHECK(normal_label("a\u0323\u0302 a\u0302\u0323") == "\u1ead \u1ead");
  CHECK(normal_label("\u1112\u1161\u11ab \u1100\u1161") == "\ud55c \uac00");
  CHECK(normal_label("\u0958") == "\u0915\u093c");  // never composed
  CHECK(normal_label("1.0") == "1");
  CHECK(normal_label("-12.000") == "-12");
  for (const char* kept :
       {"007", "1.10", "1.", ".0", "1.0.0", "v1.0", "1,0", "1e0", "-.0", "1.0 %"}) {
    CHECK(normal_label(kept) == kept);
  }
}

TEST_CASE("invisible characters are escaped") {
  CHECK(visible_label("food ") == "'food '");
  CHECK(visible_label("food\u00a0") == "'food\\u00a0'");
  CHECK(visible_label("e\u0301\u200b\t") == "'e\\u0301\\u200b\\u0009'");
  CHECK(visible_label("\U000e0100") == "'\\U000e0100'");
  CHECK(visible_label("caf\u00e9 \u4e2d") == "'caf\u00e9 \u4e2d'");
}

TEST_CASE("labels that are alike") {
  CHECK(alike_labels({"a", "b", "A ", "1", "1.0", "01"}) ==
        std::vector<Names>{{"1", "1.0"}, {"a", "A "}});
  CHECK(alike_labels({"\u0130", "i\u0307", "\u00c9", "e\u0301"}).size() == 2);
  CHECK(alike_labels({"a", "b"}).empty());
  CHECK(likeness({"x", "Food"}, {"food"}).value() == "'Food' is like 'food'");
  CHECK_FALSE(likeness({"food"}, {"food"}).has_value());
}

TEST_CASE("the most frequent normal form is the name; a model's labels keep theirs") {
  LabelNames names;
  for (const char* label : {"Food", "food", "food ", "FOOD", "b", "B"}) names.count(label);
  CHECK(names.name_of("FOOD") == "food");
  CHECK(names.name_of("b") == "B");  // equally frequent: the first by code point
  CHECK(names.name_of("other\u00a0") == "other");
  LabelNames of_model({"FOOD", "c "});
  of_model.count("food");
  CHECK(of_model.name_of("food") == "FOOD");
  CHECK(of_model.name_of("C") == "c ");
  CHECK(of_model.name_of("c ") == "c ");
  JoinedLabels joined;
  joined.note("food", "food");
  CHECK(joined.describe() == "");
  joined.note("food\u00a0", "food");
  joined.note("Food", "food");
  joined.note("Food", "food");
  CHECK(joined.spellings() == 2);
  CHECK(joined.describe() ==
        "--normalize-labels changes 2 labels: 'Food', 'food\\u00a0' to 'food'");
}

TEST_CASE("lists of labels in the notations of JSON, Python and numpy") {
  for (const char* value :
       {R"(["a","b c"])", "['a', 'b c']", " [ 'a' , \"b c\" ] ", "('a', 'b c',)", "{'a', 'b c'}",
        "['a' 'b c']", "['a'\n 'b c']", "['a', None, ' b c ', '']", R"(["a", null, "b\u0020c"])"}) {
    CAPTURE(value);
    CHECK(label_list(value).value_or(Names{}) == Names{"a", "b c"});
  }
  CHECK(label_list("[]").value() == Names{});
  CHECK(label_list("[1, 2.0 -3]").value() == Names{"1", "2.0", "-3"});
  CHECK(label_list("[nan]").value() == Names{});
  CHECK(label_list(R"(["it's", 'say "x"', "\ud83d\ude00\n", '\x41'])").value() ==
        Names{"it's", "say \"x\"", "\U0001f600", "A"});
  for (const char* value :
       {"", "a;b", "[", "[a, b]", "['a'", "['a', ", "['a''b']", "['a'] b", "(1)", "{}", "{'a': 1}",
        "[[1]]", "[{}]", R"(["\ud800"])", R"(["\u0000"])", "['\\q']"}) {
    CAPTURE(value);
    CHECK_FALSE(label_list(value).has_value());
  }
}

TEST_CASE("names are texts if they differ in a word") {
  CHECK(texts_of_names({"card_lost", "top_up"}) == Names{"card lost", "top up"});
  CHECK(texts_of_names({"spam", "not spam"}) == Names{"spam", "not spam"});
  CHECK(texts_of_names({"3", "Caf\u00e9"}) == Names{"3", "Caf\u00e9"});
  for (const Names& names : {Names{}, {"0", "17"}, {"LABEL_0", "LABEL_1"}, {"A1", "no"}}) {
    CHECK(texts_of_names(names).empty());
  }
}
