// Magic numbers of packed and binary files, with advice on how to convert each to text.
#include "data/source/file_form.h"

#include <algorithm>
#include <cctype>

#include "core/text/text.h"

namespace finetune {
namespace {

using namespace std::string_view_literals;

struct Form {
  std::string_view magic;
  // What the file is and what to do; FILE is replaced by its name.
  std::string_view advice;
};

// The first match wins.
constexpr Form kForms[] = {
    {"PK\x03\x04"sv, ""},  // see advice_for_zip()
    {"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"sv,
     "is an old Excel or Office file (.xls); open it and save the sheet as CSV (UTF-8)"},
    {"PAR1\x15"sv,
     "is a Parquet file; write it as CSV: python3 -c \"import pandas; "
     "pandas.read_parquet('FILE').to_csv('FILE.csv', index=False)\""},
    {"ARROW1\0\0"sv,
     "is a Feather or Arrow file; write it as CSV: python3 -c \"import pandas; "
     "pandas.read_feather('FILE').to_csv('FILE.csv', index=False)\""},
    {"\xFF\xFF\xFF\xFF"sv,
     "is an Arrow stream, as datasets' save_to_disk() writes it; write it as CSV: python3 -c "
     "\"import datasets; datasets.Dataset.from_file('FILE').to_csv('FILE.csv')\""},
    {"Obj\x01"sv, "is an Avro file; write its rows as CSV or JSON Lines"},
    {"\x80\x04\x95"sv,
     "is a Python pickle; write its table as CSV with pandas' to_csv(FILE, index=False)"},
    {"\x80\x05\x95"sv,
     "is a Python pickle; write its table as CSV with pandas' to_csv(FILE, index=False)"},
    {"SQLite format 3\0"sv,
     "is an SQLite database; export a table: sqlite3 -header -csv FILE 'SELECT * FROM table' > "
     "rows.csv"},
    {"%PDF-1."sv, "is a PDF; the rows of a table in it have to be exported as CSV"},
    {"BZh91AY&SY"sv, "is packed by bzip2; unpack it first: bunzip2 --keep FILE"},
    {"\xFD\x37zXZ\0"sv, "is packed by xz; unpack it first: xz --decompress --keep FILE"},
    {"\x04\x22\x4D\x18"sv, "is packed by lz4; unpack it first: lz4 -d FILE"},
    {"7z\xBC\xAF\x27\x1C"sv, "is a 7-Zip archive; unpack it first: 7z x FILE"},
    {"Rar!\x1A\x07"sv, "is a RAR archive; unpack it first: unrar x FILE"},
    {"\x89HDF\r\n\x1A\n"sv, "is an HDF5 file; write its table as CSV"},
};
constexpr std::string_view kGzip = "\x1F\x8B"sv, kZstd = "\x28\xB5\x2F\xFD"sv;
// Skippable Zstandard frames, with which pzstd's files begin: a byte from 0x50 to 0x5F, then this.
constexpr std::string_view kSkippableTail = "\x2A\x4D\x18"sv;

bool may_be_skippable(std::string_view beginning) {
  if (beginning.empty() || (static_cast<unsigned char>(beginning[0]) & 0xF0) != 0x50) return false;
  const std::string_view tail = beginning.substr(1, kSkippableTail.size());
  return kSkippableTail.starts_with(tail);
}

// Recognises kinds of zip archives by the names of their first files.
std::string_view advice_for_zip(std::string_view beginning) {
  const auto has = [&](std::string_view part) {
    return beginning.find(part) != std::string_view::npos;
  };
  if (has("opendocument.spreadsheet")) {
    return "is an OpenDocument spreadsheet; open it and save the sheet as CSV (UTF-8)";
  }
  if (has("[Content_Types].xml") || has("xl/") || has("_rels/")) {
    return "is an Excel workbook (.xlsx); open it and save the sheet as CSV UTF-8";
  }
  return "is a zip archive; unpack it first: unzip FILE";
}

// Returns whether the name needs no quotes in a shell command.
bool is_plain(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || std::string_view("._-/+@%").find(char(c)) != std::string_view::npos;
  });
}

// Replaces FILE by `name` if the result is a command that can be typed.
std::string with_name(std::string_view text, const std::string& name) {
  if (!is_plain(name)) return std::string(text);
  constexpr std::string_view kPlace = "FILE";
  std::string out;
  for (size_t at = text.find(kPlace); at != std::string_view::npos; at = text.find(kPlace)) {
    out += text.substr(0, at);
    out += name;
    text.remove_prefix(at + kPlace.size());
  }
  return out.append(text);
}

}  // namespace

bool may_be_form(std::string_view beginning) {
  const auto goes_on = [&](std::string_view magic) {
    return beginning.size() < magic.size() && magic.starts_with(beginning);
  };
  const bool may_go_on = beginning.size() <= kSkippableTail.size() && may_be_skippable(beginning);
  return goes_on(kGzip) || goes_on(kZstd) || may_go_on ||
         std::any_of(std::begin(kForms), std::end(kForms),
                     [&](const Form& form) { return goes_on(form.magic); });
}

Packing packing_of(std::string_view beginning) {
  if (beginning.starts_with(kGzip)) return Packing::gzip;
  const bool skippable = beginning.size() > kSkippableTail.size() && may_be_skippable(beginning);
  return skippable || beginning.starts_with(kZstd) ? Packing::zstd : Packing::none;
}

std::string advice_for_form(std::string_view beginning, const std::string& name) {
  for (const Form& form : kForms) {
    if (!beginning.starts_with(form.magic)) continue;
    return with_name(form.advice.empty() ? advice_for_zip(beginning) : form.advice, name);
  }
  return {};
}

}  // namespace finetune
