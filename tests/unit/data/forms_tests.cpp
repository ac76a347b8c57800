// Delimiters, encodings, packed files, JSON arrays, and forms that hold no text.
#include <doctest/doctest.h>
#include <zlib.h>
#include <zstd.h>

#include <string>

#include "core/error.h"
#include "data/squad.h"
#include "error_line.h"
#include "records_fixture.h"

using namespace finetune;
using namespace finetune::test;
using namespace std::string_literals;

namespace {

const std::string kRows = "text,label\na b,1\n\"c, d\",2\n";
const Cells kCells = {{"a b", "1"}, {"c, d", "2"}};

std::string gzip(std::string_view text) {
  z_stream state{};
  REQUIRE(deflateInit2(&state, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(text.size() + 1000, '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  state.avail_in = uInt(text.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = uInt(out.size());
  REQUIRE(deflate(&state, Z_FINISH) == Z_STREAM_END);
  out.resize(state.total_out);
  deflateEnd(&state);
  return out;
}

std::string zstd(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  const size_t size = ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3);
  REQUIRE_FALSE(ZSTD_isError(size));
  out.resize(size);
  return out;
}

std::string utf16(std::string_view ascii, bool big_endian) {
  std::string out;
  for (char c : ascii) out += big_endian ? std::string{'\0', c} : std::string{c, '\0'};
  return out;
}

std::string usage_fault(auto&& call) {
  return test::error_line(ExitCode::usage, call);
}

}  // namespace

TEST_CASE_FIXTURE(RowsFixture, "CSV is between what makes the most columns of its first row") {
  CHECK(cells(read("a.csv", "text;label\na, b;1\n\"c;d\";2\n")) ==
        Cells{{"a, b", "1"}, {"c;d", "2"}});
  CHECK(cells(read("a.csv", "\n\"text\";\"label\"\na;1\n")) == Cells{{"a", "1"}});
  CHECK(cells(read("a.csv", "text\tlabel\n\"a\tb\"\t1\n")) == Cells{{"a\tb", "1"}});
  CHECK(cells(read("a.csv", "text|label\na|1\n")) == Cells{{"a", "1"}});
  CHECK(cells(read("a.csv", "date,text\n1;2,a;b;c\n")) == Cells{{"1;2", "a;b;c"}});
  CHECK(cells(read("a.csv", "text\na;b\nc;d\n")) == Cells{{"a;b"}, {"c;d"}});
  // Excel's own first line; another line with that beginning is a row.
  CHECK(cells(read("a.csv", "sep=;\r\ntext;label\r\na,b,c;1\r\n")) == Cells{{"a,b,c", "1"}});
  CHECK(lines(read("a.csv", "sep=^\ntext^label\na^1\n")) == Lines{3});
  CHECK(cells(read("a.csv", "sep=\na\n")) == Cells{{"a"}});
  CHECK(cells(read("a.csv", "sep=;x,label\na,1\n")) == Cells{{"a", "1"}});
  const Table trimmed = read("a.csv", " text ; label\t\n a ;1\n");
  CHECK(trimmed.columns() == std::vector<std::string>{"text", "label"});
  CHECK(cells(trimmed) == Cells{{" a ", "1"}});
  CHECK(fault("a.csv", "text;label\na;1;2\n").find("between semicolons") != std::string::npos);
  CHECK(fault("a.csv", "text^label\na, b^1\n") ==
        "a.csv:2: 1 value is expected (text^label), found: 2; --delimiter names what is between "
        "values, if no commas; a value with a comma needs quotes; --skip-bad-rows drops such rows");
  const auto path = scratch.write("b.tsv", "a,b~c\n1,2~3\n");
  CHECK(cells(read_table({path}, {.delimiter = '~'})) == Cells{{"1,2", "3"}});
}

TEST_CASE("words for delimiters, forms and encodings") {
  CHECK(parse_delimiter("auto") == '\0');
  CHECK(parse_delimiter("tab") == '\t');
  CHECK(parse_delimiter("\\t") == '\t');
  CHECK(parse_delimiter("semicolon") == ';');
  CHECK(parse_delimiter("^") == '^');
  for (const char* wrong : {"", "a", "7", "\"", "\n", ";;", "\xC3\xA9"}) {
    CHECK(usage_fault([&] { parse_delimiter(wrong); }).starts_with("--delimiter "));
  }
  CHECK(parse_row_format("text") == RowFormat::plain_text);
  CHECK(usage_fault([&] { parse_row_format("xml"); }).starts_with("--input-format 'xml'"));
  require_encoding("auto");
  require_encoding("Windows-1252");
  for (const char* wrong : {"", "latin-77", "utf-16//IGNORE"}) {
    CHECK(usage_fault([&] { require_encoding(wrong); }).starts_with("--encoding "));
  }
}

TEST_CASE_FIXTURE(RowsFixture, "UTF-16 is seen, other encodings are named") {
  CHECK(cells(read("a.csv", "\xFF\xFE" + utf16(kRows, false))) == kCells);
  CHECK(cells(read("a.csv", "\xFE\xFF" + utf16(kRows, true))) == kCells);
  CHECK(cells(read("a.csv", utf16(kRows, false))) == kCells);
  CHECK(cells(read("a.csv", utf16(kRows, true))) == kCells);
  const auto path = scratch.write("b.csv", "text;price\ncaf\xE9;5 \x80\nna\xEFve;6\n");
  const RowOptions windows{.encoding = "windows-1252"};
  CHECK(cells(read_table({path}, windows)) == Cells{{"café", "5 €"}, {"naïve", "6"}});
  RowReader reader(path, windows);
  Row row;
  REQUIRE(reader.next(row));
  CHECK(row.values[0] == "café");
  const auto wrong = scratch.write("c.csv", "text,label\na,1\nb\x81,2\n");
  CHECK(data_fault(scratch, [&] { read_table({wrong}, windows); }) ==
        "c.csv:3: the bytes 0x81 0x2C are not windows-1252 text; --encoding names the file's "
        "encoding");
  const auto odd = scratch.write("d.csv", "\xFF\xFE" + utf16("text\na", false) + "b");
  CHECK(data_fault(scratch, [&] { read_table({odd}); }).find("ends inside a character") !=
        std::string::npos);
}

TEST_CASE_FIXTURE(RowsFixture, "gzip and zstd are read as they are") {
  std::string many = kRows;
  for (int i = 0; i < 40'000; ++i) many += concat("text ", i, ",", i % 7, "\n");
  for (const auto& pack : {gzip, zstd}) {
    const char* suffix =
        pack == static_cast<std::string (*)(std::string_view)>(gzip) ? "gz" : "zst";
    CHECK(cells(read(concat("a.csv.", suffix), pack(kRows))) == kCells);
    CHECK(cells(read("other.csv", pack(kRows))) == kCells);
    CHECK(cells(read("a.csv", pack("text,label\na b,1\n") + pack("\"c, d\",2\n"))) == kCells);
    CHECK(cells(read("a.csv", pack("\xFF\xFE" + utf16(kRows, false)))) == kCells);
    const std::string packed = pack(many);
    CHECK(read("many.csv", packed).rows().size() == 40'002);
    for (size_t size = 5; size < packed.size(); size += packed.size() / 7) {
      CHECK(fault("a.csv", packed.substr(0, size)) ==
            "a.csv: the packed file ends too early; is it cut short?");
    }
    std::string damaged = packed;
    damaged[packed.size() / 2] ^= 0x55;
    damaged[packed.size() / 2 + 1] ^= 0x55;
    const auto path = scratch.write("damaged.csv", damaged);
    CHECK(data_fault(scratch, [&] { read_table({path}); }).find("is damaged") != std::string::npos);
    CHECK(data_fault(scratch, [&] { streamed(path); }) != "");  // or a row of it before
    CHECK(fault("a.csv", pack(pack(kRows))) == "a.csv: is packed twice");
    CHECK(fault("a.csv", pack("")) == "a.csv: is empty");
  }
  CHECK(cells(read("a.csv", gzip(kRows) + std::string(600, '\0'))) == kCells);
  for (const char first : {'\x50', '\x5F'}) {
    const std::string skipped = first + "\x2A\x4D\x18\x03\0\0\0abc"s;
    CHECK(cells(read("a.csv", skipped + zstd(kRows))) == kCells);
    CHECK(cells(read("a.csv", skipped + skipped + zstd(kRows) + skipped)) == kCells);
    CHECK(fault("a.csv", skipped.substr(0, 9)) ==
          "a.csv: the packed file ends too early; is it cut short?");
    CHECK(fault("a.csv", skipped) == "a.csv: is empty");
  }
  CHECK(cells(read("a.csv", "P*M,label\na,1\n")) == Cells{{"a", "1"}});
}

TEST_CASE_FIXTURE(RowsFixture, "what holds no text is told how to become text") {
  const std::pair<std::string, const char*> forms[] = {
      {"PK\x03\x04 [Content_Types].xml"s, "Excel workbook (.xlsx)"},
      {"PK\x03\x04 a.csv"s, "zip archive"},
      {"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1 x"s, ".xls"},
      {"PAR1\x15\x04"s, "Parquet"},
      {"ARROW1\0\0x"s, "Feather or Arrow"},
      {"\xFF\xFF\xFF\xFF\x10\x01"s, "Arrow stream"},
      {"Obj\x01\x04"s, "Avro"},
      {"\x80\x04\x95x"s, "pickle"},
      {"SQLite format 3\0x"s, "SQLite"},
      {"%PDF-1.7\n"s, "a PDF"},
      {"BZh91AY&SYx"s, "bunzip2 --keep a.csv"},
      {"\xFD\x37zXZ\0x"s, "xz --decompress --keep a.csv"}};
  for (const auto& form : forms) {
    CAPTURE(form.second);
    const std::string message = fault("a.csv", form.first);
    CHECK(message.find(form.second) != std::string::npos);
    CHECK(message.find('\n') == std::string::npos);
  }
  CHECK(cells(read("a.txt", "PK\nBZ\nPAR1 LOT\n")) == Cells{{"PK"}, {"BZ"}, {"PAR1 LOT"}});
}

TEST_CASE_FIXTURE(RowsFixture, "an array of objects") {
  const Cells expected = {{"a", "1"}, {"b [x] \"{", ""}};
  CHECK(cells(read("a.json", "[{\"text\":\"a\",\"n\":1},{\"text\":\"b [x] \\\"{\",\"n\":null}]")) ==
        expected);
  const Table spread = read("a.json",
                            "[\n  {\n    \"text\": \"a\",\n    \"n\": 1\n  },\n  {\n"
                            "    \"n\": null,\n    \"text\": \"b [x] \\\"{\"\n  }\n]\n");
  CHECK(cells(spread) == expected);
  CHECK(fault("a.json", "[]") == "a.json: is empty");
  CHECK(fault("a.json", "[{\"a\":1}").find("ends without ']'") != std::string::npos);
  CHECK(fault("a.json", "[{\"a\":1},").find("ends without ']'") != std::string::npos);
  CHECK(fault("a.json", "[{\"a\":1} {\"a\":2}]").find("',' or ']' is expected") !=
        std::string::npos);
  CHECK(fault("a.json", "[{\"a\":1}] x").find("text after the array") != std::string::npos);
  CHECK(fault("a.json", "[{\"a\":1},\n7]").find("a.json:2: an object is expected") == 0);
  const Table good = read("a.json", "[{\"a\":1},{\"b\":2},{\"a\":[1]},{\"a\":3}]", true);
  CHECK(cells(good) == Cells{{"1"}, {"3"}});
  CHECK(good.skipped_rows() == 2);
}

TEST_CASE_FIXTURE(RowsFixture, "packed SQuAD") {
  const std::string flat =
      "{\"id\":\"1\",\"context\":\"A b.\",\"question\":\"Q?\",\"answers\":{\"text\":[\"b\"],"
      "\"answer_start\":[2]}}\n";
  const auto path = scratch.write("a.jsonl.gz", gzip(flat));
  CHECK(looks_like_squad(path));
  CHECK(read_squad({path}, 0, true).questions.size() == 1);
}
