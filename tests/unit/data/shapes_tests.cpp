// Tables versus texts, headers below the first line, quotes in TSV, limits.
#include <doctest/doctest.h>

#include <string>

#include "core/error.h"
#include "data/rows/row_stream.h"
#include "data/rows/tab_quotes.h"
#include "data/rows/table_shape.h"
#include "records_fixture.h"

using namespace finetune;
using namespace finetune::test;

namespace {

RowFormat format_of(std::string_view text, const std::vector<std::string>& columns = {"text"}) {
  return format_by_content(text, true, '\0', columns);
}

bool are_quoted(std::string_view text) {
  return has_quoted_values([text] { return ByteWindow(text); });
}

std::string header_in(std::string_view text, const std::vector<std::string>& columns = {}) {
  const auto found = header_below(text, true, '\0', columns);
  return found ? concat(found->line, ":", join(found->names, ",")) : "none";
}

}  // namespace

TEST_CASE("formats of standard input and of files without a suffix") {
  CHECK(format_of("") == RowFormat::plain_text);
  CHECK(format_of(" {\"a\": 1}\n") == RowFormat::jsonl);
  CHECK(format_of("{braces}\n") == RowFormat::plain_text);
  CHECK(format_of("[\n {\"a\": 1}]") == RowFormat::json);
  CHECK(format_of("[]") == RowFormat::json);
  CHECK(format_of("[PENDING] SHELL\n") == RowFormat::plain_text);
  // What a file with the suffix would be refused for, is no text either.
  CHECK(format_of("[\"a\", \"b\"]\n") == RowFormat::json);
  CHECK(format_of("[[\"a\"], [\"b\"]]\n") == RowFormat::json);
  CHECK(format_of("{'text': 'a'}\n") == RowFormat::jsonl);
  CHECK(format_of("[\"a\" and more\n") == RowFormat::plain_text);
  CHECK(format_of("[[1] SHELL\n") == RowFormat::plain_text);
  CHECK(format_of("{'quoted'} text\n") == RowFormat::plain_text);
  CHECK(format_of("sep=;\na;b\n") == RowFormat::csv);
  CHECK(format_of("a,b\n1,\"x,\n y\"\n2,z\n") == RowFormat::csv);
  CHECK(format_of("a\tb\n1, x\ty\n") == RowFormat::tsv);
  CHECK(format_of("a|b|c\n1|2|3\n") == RowFormat::csv);
  CHECK(format_of("Hello, world\nand more\n") == RowFormat::plain_text);
  // A single line is a table if it has the column names.
  CHECK(format_of("RONA, TORONTO\n") == RowFormat::plain_text);
  CHECK(format_of("id,text\n") == RowFormat::csv);
  CHECK(format_of("id\ttext\n1\ta\n") == RowFormat::tsv);
  CHECK(format_of("text\nhello there\n") == RowFormat::csv);
  CHECK(format_of("Hello, text\nfoo\n") == RowFormat::plain_text);
  // One bad row does not turn the others into texts.
  CHECK(format_of("a,b,c\n1,2,3\n1,2\n4,5,6\n") == RowFormat::csv);
  CHECK(format_of("id,text\n1\n2,b\n") == RowFormat::csv);
  // In texts commas come before spaces; a column of numbers indicates a table.
  CHECK(format_of("SHELL, TORONTO, ON\nESSO, OTTAWA, ON\n") == RowFormat::plain_text);
  CHECK(format_of("day, memo, amount\n1.5., SHELL, 3.50\n2.5., ESSO, 4\n") == RowFormat::csv);
  // Lines before a header.
  CHECK(format_of("Account 123\n\nday;memo;amount\n1.5.;SHELL;3,50\n") == RowFormat::csv);
}

TEST_CASE_FIXTURE(RowsFixture, "an object of lists is a whole table") {
  const std::string said =
      fault("a.json", "{\"text\": [\"a\", \"b\"], \"label\": [\"x\", \"y\"]}\n");
  CHECK(said.find("a.json:1: one object that holds a whole table, a list for each column") == 0);
  CHECK(fault("b.jsonl", "{\"text\": [\"a\", \"b\"], \"label\": \"x\"}\n").find("table") ==
        std::string::npos);
}

