// CSV, TSV, JSON Lines and text files to rows: grammar, faults, pipes.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../shared.h"
#include "core/files/descriptor.h"
#include "records_fixture.h"

using namespace finetune;
using namespace finetune::test;

TEST_CASE_FIXTURE(RowsFixture, "CSV: quotes, doubled quotes, embedded line ends") {
  Table table = read("a.csv",
                     "text,label\n"
                     "plain,1\n"
                     "\"a, b\",\"2\"\n"
                     "\"say \"\"hi\"\"\",\"\"\"\"\n"
                     "\"two\nlines\r\nthree\",3\n"
                     "bare \" quote,it's \"\"fine\n"
                     " \"space first\",4\n"
                     ",\n"
                     "\"\",\"\"\n");
  CHECK(table.columns() == std::vector<std::string>{"text", "label"});
  CHECK(cells(table) == Cells{{"plain", "1"},
                              {"a, b", "2"},
                              {"say \"hi\"", "\""},
                              {"two\nlines\r\nthree", "3"},
                              {"bare \" quote", "it's \"\"fine"},
                              {" \"space first\"", "4"},
                              {"", ""},
                              {"", ""}});
  CHECK(lines(table) == Lines{2, 3, 4, 5, 8, 9, 10, 11});
  CHECK(scratch.without_path(table.where(table.rows()[4])) == "a.csv:8");
}

TEST_CASE_FIXTURE(RowsFixture, "CSV: byte order mark, CRLF, CR, blank lines, no last line end") {
  CHECK(cells(read("a.csv", "\xEF\xBB\xBFtext,label\r\n\r\na,1\r\n\"b\",\"2\"")) ==
        Cells{{"a", "1"}, {"b", "2"}});
  CHECK(lines(read("a.csv", "text,label\r\n\r\na,1\r\n\n\nb,2")) == Lines{3, 6});
  Table mac = read("a.csv", "text,label\ra,1\rb,2\r");
  CHECK(cells(mac) == Cells{{"a", "1"}, {"b", "2"}});
  CHECK(lines(mac) == Lines{2, 3});
  // In a file with one column a blank line is a row.
  CHECK(cells(read("a.csv", "text\n\"\"\n\nx\n")) == Cells{{""}, {""}, {"x"}});
  CHECK(cells(read("a.tsv", "text\r\n\r\nx\r\n")) == Cells{{""}, {"x"}});
  CHECK(read("a.csv", "\n\ntext\nx\n").rows()[0].line == 4);
}

TEST_CASE_FIXTURE(RowsFixture, "every value is a string") {
  CHECK(cells(read("a.csv", "a,b,c,d\nNA,null,007,1e5\n nan ,,true,-0\n")) ==
        Cells{{"NA", "null", "007", "1e5"}, {" nan ", "", "true", "-0"}});
  CHECK(cells(read("a.jsonl",
                   "{\"a\":\"NA\",\"b\":1.50,\"c\":true,\"d\":null}\n"
                   "{\"d\":\"007\",\"c\":-0.0e-1,\"b\":false,\"a\":\"null\"}\n")) ==
        Cells{{"NA", "1.50", "true", ""}, {"null", "false", "-0.0e-1", "007"}});
}

TEST_CASE_FIXTURE(RowsFixture, "TSV: quotes mean nothing") {
  Table table = read("a.tsv", "\xEF\xBB\xBFid\ttext\r\n1\t\" unpaired , quote\r\n\n2\t\"\"\n3\t");
  CHECK(cells(table) == Cells{{"1", "\" unpaired , quote"}, {"2", "\"\""}, {"3", ""}});
  CHECK(lines(table) == Lines{2, 4, 5});
}

TEST_CASE_FIXTURE(RowsFixture, "JSON Lines: escapes, other keys, blank lines") {
  Table table =
      read("a.jsonl",
           "{\"text\": \"a\\n\\\"b\\\"\\u00e9\\ud83d\\ude00\\/\\\\\", \"label\": \"x\"}\n"
           "\r\n"
           "  { \"other\" : [1, {\"text\": 2}], \"l\\u0061bel\":\"y\" , \"text\":\"\" }\r\n"
           "{\"text\":\"last\",\"label\":\"z\"}");
  CHECK(table.columns() == std::vector<std::string>{"text", "label"});
  CHECK(cells(table) == Cells{{"a\n\"b\"é\U0001F600/\\", "x"}, {"", "y"}, {"last", "z"}});
  CHECK(lines(table) == Lines{1, 3, 4});
}

