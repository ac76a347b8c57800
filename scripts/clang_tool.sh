#!/usr/bin/env bash
# Prints the name of a clang tool of version 14 (Debian 12's), or nothing if it is not installed.
#   scripts/clang_tool.sh clang-format
for name in "$1-14" "$1"; do
  if "$name" --version 2> /dev/null | grep -q 'version 14\.'; then
    echo "$name"
    exit
  fi
done
