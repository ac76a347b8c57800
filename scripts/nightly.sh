#!/usr/bin/env bash
# Runs the tests that take hours, for a nightly job.
# Parts: the suite's costly tests (@nightly), sanitizers, fuzzing, injected faults, kills, layouts, a soak test, lint
# and the tests beside Hugging Face.
# Each part is a script that can run alone. Prints a line for each part, "ok" or "FAILED" with its time and log, then
# "N of N parts passed"; exits 1 if one failed. Also needs the packages of `install_deps.sh --fuzz`.
#   scripts/nightly.sh [PART...]       parts: variations peers sanitizers threads fuzz faults chaos matrix soak lint (default: all)
# $NIGHTLY_LOGS is the folder of the logs (default: build-nightly).
set -uo pipefail
cd "$(dirname "$0")/.."

logs=${NIGHTLY_LOGS:-build-nightly}
build=build-test
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(variations peers sanitizers threads fuzz faults chaos matrix soak lint)

command_of() {
  case "$1" in
    variations) echo env FINETUNE_NIGHTLY=1 meson test -C $build --no-rebuild --suite cli --suite mpi --print-errorlogs ;;
    peers) echo scripts/test_peers.sh ;;
    sanitizers) echo scripts/test_sanitizers.sh ;;
    threads) echo scripts/test_sanitizers.sh --threads ;;
    fuzz) echo scripts/fuzz.sh 300 ;;
    faults) echo scripts/faults.sh --binary $build/finetune ;;
    chaos) echo scripts/nightly/chaos.sh 10 --architecture all --binary $build/finetune ;;
    matrix) echo scripts/nightly/matrix.sh $build --architecture all ;;
    soak) echo scripts/soak.sh 1 --binary $build/finetune ;;
    lint) echo scripts/lint.sh ;;
    *) return 1 ;;
  esac
}

for part in "${parts[@]}"; do
  command_of "$part" > /dev/null || { echo "nightly: error: unknown part $part (sed -n 2,11p scripts/nightly.sh lists them)" >&2; exit 2; }
done
mkdir -p "$logs"
if ! { scripts/install_deps.sh && scripts/configure.sh $build && meson compile -C $build; } > "$logs/build.log" 2>&1; then
  tail -n 20 "$logs/build.log"
  echo "0 of ${#parts[@]} parts passed: the build failed, see $logs/build.log"
  exit 1
fi

passed=0
for part in "${parts[@]}"; do
  start=$SECONDS
  # Unquoted, because the command has several words.
  if $(command_of "$part") > "$logs/$part.log" 2>&1; then verdict=ok; passed=$((passed + 1)); else verdict=FAILED; fi
  echo "$verdict $part, $(((SECONDS - start) / 60)) min, $logs/$part.log: $(tail -n 1 "$logs/$part.log")"
done
echo "$passed of ${#parts[@]} parts passed"
[ "$passed" -eq ${#parts[@]} ]