TEST_CASE_FIXTURE(RowsFixture, "JSON Lines: white space around keys, any order of many keys") {
  const Table spaced = read("a.jsonl", "{\" text\":\"a\",\"n\\t\":1}\n{\"n\":2,\"text \":\"b\"}\n");
  CHECK(spaced.columns() == std::vector<std::string>{"text", "n"});
  CHECK(cells(spaced) == Cells{{"a", "1"}, {"b", "2"}});
  constexpr int kKeys = 100;
  std::string forwards, backwards;
  for (int i = 0; i < kKeys; ++i) {
    const std::string member = concat("\"c", i, "\":", i);
    forwards += (i ? "," : "") + member;
    backwards = member + (i ? "," : "") + backwards;
  }
  const std::string text = concat("{", forwards, "}\n{", backwards, ",\"other\":1}\n");
  const Table many = read("many.jsonl", text);
  CHECK(many.columns().size() == kKeys);
  CHECK(cells(many)[0] == cells(many)[1]);
  CHECK(fault("many.jsonl", concat(text, "{", backwards, ",\"c99\":1}\n")).find("'c99' occurs") !=
        std::string::npos);
}

TEST_CASE_FIXTURE(RowsFixture, "plain text: row n is line n") {
  Table table = read("a.txt", "one, \"two\"\r\n\nthree\tx\nlast");
  CHECK(table.columns() == std::vector<std::string>{"text"});
  CHECK(cells(table) == Cells{{"one, \"two\""}, {""}, {"three\tx"}, {"last"}});
  CHECK(lines(table) == Lines{1, 2, 3, 4});
}

TEST_CASE_FIXTURE(RowsFixture, "fastText: words that begin with __label__ are labels") {
  for (const char* name : {"a.txt", "a.train", "a"}) {
    const Table table = read(name,
                             "__label__food PIZZA, \"x\" 1\r\n\n"
                             "__label__food __label__a\"b\tTAXI __label__x\n"
                             "no label\n__label__rent\n"
                             " \t__label__food  A  B \nTAXI 1 __label__x\n"
                             "A __label__y B__label__z C \n");
    CHECK(table.columns() == std::vector<std::string>{"text", "label"});
    CHECK(cells(table) == Cells{{"PIZZA, \"x\" 1", "food"},
                                {"TAXI", "[\"food\", \"a\\\"b\", \"x\"]"},
                                {"no label", ""},
                                {"", "rent"},
                                {"A  B", "food"},
                                {"TAXI 1", "x"},
                                {"A B__label__z C", "y"}});
    CHECK(lines(table) == Lines{1, 3, 4, 5, 6, 7, 8});
  }
  for (const char* first : {"TAXI __label__x\n", "\n  __label__x TAXI\n"}) {
    CHECK(cells(read("e.txt", first)) == Cells{{"TAXI", "x"}});
  }
  CHECK(read("f.txt", "TAXI a__label__x\n").columns().size() == 1);
  // The label's column has the name that the options give it; the other formats stay what they are.
  const fs::path path = scratch.write("b.txt", "__label__food PIZZA\n");
  CHECK(read_table({path}, {.label_column = "category"}).columns()[1] == "category");
  CHECK(read_table({path}, {.format = RowFormat::plain_text}).columns().size() == 1);
  CHECK(cells(read("c.csv", "text\n__label__food PIZZA\n")) == Cells{{"__label__food PIZZA"}});
  CHECK(read("d.txt", "PIZZA\n__label__food PIZZA\n").columns().size() == 1);
}

