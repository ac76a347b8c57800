#!/usr/bin/env bash
# Shows a batch of experiments: a sweep that is killed halfway, continued, compared and reported.
#   scripts/experiments_demo.sh [OUTPUT [PROGRAM [MODEL TRAIN EVAL LABEL-COLUMN]]]
# Defaults: OUTPUT is runs/demo, PROGRAM build/finetune, MODEL MiniLM (fetched once) on the rows of data/samples.
# $DEMO_STEPS (60) is the number of steps of a run. Python computes the means in the table again from metrics.json.
# Exits 1 if they differ, or if continuing the sweep changed the metrics of a run that had finished.
set -euo pipefail
cd "$(dirname "$0")/.."

output=${1:-runs/demo}
program=$(realpath "${2:-build/finetune}")
if [ $# -ge 6 ]; then
  model=$3 train=$4 eval=$5 label=$6
else
  model=$(scripts/fetch_model.sh) train=data/samples/toronto-train.csv eval=data/samples/toronto-dev.csv label=category
fi

if [ -e "$output" ]; then
  echo "experiments_demo: error: $output exists; remove it, or name another folder" >&2
  exit 2
fi
mkdir -p "$output"
cat > "$output/grid.toml" << END
model = "$(realpath "$model")"
train = "$(realpath "$train")"
eval = "$(realpath "$eval")"
label-column = "$label"
max-steps = ${DEMO_STEPS:-60}
save-every = $((${DEMO_STEPS:-60} / 3))

[sweep]
lr = [2e-4, 1e-3]
seed = [1, 2, 3]
END
sweep=("$program" sweep "$output/grid.toml" --output "$output/sweep")

echo "== what it would take"
"${sweep[@]}" --dry-run

echo "== the sweep, killed after its second run"
"${sweep[@]}" &
job=$!
trap 'kill -9 $job 2> /dev/null || true' EXIT
while kill -0 $job 2> /dev/null && [ "$(find "$output/sweep" -name metrics.json 2> /dev/null | wc -l)" -lt 2 ]; do
  sleep 0.05
done
kill -9 $job 2> /dev/null || true
wait $job 2> /dev/null || true
trap - EXIT
finished() {
  find "$output/sweep" -name metrics.json -exec sha256sum {} + | sort
}
finished > "$output/before"
[ "$(wc -l < "$output/before")" -lt 6 ] || echo "(it was faster than the kill)"

echo "== the same line again"
"${sweep[@]}" | tee "$output/table.txt"
finished > "$output/after"
if [ -n "$(comm -23 "$output/before" "$output/after")" ]; then
  echo "experiments_demo: error: a finished run has changed" >&2
  exit 1
fi

echo "== compared and reported"
"$program" compare "$output/sweep" --by lr --csv > "$output/compare.csv"
"$program" compare "$output/sweep" --by lr
"$program" report "$output/sweep" --output "$output/report.html"

python3 - "$output" << 'END'
import csv, json, statistics, sys
from pathlib import Path

output = Path(sys.argv[1])
runs = {}
for path in sorted((output / "sweep").glob("*/metrics.json")):
    rate = dict(part.split("=") for part in path.parent.name.split(","))["lr"]
    runs.setdefault(float(rate), []).append(json.loads(path.read_text()))
with open(output / "compare.csv", newline="", encoding="utf-8") as file:
    rows = {float(row["lr"]): row for row in csv.DictReader(file)}
if sorted(rows) != sorted(runs) or any(len(metrics) != 3 for metrics in runs.values()):
    sys.exit(f"experiments_demo: error: 2 rates x 3 seeds are expected, found {runs.keys()}, {rows.keys()}")
checked = 0
for rate, metrics in runs.items():
    for name in (column for column in rows[rate] if column in metrics[0]):
        mean = statistics.fmean(run[name] for run in metrics)
        if abs(float(rows[rate][name]) - mean) > 1e-6 * abs(mean):
            sys.exit(f"experiments_demo: error: {name} at lr {rate}: {rows[rate][name]}, but the mean is {mean}")
        checked += 1
if checked < 2:
    sys.exit(f"experiments_demo: error: no means in {rows}")
print(f"{checked} means of the table are those of metrics.json; the report is {output}/report.html")
END