TEST_CASE("headers below lines about something else") {
  CHECK(header_in("Account,0815\nFrom,2024\n\nday,memo,amount\n1,a,2\n") == "4:day,memo,amount");
  CHECK(header_in("Account 0815\nday;memo;amount;\n1;a;2;\n") == "2:day,memo,amount,");
  CHECK(header_in("Account,,\n,,\nday,memo,amount\n1,a,2\n") == "3:day,memo,amount");
  CHECK(header_in("\"a\nb\"\nday,memo,amount\n1,a,2\n") == "3:day,memo,amount");
  CHECK(header_in("Account\ntext,label\na,b\n", {"text"}) == "2:text,label");
  CHECK(header_in("Account\ntext,label\na,b\n") == "none");
  // A header in the first row with too long rows below it.
  CHECK(header_in("text,label\na, b,x\nc, d,y\n", {"text"}) == "none");
  CHECK(header_in("day,memo,amount\n1,a,2,\n2,b,3,\n") == "none");
  CHECK(header_in("memo,label\n12,a,x\n13,b,y\n") == "none");
  CHECK(header_in("text,label\na,x\nb,y\n") == "none");
}

TEST_CASE("texts with the other delimiter in them are not a header") {
  const std::string semicolons = "text;label\na, b, c;x\nd, e, f;y\ng, h, i;x\n";
  CHECK(header_in(semicolons, {"text", "label"}) == "none");
  CHECK(header_in(semicolons, {"memo"}) == "none");
  CHECK(header_in(semicolons) == "none");
  CHECK(header_in("text,label\na;b;c,x\nd;e;f,y\ng;h;i,x\n", {"text"}) == "none");
  CHECK(header_in("text\tlabel\na|b|c\tx\nd|e|f\ty\n", {"text"}) == "none");
  CHECK(header_in("text;label\na, b, c;x\nd, e, f\ng, h, i;x\n", {"text"}) == "none");
  CHECK(table_delimiter(semicolons, true) == ';');
  CHECK(header_in("Owner, Max\na;text, label\n1;b, c\n2;d, e\n", {"a"}) == "2:a,text, label");
}

TEST_CASE("quotes around a TSV's values") {
  CHECK(are_quoted("text\tn\n\"a, b\"\t1\nc\t2\n"));
  CHECK(are_quoted("\"text\"\t\"n\"\n\"say \"\"hi\"\"\"\t\"1\"\n"));
  CHECK(are_quoted("text\tn\n\"two\nlines\"\t1\n"));
  CHECK(are_quoted("n\ttext\n1\t\"two\nlines\"\n"));
  CHECK(are_quoted("text\tn\n\"a\tb\"\t1\n"));
  CHECK_FALSE(are_quoted("text\tn\na\t1\n"));
  CHECK_FALSE(are_quoted("text\tn\n\"lone\t1\n\"b\"\t2\n"));
  CHECK_FALSE(are_quoted("text\tn\n\"open\t1\nclose \"\t2\n"));
  CHECK_FALSE(are_quoted("text\tn\nhe said \"no\"\t1\n\"b\"\t2\n"));
  CHECK_FALSE(are_quoted("text\tn\n\"b\" c\t2\n"));
  CHECK_FALSE(are_quoted("text\tn\n\"a \"b\" c\"\t2\n"));
}

TEST_CASE_FIXTURE(RowsFixture, "quotes of a TSV are read in both ways of reading") {
  std::string text = "text\tlabel\n";
  for (int i = 0; i < 20'000; ++i) text += concat("some text ", i, "\tx\n");
  CHECK(read("a.tsv", text + "\"a, \"\"b\"\"\"\ty\n").rows().back().values[0] == "a, \"b\"");
  CHECK(read("c.tsv", "\xEF\xBB\xBF\"text\"\tlabel\n" + text.substr(11) + "\"a\"\ty\n")
            .columns()[0] == "text");
  CHECK(read("b.tsv", text + "\"a\"\ty\n\"b\ty\n").rows().back().values[0] == "\"b");
}

TEST_CASE_FIXTURE(RowsFixture, "limits of rows") {
  const std::string many =
      "more than 100,000 values in a row; is this the right file and delimiter?";
  CHECK(fault("a.csv", std::string(100'000, ',') + "\n") == "a.csv:1: " + many);
  CHECK(fault("a.tsv", std::string(100'000, '\t') + "\n") == "a.tsv:1: " + many);
  CHECK(read("b.csv", std::string(99'999, ',') + "\n" + std::string(99'999, ',') + "\n")
            .columns()
            .size() == 100'000);
  const std::string longest((64 << 20) + 1, 'x');
  CHECK(
      fault("c.csv", "text\n" + longest + "\n").starts_with("c.csv:2: a row of more than 64 MiB"));
  CHECK(fault("d.csv", "text,n\n" + std::string(2'000'000, '\n')) ==
        "d.csv:1000002: more than 1000000 blank lines in a row; is this the right file?");
  CHECK(fault("e.csv", std::string(100, '\0')) ==
        "e.csv: begins with a NUL byte; this is not a text file");
}
