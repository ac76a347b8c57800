#!/usr/bin/env bash
# Makes a bundle with which GPU checks and benchmarks run on a machine that cannot build.
# It has the programs and their libraries except glibc and CUDA, mpirun, tests, benchmarks and the
# data that these read. The machine needs x86-64 Linux, a driver, a CUDA 13 toolkit or its libraries
# (Python packages will do), python3, and a glibc that is at least as new as this machine's.
#   scripts/gpu/gpu_bundle.sh [BUILD] OUT_DIR
#   OUT_DIR/run.sh scripts/gpu/gpu_check.sh         on that machine; run.sh alone prints its usage
# BUILD (default: build) must be complete. Test data is in tests/golden and BUILD, large data in ../shared or
# $FINETUNE_SHARED. Large data that is absent is left out, and a line names it.
# XZ_OPT=-0 is faster and makes a larger bundle.
set -euo pipefail
cd "$(dirname "$0")/../.."
fail() {
  echo "gpu_bundle: error: $*" >&2
  exit 1
}
case $# in
  1) build=build out=$1 ;;
  2) build=$1 out=$2 ;;
  *) fail "usage: scripts/gpu/gpu_bundle.sh [BUILD] OUT_DIR" ;;
esac
shared=${FINETUNE_SHARED:-../shared}
programs=(finetune tests/unit/ops/test_ops tests/unit/model/test_model)
cuda_files=(finetune_cuda.so tests/unit/ops/test_graph_events)  # use CUDA's libraries of that machine
for file in "${programs[@]}" "${cuda_files[@]}"; do
  [ -e "$build/$file" ] || fail "$build/$file is absent: build with CUDA first (meson compile -C $build)"
done
mkdir -p "$out"
for file in "$out"/* "$out"/.[!.]*; do
  case ${file##*/} in
    run.sh | bundle.tar.xz | '*' | '.[!.]*') ;;
    *) fail "$out is not empty" ;;
  esac
done

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
bundle=$stage/finetune
mkdir -p "$bundle/lib/all" "$bundle/build" "$stage/shared"

for file in "${programs[@]}" "${cuda_files[@]}"; do
  mkdir -p "$bundle/build/$(dirname "$file")"
  strip --strip-unneeded -o "$bundle/build/$file" "$build/$file"
done
# Test programs look for the module in their own folder.
for folder in ops model; do
  ln -s ../../../finetune_cuda.so "$bundle/build/tests/unit/$folder/finetune_cuda.so"
done

# Packs Open MPI for one host only, because its plugins for cluster networks need more libraries.
loaded=("${programs[@]/#/$build/}")
if mpirun=$(command -v mpirun); then
  plugins=$(ompi_info --path pkglibdir --parsable | sed 's/.*://')
  help=$(ompi_info --path pkgdatadir --parsable | sed 's/.*://')
  mpi=$bundle/openmpi
  mkdir -p "$mpi/bin" "$mpi/lib/openmpi" "$mpi/share" "$mpi/etc"
  cp -L "$mpirun" "$mpi/bin/mpirun"
  cp -L "$(command -v orted)" "$mpi/bin/orted"
  cp -r "$help" "$mpi/share/openmpi"
  for plugin in "$plugins"/mca_*.so; do
    case ${plugin##*/} in
      *_ofi.so | *_ucx.so | *_openib.so | *_psm*.so | *_monitoring.so | *_flux.so | *_rsh.so | *_slurm.so | \
        mca_*scoll_* | mca_spml_* | mca_sshmem_* | mca_memheap_* | mca_atomic_*) ;;
      *) strip --strip-unneeded -o "$mpi/lib/openmpi/${plugin##*/}" "$plugin" ;;
    esac
  done
  loaded+=("$mpi/bin/"* "$mpi/lib/openmpi/"*)
else
  echo "gpu_bundle: mpirun is not installed: left out" >&2
fi

ldd "${loaded[@]}" > "$stage/libraries"
if grep "not found" "$stage/libraries" >&2; then fail "libraries are absent here"; fi
awk '$2 == "=>" && $3 ~ "^/" {print $1, $3}' "$stage/libraries" | sort -u -k 1,1 | while read -r name path; do
  case $name in
    libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | libresolv.so.* | libutil.so.* | ld-linux*) ;;
    *) strip --strip-unneeded -o "$bundle/lib/all/$name" "$path" ;;
  esac
done

tar -c --exclude=__pycache__ --exclude=tests/unit --exclude=tests/peers --exclude=tests/golden \
  scripts tests docs/benchmarks data/samples | tar -x -C "$bundle"
{
  echo "version: $("$build/finetune" --version)"
  echo "commit: $(git describe --always --dirty 2> /dev/null || echo unknown)"
  echo "made: $(date -u +%Y-%m-%dT%H:%MZ), glibc $(ldd --version | sed -n '1s/.* //p')"
} > "$bundle/bundle.txt"

# Data read by the checks and compare_gpu.sh.
for name in golden/tiny-bert-{classification,qa} golden/forward-{classification,qa}.safetensors \
  golden/broken/config-{not-json,heads-do-not-divide,relative-positions}/config.json \
  golden/trajectory-{classification,qa}{.json,-train.csv,-train.json,-eval.csv} \
  tokenizers/bert-base-uncased data/toronto/{train,dev}.csv \
  data/squad/{train-v1.1-4000,train-v1.1,dev-v1.1}.json; do
  case $name in
    *classification-train.json | *qa-train.csv | *qa-eval.csv) continue ;;
  esac
  for folder in tests tests/golden "$build/tests" "$shared" ''; do
    if [ -e "$folder/$name" ]; then break; fi
  done
  if [ -n "$folder" ]; then
    mkdir -p "$stage/shared/$(dirname "$name")"
    cp -rL "$folder/$name" "$stage/shared/$name"
  else
    echo "gpu_bundle: $shared/$name is absent: left out" >&2
  fi
done

tar -c -C "$stage" finetune shared | xz -T0 > "$stage/bundle.tar.xz"
mv "$stage/bundle.tar.xz" "$out/bundle.tar.xz"
cp scripts/gpu/gpu_run.sh "$out/run.sh"
cat "$bundle/bundle.txt"
echo "$out: $(du -cm "$out"/run.sh "$out"/bundle.tar.xz | awk 'END {print $1}') MiB, $(du -sm "$stage" | cut -f 1) MiB unpacked"
