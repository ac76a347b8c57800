#!/usr/bin/env bash
# Fuzzes every reader with clang's libFuzzer and its address and undefined-behaviour sanitizers.
# Builds build-fuzz, runs each target of tests/fuzz for SECONDS, and prints a table of executions and coverage. The last
# line is "N targets, M crashes". Exits 1 after a crash; its input is then in build-fuzz/fuzz/crashes.
#   scripts/fuzz.sh [SECONDS] [--report FOLDER] [--jobs N] [TARGET...]      defaults: 60, one job per core, all targets
# --report FOLDER writes fuzz.csv and a row of runs.csv to FOLDER (docs/reliability). $JOBS limits the compiler's
# processes. CONTRIBUTING.md says how to treat a crash.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=60
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
  seconds=$1
  shift
fi
scripts/install_deps.sh --fuzz
build=build-fuzz
flags="-fsanitize=fuzzer-no-link -fno-sanitize-recover=undefined -fprofile-instr-generate -fcoverage-mapping"
flags+=" -gline-tables-only -fno-omit-frame-pointer"
ccache=$(command -v ccache || true)
CC="${ccache:+ccache }clang-14" CXX="${ccache:+ccache }clang++-14" scripts/configure.sh $build -Dfuzz=enabled -Dtests=false \
  -Dcuda=disabled -Donednn=disabled -Dbuildtype=plain -Doptimization=1 -Ddebug=false \
  -Db_sanitize=address,undefined -Db_lundef=false "-Dc_args=$flags" "-Dcpp_args=$flags" \
  -Dcpp_link_args=-fprofile-instr-generate
ninja -C $build ${JOBS:+-j "$JOBS"} fuzz
exec python3 tests/fuzz/run_targets.py $build "$seconds" "$@"
