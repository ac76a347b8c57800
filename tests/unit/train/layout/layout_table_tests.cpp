// Reports of a layout: rows of ranks, stages, warnings, and layout.json.
#include <doctest/doctest.h>

#include "../../contains.h"
#include "../../temporary_directory.h"
#include "core/files/files.h"
#include "core/text/json_value.h"
#include "train/run/layout_table.h"

using namespace finetune;
using test::contains;

namespace {

LayoutRun run_of(int64_t world, int64_t pp, int64_t tp, std::vector<int> first_rank) {
  LayoutRun run;
  run.config = named_shape("base");
  run.head = {HeadKind::token, 2};
  run.layout = Layout(world, pp, tp);
  run.length = 512;
  run.split = split_stages("auto", int(pp), 1, layer_costs(run.config, run.head, run.length));
  run.first_rank = std::move(first_rank);
  run.tensor_shards = 2 * tp;
  run.virtual_shards = run.layout.dp();
  run.batch_size = 32;
  run.micro_batches = 8;
  run.micro_batch_tokens = 1024;
  return run;
}

}  // namespace

TEST_CASE("the log's lines of 2 x 2 x 2") {
  const LayoutRun run = run_of(8, 2, 2, {0, 4, 8});
  const std::vector<std::string> lines = layout_lines({run, {"node1", "node2"}});
  REQUIRE(lines.size() == 12);
  CHECK(lines[0] == "layout DPT, 1f1b: 8 processes = 2 replicas x 2 stages x 2 tensor ranks");
  CHECK(lines[1] == " rank   host  d p t  holds                                    parameters");
  CHECK(lines[2] == " 0      node1 0 0 0  embeddings, layers 0-5, shards 0-1 of 4      45.1 M");
  CHECK(lines[5] == " 3      node1 0 1 1  layers 6-11, head, shards 2-3 of 4           21.3 M");
  CHECK(lines[9] == " 7      node2 1 1 1  layers 6-11, head, shards 2-3 of 4           21.3 M");
  CHECK(lines[10] ==
        "stages: time 50:50 %, parameters 66:43 M (before tp), micro-batches in flight 2,1");
  CHECK(lines[11] == "batch 32 = 2 x 16 samples, 8 micro-batches each; bubble 11.1 %");
  CHECK(layout_warnings(run).empty());
  const auto few = layout_lines({run, {"node1", "node2"}}, 3);
  CHECK(few.size() == 8);
  CHECK(few[5] == " ... 5 more");
}

TEST_CASE("the report of one process has no stages") {
  LayoutRun run = run_of(1, 1, 1, {0, 1});
  run.tensor_shards = 1;
  const auto lines = layout_lines({run, {"here"}});
  CHECK(lines[0] == "layout DPT, 1f1b: 1 process = 1 replica x 1 stage x 1 tensor rank");
  CHECK(contains(lines[2], "embeddings, layers 0-11, head"));
  CHECK(lines.back() == "batch 32 = 1 x 32 samples, 8 micro-batches each");
}

TEST_CASE("warnings name the numbers") {
  LayoutRun run = run_of(8, 4, 2, {0, 3, 8});
  run.micro_batches = 2;
  auto warnings = layout_warnings(run);
  REQUIRE(warnings.size() == 2);
  CHECK(contains(warnings[0], "1 of 4 groups of tensor ranks are on several hosts"));
  CHECK(contains(warnings[1], "2 micro-batches keep 4 stages waiting"));
  run = run_of(8, 1, 1, {0, 8});
  run.virtual_shards = 2;
  run.batch_size = 4;
  warnings = layout_warnings(run);
  REQUIRE(warnings.size() == 2);
  CHECK(contains(warnings[0], "8 replicas have 2 virtual shards"));
  CHECK(contains(warnings[1], "8 replicas have a batch of 4"));
}

TEST_CASE("layout.json has every rank, and its parts are the model") {
  const test::TemporaryDirectory directory;
  const LayoutRun run = run_of(24, 3, 2, {0, 10, 24});
  write_layout(directory / "layout.json", {run, {"a", "b \"quoted\""}});
  const auto json = JsonValue::parse(read_text_file(directory / "layout.json", ExitCode::model));
  CHECK(json["dp"].as<int>() == 4);
  CHECK(json["placement"].as<std::string>() == "DPT");
  const JsonValue::Items& ranks = json["ranks"].items();
  REQUIRE(ranks.size() == 24);
  CHECK(ranks[9]["host"].as<std::string>() == "a");
  CHECK(ranks[10]["host"].as<std::string>() == "b \"quoted\"");
  int layers = 0;
  for (int rank = 0; rank < 24; ++rank) {
    const JsonValue& row = ranks[size_t(rank)];
    const auto place = [&](const char* axis) { return row[axis].as<int>().value(); };
    CHECK(place("rank") == rank);
    CHECK(run.layout.rank_of({place("d"), place("p"), place("t")}) == rank);
    CHECK(row["embeddings"].as<bool>() == (place("p") == 0));
    const auto length = [](const JsonValue& range) {
      const auto ends = range.as<std::vector<int>>().value();
      return ends.at(1) - ends.at(0);
    };
    CHECK(length(row["shards"]) == 2);
    for (const JsonValue& chunk : row["layers"].items()) layers += length(chunk);
  }
  CHECK(layers == 12 * 4 * 2);
}
