#!/usr/bin/env bash
# Looks for defects in the C++ sources with clang-tidy 14, as .clang-tidy says.
#   scripts/lint.sh [FILE...]     default: all sources of the project that are compiled without CUDA
# Prints one line for each finding, and exits 1 if there are any. Each file is read with the flags with which the build
# folder build-lint would compile it; nothing is compiled.
set -euo pipefail
cd "$(dirname "$0")/.."

tidy=$(scripts/clang_tool.sh clang-tidy)
if [ -z "$tidy" ]; then
  echo "lint: error: clang-tidy 14 is not installed" >&2
  exit 1
fi
build=build-lint
scripts/configure.sh $build -Dcuda=disabled -Db_pch=false > /dev/null

# The units to read, largest first: the build folder's, without the CUDA sources that it rewrites for the host.
listed=$(python3 - "$build" "$@" << 'END'
import json, sys
from pathlib import Path

build, wanted = Path(sys.argv[1]).resolve(), {Path(name).resolve() for name in sys.argv[2:]}
commands = json.loads((build / "compile_commands.json").read_text())
units = {(build / command["file"]).resolve() for command in commands}
units = {unit for unit in units if not unit.is_relative_to(build)}
for path in sorted(wanted - units):
    sys.exit(f"lint: error: {path} is no source that {build.name} would compile")
for unit in sorted(wanted or units, key=lambda unit: -unit.stat().st_size):
    print(unit)
END
)
mapfile -t units <<< "$listed"

output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
# Clang 14 does not know the AMX tile instructions, so the tests' software emulation replaces them.
export build tidy output
lint_unit() {
  local told=$output/$BASHPID
  "$tidy" -p "$build" --quiet --extra-arg-before="-I$PWD/tests/unit/ops/software_tiles" --warnings-as-errors='*' "$1" \
    > "$told" 2> "$told.log" && return
  # A failure without a finding is reported as a finding.
  grep -qE ': (warning|error): ' "$told" && return
  echo "$1:1:1: error: $tidy fails: $(tail -n 1 "$told.log")" > "$told"
}
export -f lint_unit
printf '%s\0' "${units[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'lint_unit "$1"' lint_unit

# A finding in a header is repeated by every unit that includes it, under several paths.
findings=$(find "$output" -type f ! -name '*.log' -exec cat {} + | { grep -E '^[^ ]+:[0-9]+:[0-9]+: (warning|error): ' || true; } |
  while IFS=: read -r path rest; do
    [[ $path == /* ]] || path=$build/$path
    echo "$(realpath --relative-to=. "$path"):${rest/,-warnings-as-errors/}"
  done | sort -u)
if [ -n "$findings" ]; then
  echo "$findings"
  echo "lint: error: $(wc -l <<< "$findings") findings" >&2
  exit 1
fi
echo "lint: no findings in ${#units[@]} units"
