// Lays out progress and evaluations for people.
#include "train/record/progress.h"

#include <algorithm>

#include "core/text/text.h"

namespace finetune {
namespace {

constexpr int kShownDigits = 4;

void add_share(std::vector<ProgressPart>& parts, double share, double seconds) {
  if (share <= 0) return;
  parts.push_back({concat(format_fixed(100 * share, 0), " %"), 0});
  parts.push_back({concat("remaining ", clock_time(seconds / share * (1 - share))), 1});
}

}  // namespace

std::string clock_time(double seconds) {
  int64_t s = int64_t(std::max(0.0, seconds) + 0.5);
  auto two = [](int64_t n) { return concat(n < 10 ? "0" : "", n); };
  if (s >= 3600) return concat(s / 3600, ":", two(s % 3600 / 60), ":", two(s % 60));
  return concat(s / 60, ":", two(s % 60));
}

std::vector<ProgressPart> progress_parts(std::string_view verb, int64_t done, std::string_view what,
                                         double share, double seconds) {
  std::vector<ProgressPart> parts = {{concat(verb, " ", done, " ", what), 0}};
  if (done > 0 && seconds > 0) {
    parts.push_back({concat(format_fixed(double(done) / seconds, 1), " ", what, "/s"), 2});
  }
  add_share(parts, share, seconds);
  return parts;
}

std::vector<ProgressPart> progress_parts(std::string_view verb, double share, double seconds) {
  std::vector<ProgressPart> parts = {{std::string(verb), 0}};
  add_share(parts, share, seconds);
  return parts;
}

std::vector<ProgressPart> progress_parts(const RunProgress& p) {
  return {{concat("step ", p.step, "/", p.steps), 0},
          {concat("epoch ", format_fixed(p.epoch, 2)), 3},
          {concat("loss ", format_fixed(p.loss, kShownDigits)), 2},
          {concat(format_fixed(p.samples_per_second, 1), " samples/s"), 4},
          {concat(format_fixed(p.tokens_per_second, 0), " tokens/s"), 5},
          {concat("remaining ", clock_time(p.seconds_left)), 1}};
}

std::vector<std::string> evaluation_table(int64_t step, double epoch, bool is_best,
                                          const Metrics& metrics) {
  std::vector<std::string> lines = {concat("evaluation at step ", step, ", epoch ",
                                           format_fixed(epoch, 2),
                                           is_best ? ", the best so far" : "")};
  size_t names = 0, values = 0;
  for (const auto& [name, value] : metrics) {
    names = std::max(names, name.size());
    values = std::max(values, format_fixed(value, kShownDigits).size());
  }
  for (const auto& [name, value] : metrics) {
    const std::string text = format_fixed(value, kShownDigits);
    lines.push_back(concat("  ", name, std::string(names - name.size() + 2, ' '),
                           std::string(values - text.size(), ' '), text));
  }
  return lines;
}

}  // namespace finetune
