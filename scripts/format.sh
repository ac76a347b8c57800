#!/usr/bin/env bash
# Formats C++ sources as .clang-format says.
# Needs clang-format 14 (Debian 12's): other versions format differently.
#   scripts/format.sh [FILE...]           default: all sources of the project
#   scripts/format.sh --check [FILE...]   changes nothing; names files that are not formatted, and then exits 1; does
#                                         nothing if clang-format 14 is not installed
set -euo pipefail
cd "$(dirname "$0")/.."

check=
if [ "${1:-}" = --check ]; then
  check=yes
  shift
fi

formatter=$(scripts/clang_tool.sh clang-format)
if [ -z "$formatter" ]; then
  if [ -n "$check" ]; then
    echo "SKIPPED: clang-format 14 is not installed"
    exit 0
  fi
  echo "format: error: clang-format 14 is not installed" >&2
  exit 1
fi

files=("$@")
if [ $# -eq 0 ]; then
  mapfile -t files < <(find src tokenizer tasks data tests \( -name '*.cpp' -o -name '*.h' \) ! -path '*/host_cuda/*' | sort)
fi
if [ -n "$check" ]; then
  how=(--dry-run -Werror)
else
  how=(-i)
fi
printf '%s\0' "${files[@]}" | xargs -0 -n 32 -P "$(nproc)" "$formatter" --style=file "${how[@]}" || {
  echo "format: error: the files above are not formatted (scripts/format.sh mends them)" >&2
  exit 1
}
echo "format: ${#files[@]} files are formatted"