TEST_CASE_FIXTURE(RowsFixture, "faults name the file, the line and what to do") {
  CHECK(fault("a.csv", "") == "a.csv: is empty");
  CHECK(fault("a.csv", "\n\r\n\n") == "a.csv: is empty");
  CHECK(fault("a.jsonl", "\n") == "a.jsonl: is empty");
  CHECK(fault("a.csv", "text,label,text\na,b,c\n") == "a.csv:1: two columns are named 'text'");
  CHECK(
      fault("a.csv", "text,label\n\"x\ny\",1\na,b,c\n") ==
      "a.csv:4: 2 values are expected (text, label), found: 3; a value with a comma needs quotes; "
      "--skip-bad-rows drops such rows");
  CHECK(fault("a.tsv", "text\tlabel\na\n") ==
        "a.tsv:2: 2 values are expected (text, label), found: 1; --skip-bad-rows drops such rows");
  CHECK(fault("a.tsv",
              "te\x1bxt\tlab\xE2\x80\xAE"
              "el\na\n") ==
        "a.tsv:2: 2 values are expected (te\\x1bxt, lab\\u202eel), found: 1; --skip-bad-rows drops "
        "such rows");
  std::string header = std::string(1000, 'x');
  for (int i = 1; i < 30; ++i) header += concat(",c", i);
  const std::string message = fault("a.csv", header + "\na\n");
  CHECK(message.find(", c19 and 10 more), found: 1") != std::string::npos);
  CHECK(message.size() < 300);
  CHECK(fault("a.csv", "text,label\na,1\n\"b\nc\",\"2\nd,3\n") ==
        "a.csv:4: the quote that opens here is never closed; --skip-bad-rows drops such rows");
  CHECK(fault("a.csv", "text,label\n\"a\" b,1\n") ==
        "a.csv:2: text after a closing quote: ' b,1' (a quote inside a quoted value is written "
        "twice); --skip-bad-rows drops such rows");
  CHECK(fault("a.csv", "text,label\n\"a\n\xC3\xA9t\xE9\",1\n") ==
        "a.csv:3: byte 0xE9 at byte 4 of the line is not UTF-8; --encoding names the "
        "file's encoding, such as windows-1252; --skip-bad-rows drops such rows");
  CHECK(fault("a.txt", "ok\n\xFFx\n") ==
        "a.txt:2: byte 0xFF at byte 1 of the line is not UTF-8; --encoding names the "
        "file's encoding, such as windows-1252; --skip-bad-rows drops such rows");
  CHECK(fault("a.csv", "t\xE9xt,label\na,1\n") ==
        "a.csv:1: byte 0xE9 at byte 2 of the line is not UTF-8; --encoding names the "
        "file's encoding, such as windows-1252");
  CHECK(fault("a.csv", std::string_view("text,label\na,1\nb\0,2\n", 20)) ==
        "a.csv:3: a NUL byte; this is not a text file; --skip-bad-rows drops such rows");
}

TEST_CASE_FIXTURE(RowsFixture, "faults of JSON Lines") {
  auto second_line = [&](std::string_view line) {
    return fault("a.jsonl", concat("{\"text\":\"a\",\"n\":1}\n", line));
  };
  constexpr std::string_view hint = "; --skip-bad-rows drops such rows";
  CHECK(second_line("{\"text\":\"a\"}") == concat("a.jsonl:2: key 'n' is missing", hint));
  CHECK(
      second_line("{\"text\":\"a\",\"n\":1,\"text\":\"b\"}") ==
      concat("a.jsonl:2: not a JSON object: key 'text' occurs twice (byte 26 of the line)", hint));
  CHECK(
      second_line("{\"text\":\"a\",\"n\":[1]}") ==
      concat("a.jsonl:2: not a JSON object: key 'n' has a nested value; strings, numbers, true, "
             "false and null can be columns: leave the key out (jq -c 'del(.KEY)') (byte 17 of the "
             "line)",
             hint));
  CHECK(second_line("{\"text\":\"a\",\"n\":1") ==
        concat("a.jsonl:2: not a JSON object: the text ends in the middle of a value (byte 18 of "
               "the line)",
               hint));
  CHECK(second_line("{\"text\":\"\\ud83d\",\"n\":1}") ==
        concat("a.jsonl:2: not a JSON object: half of a surrogate pair (\\ud83d) (byte 10 of the "
               "line)",
               hint));
  CHECK(second_line("{\"text\":\"a\",\"n\":01}").find("',' or '}' is expected, not '1'") !=
        std::string::npos);
  CHECK(second_line("{\"text\":\"a\",\"n\":1} x").find("text after the object") !=
        std::string::npos);
  CHECK(fault("a.jsonl", "{\"text\":\"a\"}\n[{\"text\":\"a\"}]") ==
        concat("a.jsonl:2: not a JSON object: an array; JSON Lines hold one object on each line "
               "(byte 1 of the line)",
               hint));
  CHECK(fault("a.jsonl", "{\"a\":1,\"a\":2}\n") == "a.jsonl:1: two columns are named 'a'");
  CHECK(fault("a.jsonl", "{\"a\":1,\"a \":2}\n") == "a.jsonl:1: two columns are named 'a'");
  CHECK(second_line(R"({"text":"a"," n":1,"n":2})").find("key 'n' occurs twice") !=
        std::string::npos);
  CHECK(second_line(R"({"text":"a\u0000b","n":1})") ==
        concat(
            "a.jsonl:2: not a JSON object: a string with a NUL character (\\u0000) (byte 10 of the "
            "line)",
            hint));
  CHECK(fault("a.jsonl", R"({"a\u0000":1})").find("NUL") != std::string::npos);
}

