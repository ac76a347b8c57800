// Formats a layout as text and JSON.
#include "train/run/layout_table.h"

#include <algorithm>
#include <cmath>

#include "core/files/files.h"
#include "core/text/counted.h"
#include "core/text/json_value.h"
#include "core/text/printable.h"
#include "core/text/text.h"
#include "model/parameters.h"

namespace finetune {
namespace {

std::string range_words(IndexRange range) {
  return range.size() == 1 ? concat(range.begin) : concat(range.begin, "-", range.end - 1);
}

std::string millions(int64_t parameters) {
  return format_fixed(double(parameters) / 1e6, 1) + " M";
}

struct RankRow {
  Coordinates at;
  int host = 0;
  ModelPart part;
  int64_t parameters = 0;
};

RankRow row_of(const LayoutRun& run, int rank) {
  RankRow row;
  row.at = run.layout.at(rank);
  row.host = host_of(rank, run.first_rank);
  row.part = part_of(run.split, run.layout, run.tensor_shards, rank);
  row.parameters = ParameterTable(run.config, run.head, row.part).count();
  return row;
}

// The stages' values as "50:50"; for many stages "from 4 to 6".
std::string ratio(const std::vector<int64_t>& values, std::string_view separator) {
  constexpr size_t kMostStages = 12;
  if (values.size() > kMostStages) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    return concat("from ", *least, " to ", *most);
  }
  std::vector<std::string> words;
  for (int64_t value : values) words.push_back(concat(value));
  return join(words, separator);
}

std::string stages_line(const LayoutRun& run) {
  const LayerCosts costs = layer_costs(run.config, run.head, run.length);
  const double all = costs.total({0, run.config.num_hidden_layers});
  std::vector<int64_t> percent, millions, slots;
  for (int s = 0; s < run.split.stages(); ++s) {
    double cost = 0;
    for (IndexRange chunk : run.split.chunks[size_t(s)]) cost += costs.total(chunk);
    const ModelPart whole = part_of(run.split, s, 1, 1, 0);
    percent.push_back(std::llround(100 * cost / all));
    const int64_t parameters = ParameterTable(run.config, run.head, whole).count();
    millions.push_back((parameters + 500'000) / 1'000'000);
    slots.push_back(most_slots(run.pipeline(), s));
  }
  return concat("stages: time ", ratio(percent, ":"), " %, parameters ", ratio(millions, ":"), " M",
                run.layout.tp() > 1 ? " (before tp)" : "", ", ",
                run.split.chunks_of_a_stage() > 1 ? "chunks" : "micro-batches", " in flight ",
                ratio(slots, ","));
}

std::string batch_line(const LayoutRun& run) {
  const int64_t dp = run.layout.dp();
  const bool even = run.batch_size % dp == 0;
  std::string line =
      concat("batch ", run.batch_size, even ? " = " : " as ", dp, " x ", even ? "" : "up to ",
             (run.batch_size + dp - 1) / dp, " samples, ",
             counted(run.replica_micro_batches(), "micro-batch", "micro-batches"), " each");
  if (run.layout.pp() > 1) {
    const double share =
        bubble(run.layout.pp(), run.split.chunks_of_a_stage(), run.replica_micro_batches());
    line += concat("; bubble ", format_fixed(100 * share, 1), " %");
  }
  return line;
}

}  // namespace

std::vector<std::string> numbered_hosts(const std::vector<int>& first_rank) {
  std::vector<std::string> hosts;
  for (size_t h = 0; h + 1 < first_rank.size(); ++h) hosts.push_back(concat("host", h));
  return hosts;
}

std::string words_of(const ModelPart& part) {
  std::vector<std::string> words;
  if (part.embeddings) words.push_back("embeddings");
  bool first = true;
  for (IndexRange chunk : part.chunks) {
    words.push_back(concat(!first                                       ? ""
                           : chunk.size() > 1 || part.chunks.size() > 1 ? "layers "
                                                                        : "layer ",
                           range_words(chunk)));
    first = false;
  }
  if (part.head) words.push_back("head");
  if (part.shards.size() < part.tensor_shards) {
    words.push_back(concat(part.shards.size() > 1 ? "shards " : "shard ", range_words(part.shards),
                           " of ", part.tensor_shards));
  }
  return join(words, ", ");
}

std::vector<std::string> place_lines(const LayoutTable& table, int most_ranks) {
  const LayoutRun& run = table.run;
  const Layout& layout = run.layout;
  std::vector<std::string> lines = {concat(
      "layout ", letters_of(layout.placement()), ", ", name_of(run.schedule), ": ",
      counted(layout.world(), "process", "processes"), " = ",
      counted(layout.dp(), "replica", "replicas"), " x ", counted(layout.pp(), "stage", "stages"),
      " x ", counted(layout.tp(), "tensor rank", "tensor ranks"))};
  const int shown = std::min(layout.world(), most_ranks);
  size_t host_width = 4, part_width = 5;
  std::vector<RankRow> rows;
  for (int rank = 0; rank < shown; ++rank) {
    rows.push_back(row_of(run, rank));
    host_width = std::max(host_width, table.hosts[size_t(rows.back().host)].size());
    part_width = std::max(part_width, words_of(rows.back().part).size());
  }
  const size_t width = std::max<size_t>(2, concat(std::max(layout.dp(), layout.pp())).size() + 1);
  auto place = [&](const std::string& d, const std::string& p, const std::string& t) {
    return padded(d, width, true) + padded(p, width, true) + padded(t, width, true);
  };
  lines.push_back(concat(" rank   ", padded("host", host_width), place("d", "p", "t"), "  ",
                         padded("holds", part_width), "  parameters"));
  for (int rank = 0; rank < shown; ++rank) {
    const RankRow& row = rows[size_t(rank)];
    lines.push_back(concat(
        " ", padded(concat(rank), 7), padded(table.hosts[size_t(row.host)], host_width),
        place(concat(row.at.d), concat(row.at.p), concat(row.at.t)), "  ",
        padded(words_of(row.part), part_width), "  ", padded(millions(row.parameters), 10, true)));
  }
  if (shown < layout.world()) lines.push_back(concat(" ... ", layout.world() - shown, " more"));
  return lines;
}

std::vector<std::string> layout_lines(const LayoutTable& table, int most_ranks) {
  std::vector<std::string> lines = place_lines(table, most_ranks);
  if (table.run.layout.pp() > 1) lines.push_back(stages_line(table.run));
  lines.push_back(batch_line(table.run));
  return lines;
}

std::vector<std::string> layout_warnings(const LayoutRun& run) {
  const Layout& layout = run.layout;
  std::vector<std::string> warnings;
  if (std::string warning = network_warning(layout, run.first_rank); !warning.empty()) {
    warnings.push_back(std::move(warning));
  }
  const int64_t m = run.replica_micro_batches();
  if (m < layout.pp()) {
    warnings.push_back(concat(counted(m, "micro-batch keeps", "micro-batches keep"), " ",
                              layout.pp(), " stages waiting: raise --micro-batches or the batch"));
  }
  if (layout.dp() > run.virtual_shards) {
    warnings.push_back(concat(layout.dp(), " replicas have ", run.virtual_shards,
                              " virtual shards: the others compute nothing"));
  }
  if (layout.dp() > run.batch_size) {
    warnings.push_back(concat(layout.dp(), " replicas have a batch of ", run.batch_size,
                              ": the others compute nothing"));
  }
  return warnings;
}

std::string layout_json(const LayoutTable& table) {
  const LayoutRun& run = table.run;
  const Layout& layout = run.layout;
  auto range = [](IndexRange r) { return JsonArray{r.begin, r.end}; };
  JsonObject out = {{"world", layout.world()},
                    {"dp", layout.dp()},
                    {"pp", layout.pp()},
                    {"tp", layout.tp()},
                    {"placement", letters_of(layout.placement())},
                    {"pipeline_schedule", name_of(run.schedule)},
                    {"chunks", run.split.chunks_of_a_stage()},
                    {"tensor_shards", run.tensor_shards},
                    {"virtual_shards", run.virtual_shards}};
  JsonArray ranks;
  for (int rank = 0; rank < layout.world(); ++rank) {
    const RankRow row = row_of(run, rank);
    JsonArray layers;
    for (IndexRange chunk : row.part.chunks) layers.add(range(chunk));
    ranks.add(JsonObject{{"rank", rank},
                         {"host", table.hosts[size_t(row.host)]},
                         {"d", row.at.d},
                         {"p", row.at.p},
                         {"t", row.at.t},
                         {"layers", layers},
                         {"embeddings", row.part.embeddings},
                         {"head", row.part.head},
                         {"shards", range(row.part.shards)},
                         {"parameters", row.parameters}});
  }
  out.add("ranks", ranks);
  return out.indented(1) + "\n";
}

void write_layout(const std::filesystem::path& path, const LayoutTable& table) {
  write_file(path, layout_json(table));
}

}  // namespace finetune
