#!/usr/bin/env bash
# Makes a build directory, or makes it anew if this meson cannot use it.
# A directory that another version of meson made, or that was moved, is made anew with its old
# options.
#   scripts/configure.sh DIR [OPTIONS OF MESON SETUP]
set -euo pipefail
cd "$(dirname "$0")/.."
directory=$1
shift
if [ ! -f "$directory/meson-private/cmd_line.txt" ]; then
  meson setup "$directory" "$@"
elif [ ! -f "$directory/build.ninja" ] || ! meson configure "$directory" > /dev/null 2>&1; then
  meson setup --wipe "$directory" "$@"
fi