TEST_CASE_FIXTURE(RowsFixture, "a file that is missing, a directory, only a header") {
  CHECK(data_fault(scratch, [&] { read_table({scratch / "no.csv"}); }) ==
        "no.csv: No such file or directory");
  CHECK(data_fault(scratch, [&] { RowReader(scratch / "no.csv"); }) ==
        "no.csv: No such file or directory");
  fs::create_directory(scratch / "dir.csv");
  CHECK(data_fault(scratch, [&] { read_table({scratch / "dir.csv"}); }) ==
        "dir.csv: is a directory, a file is needed");
  CHECK(data_fault(scratch, [&] { RowReader(scratch / "dir.csv"); }) ==
        "dir.csv: is a directory, a file is needed");
  fs::path header = scratch.write("header.csv", "text,label\n");
  CHECK(data_fault(scratch, [&] { read_table({header}); }) == "header.csv: holds no rows");
  CHECK(streamed(header).empty());
  fs::path empty = scratch.write("empty.txt", "");
  CHECK(data_fault(scratch, [&] { read_table({empty}); }) == "empty.txt: is empty");
  CHECK(streamed(empty).empty());
}

TEST_CASE_FIXTURE(RowsFixture, "columns by name") {
  Table table = read("a.csv", "text,category,\na,b,\n");
  CHECK(table.column("category") == 1);
  CHECK(table.has_column("text"));
  CHECK_FALSE(table.has_column("Text"));
  CHECK(data_fault(scratch, [&] { (void)table.column("catgory"); }) ==
        "a.csv: no column 'catgory'; its columns are: text, category,  (did you mean 'category'?)");
  RowReader reader(scratch / "a.csv");
  CHECK(reader.column("category") == 1);
  CHECK(data_fault(scratch, [&] { (void)reader.column("zebra"); }) ==
        "a.csv: no column 'zebra'; its columns are: text, category, ");
}

TEST_CASE_FIXTURE(RowsFixture, "skip_bad_rows drops and counts") {
  Table table = read("a.csv",
                     "text,label\n"
                     "a,1\n"
                     "b\n"
                     "c,2,3\n"
                     "\xE9,4\n"
                     "\"stray,5\n"  // swallows the next line up to its quote
                     "d,6\n"
                     "\"e\",7\n"
                     "f,\"never closed\n"
                     "g,8\n",
                     true);
  CHECK(cells(table) == Cells{{"a", "1"}, {"d", "6"}, {"e", "7"}, {"g", "8"}});
  CHECK(lines(table) == Lines{2, 7, 8, 10});
  CHECK(table.skipped_rows() == 5);
  RowReader reader(scratch / "a.csv", {.skip_bad_rows = true});
  for (Row row; reader.next(row);) {
  }
  CHECK(reader.skipped_rows() == 5);

  Table json = read("a.jsonl", "{\"a\":1}\n{\"b\":1}\nnot json\n{\"a\":2}\n", true);
  CHECK(cells(json) == Cells{{"1"}, {"2"}});
  CHECK(json.skipped_rows() == 2);

  fs::path none = scratch.write("none.csv", "a,b\n1\n2\n");
  CHECK(data_fault(scratch, [&] { read_table({none}, {.skip_bad_rows = true}); }) ==
        "none.csv:2: 2 values are expected (a, b), found: 1 (and no other row can be used)");
}

TEST_CASE_FIXTURE(RowsFixture, "files are joined, up to the limit") {
  fs::path a = scratch.write("a.csv", "text,label\na,1\nb,2\n");
  fs::path b = scratch.write("b.csv", "text,label\nc,\"3\"\"\"\n");
  fs::path c = scratch.write("c.csv", "label,text\n1,d\n");
  fs::path d = scratch.write("d.jsonl", "{\"label\":5,\"text\":\"e\"}\n");
  Table moved = read_table({a, b, d});
  Table table = std::move(moved);
  CHECK(cells(table) == Cells{{"a", "1"}, {"b", "2"}, {"c", "3\""}, {"e", "5"}});
  CHECK(scratch.without_path(table.where(table.rows()[2])) == "b.csv:2");
  CHECK(table.files().size() == 3);
  CHECK(cells(read_table({a, c})) == Cells{{"a", "1"}, {"b", "2"}, {"d", "1"}});
  fs::path e = scratch.write("e.csv", "id,label\n1,x\n");
  CHECK(data_fault(scratch, [&] {
          read_table({a, e});
        }) == "e.csv: has no column 'text', which a.csv has; its columns are: id, label");
  const RowOptions labels{.columns = std::vector<std::string>{"label"}};
  CHECK(cells(read_table({a, e}, labels)) == Cells{{"a", "1"}, {"b", "2"}, {"", "x"}});
  fs::path f = scratch.write("f.csv", "n,label,n\n1,x,2\n"),
           g = scratch.write("g.csv", "label,n,n\ny,3,4\n");
  CHECK(cells(read_table({f, g}, labels)) == Cells{{"1", "x", "2"}, {"3", "y", "4"}});
  fs::path h = scratch.write("h.jsonl", "{\"label\":1,\"n\":2}\n{\"label\":3}\n");
  CHECK(cells(read_table({h}, labels)) == Cells{{"1", "2"}, {"3", ""}});
  CHECK(cells(read_table({a, b}, {}, 3)).size() == 3);
  CHECK(cells(read_table({a, scratch / "not read.csv"}, {}, 2)).size() == 2);
  CHECK(cells(read_table({a, b}, {}, 1)) == Cells{{"a", "1"}});
}

