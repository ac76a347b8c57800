#!/bin/sh
# Makes the screenshots of reports in docs/pictures: a run, wide and narrow, and a sweep.
# Needs Chromium. Run it after a change of the report's look:
#   scripts/plots/report_pictures.sh PROGRAM RUN SWEEP
# The pictures there are of data/samples/toronto-train.csv and -dev.csv with all-minilm-l6-v2: SWEEP is over lr 3e-5, 1e-4
# (the one of --recipe auto) and 3e-4 with seeds 1 and 2; RUN is its run of lr 1e-4 and seed 1.
set -eu
cd "$(dirname "$0")/../.."
program=$1 run=$2 sweep=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$program" report "$run" --output "$work/run.html"
"$program" report "$sweep" --output "$work/sweep.html"

# take PAGE NAME WIDTH,HEIGHT SCHEME (0: dark, 1: light)
take() {
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size="$3" --user-data-dir="$work/profile" \
    --blink-settings=preferredColorScheme="$4" --screenshot="docs/pictures/$2.png" "file://$work/$1.html" 2> /dev/null
}
take run report-run 1000,760 1
take run report-narrow 400,760 0
take sweep report-sweep 1000,760 1
