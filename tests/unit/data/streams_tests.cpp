// Rows from pipes, devices and files that are truncated while they are read.
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

TEST_CASE_FIXTURE(RowsFixture, "pipes that bring a few bytes at a time") {
  const std::string text = "text,label\r\n\"a\"\"\r\n\",1\r\n\r\n\"\",é\r\nlast,2";
  for (size_t piece : {1, 2, 3, 5, 100}) {
    fs::path pipe = scratch / concat("pipe", piece, ".csv");
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    std::thread writer([&] {
      std::ofstream out(pipe, std::ios::binary);
      for (size_t at = 0; at < text.size(); at += piece)
        out << text.substr(at, piece) << std::flush;
    });
    Cells rows = streamed(pipe);
    writer.join();
    CHECK(rows == Cells{{"a\"\r\n", "1"}, {"", "é"}, {"last", "2"}});
  }
  fs::path pipe = scratch / "whole.csv";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::thread writer([&] { std::ofstream(pipe, std::ios::binary) << text; });
  Table table = read_table({pipe});
  writer.join();
  CHECK(lines(table) == Lines{2, 5, 6});
}

TEST_CASE_FIXTURE(RowsFixture, "how much of a file has been read") {
  std::string text = "text\n";
  for (int i = 0; i < 100'000; ++i) text += concat("row ", i, "\n");
  const fs::path file = scratch / "share.csv";
  std::ofstream(file, std::ios::binary) << text;
  RowReader reader(file);
  Row row;
  double last = 0;
  int64_t rows = 0;
  for (; reader.next(row); ++rows) {
    CHECK(reader.share() >= last);
    last = reader.share();
    if (rows == 1000) CHECK(last < 0.9);
  }
  CHECK(rows == 100'000);
  CHECK(last == 1);
  const fs::path pipe = scratch / "share-pipe.csv";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::thread writer([&] { std::ofstream(pipe, std::ios::binary) << "text\na\n"; });
  RowReader piped(pipe);
  REQUIRE(piped.next(row));
  writer.join();
  CHECK(piped.share() < 0);
}

TEST_CASE_FIXTURE(RowsFixture, "pipes to be read again") {
  const fs::path file = scratch.write("a.csv", "text,label\na,1\n");
  CHECK(rereadable(file).content == file);
  const fs::path pipe = scratch / "pipe.tsv";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const std::string text = "text\tlabel\n" + std::string(700000, 'x') + "\t1\n";
  std::thread writer([&] { std::ofstream(pipe, std::ios::binary) << text; });
  const InputFile input = rereadable(pipe);
  writer.join();
  for (int time = 0; time < 2; ++time) {
    CHECK(read_text_file(input.content) == text);
    Table table = read_table({input});  // TSV by its suffix
    REQUIRE(table.rows().size() == 1);
    CHECK(table.where(table.rows()[0]) == pipe.string() + ":2");
  }
  struct Stopped {};
  int calls = 0;
  auto stop = [&] {
    if (++calls == 3) throw Stopped();
  };
  CHECK_THROWS_AS(rereadable(pipe, stop), Stopped);  // it has no writer
}

TEST_CASE_FIXTURE(RowsFixture, "pipes kept in memory") {
  const fs::path file = scratch.write("a.csv", "text,label\na,1\n");
  CHECK(in_memory(file).content == file);
  const fs::path pipe = scratch / "pipe.csv";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const std::string text = "text,label\n" + std::string(700000, 'x') + ",1\n";
  std::thread writer([&] { std::ofstream(pipe, std::ios::binary) << text; });
  const InputFile input = in_memory(pipe, 60);
  writer.join();
  CHECK(input.name == pipe);
  CHECK(read_text_file(input.content) == text);
  Descriptor slow(::open(pipe.c_str(), O_RDWR | O_CLOEXEC));  // a writer that never writes
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    write_all(slow.number(), text);
    slow = Descriptor();
  });
  CHECK(read_text_file(in_memory(pipe, 0.1).content) == text);
  late.join();
  CHECK(data_fault(scratch, [&] { in_memory(pipe, 0.1); }) ==
        "pipe.csv: is a pipe that nobody writes to");
}

TEST_CASE_FIXTURE(RowsFixture, "devices and sockets are no data") {
  const std::string zero = "/dev/zero: is a device, a file is needed";
  CHECK(data_fault(scratch, [&] { rereadable(fs::path("/dev/zero")); }) == zero);
  CHECK(data_fault(scratch, [&] { in_memory(fs::path("/dev/zero")); }) == zero);
  CHECK(data_fault(scratch, [&] { streamed("/dev/zero"); }) == zero);
  CHECK(data_fault(scratch, [&] { read_table({fs::path("/dev/zero")}); }) == zero);
  CHECK(read_text_file(rereadable(fs::path("/dev/null")).content) == "");
}

TEST_CASE_FIXTURE(RowsFixture, "rows of a file that is cut while they are read") {
  std::string text = "text,label\n";
  for (int i = 0; i < 100'000; ++i) text += concat("row number ", i, ",x\n");
  const fs::path path = scratch.write("a.csv", text);
  const std::string shorter = "a.csv: became shorter while it was read";
  auto cut = [&](size_t size) { fs::resize_file(path, size); };

  RowReader reader(path);
  Row row;
  REQUIRE(reader.next(row));
  cut(text.find("row number 50000"));  // at a line's end
  CHECK(data_fault(scratch, [&] {
          while (reader.next(row)) {
          }
        }) == shorter);

  scratch.write("a.csv", text);
  const Table table = read_table({path});
  table.check_intact();
  Table kept = read_table({path}), late = read_table({path});
  kept.keep({7, 99'999});
  cut(text.size() - 100);
  CHECK(data_fault(scratch, [&] { table.check_intact(); }).starts_with(shorter));
  CHECK(data_fault(scratch, [&] { late.keep({7}); }).starts_with(shorter));
  kept.check_intact();
  REQUIRE(kept.rows().size() == 100'000);
  CHECK(kept.rows()[7].values[0] == "row number 7");
  CHECK(kept.rows()[99'999].values[0] == "row number 99999");
  CHECK(kept.rows()[99'999].values[1] == "x");
  CHECK(kept.rows()[8].values.empty());
  CHECK(kept.where(kept.rows()[8]) == path.string() + ":10");
}
