#!/usr/bin/env bash
# Builds the fuzz targets as OSS-Fuzz asks for it: with its compilers, flags and engine.
# Reads $CC, $CXX, $CFLAGS, $CXXFLAGS, $LIB_FUZZING_ENGINE, $OUT and $WORK. Puts into $OUT the programs, the libraries that
# they need beside the system's own (lib/), their inputs (TARGET_seed_corpus.zip, regressions among them) and
# dictionaries. The base image lacks what scripts/install_deps.sh --program installs. By hand:
#   OUT=/tmp/out WORK=/tmp/work CC=clang CXX=clang++ CFLAGS="$flags" CXXFLAGS="$flags" LIB_FUZZING_ENGINE=-fsanitize=fuzzer \
#     tests/fuzz/build_oss_fuzz.sh         with flags="-O1 -fsanitize=address,fuzzer-no-link"
set -euo pipefail
: "${CC:?}" "${CXX:?}" "${OUT:?}" "${WORK:?}" "${LIB_FUZZING_ENGINE:?}"
cd "$(dirname "$0")/../.."

build=$WORK/build
mkdir -p "$OUT/lib"
# shellcheck disable=SC2016
scripts/configure.sh "$build" -Dfuzz=enabled "-Dfuzz_engine=$LIB_FUZZING_ENGINE" -Dtests=false -Dcuda=disabled \
  -Donednn=disabled -Dbuildtype=plain -Db_lundef=false '-Dcpp_link_args=-Wl,-rpath,$ORIGIN/lib'
ninja -C "$build" ${JOBS:+-j "$JOBS"} fuzz

seeds=$WORK/seeds
python3 tests/fuzz/make_seeds.py "$seeds" "$build/tests/fuzz/hdf5_seeds"
for program in "$build"/tests/fuzz/fuzz_*; do
  [ -f "$program" ] && [ -x "$program" ] || continue
  name=$(basename "$program")
  target=${name#fuzz_}
  cp "$program" "$OUT/"
  # Of the loader, the C library and what comes with it the image that runs the programs has its own.
  ldd "$program" | awk '$3 ~ /^\// {print $3}' | { grep -vE '/(libc|libm|libdl|librt|libpthread|ld-linux[^/]*)\.so' || true; } |
    xargs -r cp -n -t "$OUT/lib"
  rm -f "$OUT/${name}_seed_corpus.zip"
  python3 - "$OUT/${name}_seed_corpus.zip" "$seeds/$target" "tests/fuzz/regressions/$target" << 'END'
import sys, zipfile
from pathlib import Path

with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as archive:
    for folder in map(Path, sys.argv[2:]):
        for path in sorted(folder.glob("*")):
            archive.write(path, f"{folder.parent.name}-{path.name}")
END
  [ ! -f "$seeds/dictionaries/$target.dict" ] || cp "$seeds/dictionaries/$target.dict" "$OUT/$name.dict"
done
echo "build_oss_fuzz: $(find "$OUT" -maxdepth 1 -name 'fuzz_*' -perm -u+x -type f ! -name '*.zip' ! -name '*.dict' | wc -l) targets in $OUT"