TEST_CASE_FIXTURE(RowsFixture, "rows longer than a block") {
  std::string text = "text,label\n";
  for (size_t length : {100, 300000, 1500000, 7, 262144}) {
    text += concat("\"", std::string(length, 'x'), "\"\"\n\",", length, "\n");
  }
  Table table = read("long.csv", text);
  CHECK(table.rows().size() == 5);
  CHECK(table.rows()[2].values[0].size() == 1500002);
  CHECK(lines(table) == Lines{2, 4, 6, 8, 10});
}

TEST_CASE("formats by suffix, else by content") {
  CHECK(format_by_suffix("x.CSV", "a\tb") == RowFormat::csv);
  CHECK(format_by_suffix("x.tsv.gz", "") == RowFormat::tsv);
  CHECK(format_by_suffix("x.ndjson", "") == RowFormat::jsonl);
  CHECK(format_by_suffix("x.json", "") == RowFormat::jsonl);
  CHECK(format_by_suffix("x.json", " [") == RowFormat::json);
  CHECK(format_by_suffix("x.txt", "a,b\nc,d\n") == RowFormat::plain_text);
  CHECK_FALSE(format_by_suffix("-", "a,b\nc,d\n"));
  CHECK_FALSE(format_by_suffix("rows.dat", "a,b\n"));
}

namespace {

// Reads the file whole and row by row.
void check_rows(const fs::path& file, size_t rows, const std::vector<std::string>& columns) {
  CAPTURE(file);
  Table table = read_table({file});
  REQUIRE(table.rows().size() == rows);
  CHECK(table.columns() == columns);
  RowReader reader(file);
  size_t different = 0;
  size_t next = 0;
  for (Row row; reader.next(row); ++next) {
    const Row& same = table.rows().at(next);
    different += row.line != same.line || !std::equal(row.values.begin(), row.values.end(),
                                                      same.values.begin(), same.values.end());
  }
  CHECK(next == rows);
  CHECK(different == 0);
}

}  // namespace

TEST_CASE("sample files have the rows that their README names") {
  const fs::path samples = source_path("data/samples");
  check_rows(samples / "banking77.csv", 1000, {"text", "category"});
  check_rows(samples / "toronto-train.csv", 4000, {"text", "amount", "category", "gl_category"});
  size_t several_lines = 0;
  const Table banking = read_table({samples / "banking77.csv"});
  for (const Row& row : banking.rows()) {
    several_lines += row.values[0].find('\n') != std::string_view::npos;
    CHECK(row.values[1].find('\r') == std::string_view::npos);
  }
  CHECK(several_lines == 3);
}

TEST_CASE("real files have the published numbers of rows") {
  struct Expected {
    const char* file;
    size_t rows;
    std::vector<std::string> columns;
  };
  // Counts: classification-sources.txt and toronto/README.txt beside the files.
  const Expected all[] = {
      {"data/banking77/train.csv", 10003, {"text", "category"}},
      {"data/banking77/test.csv", 3080, {"text", "category"}},
      {"data/sst2/train.tsv", 67349, {"sentence", "label"}},
      {"data/sst2/dev.tsv", 872, {"sentence", "label"}},
      {"data/mrpc/train.tsv", 3668, {"Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"}},
      {"data/mrpc/dev.tsv", 408, {"Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"}},
      {"data/toronto/train.csv",
       100000,
       {"text", "merchant", "memo", "amount", "category", "gl_category", "mcc_description"}},
  };
  for (const Expected& expected : all) {
    if (have_shared(expected.file)) {
      check_rows(shared_path(expected.file), expected.rows, expected.columns);
    }
  }
}
