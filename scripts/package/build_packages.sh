#!/usr/bin/env bash
# Builds the packages: a wheel and a .deb of the program, without CUDA, into dist/.
# One build folder, build-package, serves all: the programs differ only in how they are linked and in the layer of MPI.
#   scripts/package/build_packages.sh [wheel|deb]...     both, unless one is named
# Needs the packages of scripts/install_deps.sh --program, patchelf and dpkg-dev. $PACKAGE_BUILD names another build
# folder; $JOBS limits the number of compilers.
set -euo pipefail
cd "$(dirname "$0")/../.."

build=${PACKAGE_BUILD:-build-package}
kinds=("$@")
[ $# -gt 0 ] || kinds=(wheel deb)
for kind in "${kinds[@]}"; do
  [ "$kind" = wheel ] || [ "$kind" = deb ] || {
    echo "build_packages: error: unknown kind $kind (known: wheel, deb)" >&2; exit 2; }
done
for tool in patchelf dpkg-shlibdeps; do
  command -v $tool > /dev/null || {
    echo "build_packages: error: $tool is needed (apt-get install patchelf dpkg-dev)" >&2; exit 1; }
done

options=(-Dcuda=disabled -Dtests=false -Donednn=disabled -Dprefix=/usr -Dlibdir=lib)
# compile OPTIONS...: builds the program with these options of meson.
compile() {
  if [ -f "$build/build.ninja" ]; then
    meson configure --clearcache "$build"  # a call of its own, because meson ignores it beside options
    meson configure "$build" "${options[@]}" "$@"
  else
    meson setup "$build" "${options[@]}" "$@" > /dev/null
  fi
  meson compile -C "$build" ${JOBS:+-j "$JOBS"} > "$build/package.log" 2>&1 || { cat "$build/package.log" >&2; exit 1; }
}

mkdir -p dist
for kind in "${kinds[@]}"; do
  stage=$build/stage-$kind
  rm -rf "$stage"
  if [ "$kind" = wheel ]; then
    # HDF5, OpenSSL and the compression libraries are linked in. A second program beside it has MPI.
    compile -Dprefer_static=true -Dmpi=disabled
    DESTDIR=$PWD/$stage meson install -C "$build" --no-rebuild --quiet
    compile -Dprefer_static=true -Dmpi=enabled
    mkdir -p "$stage/usr/lib/finetune"
    cp "$build/finetune" "$stage/usr/lib/finetune/finetune-mpi"
    python3 scripts/package/make_wheel.py "$stage/usr" dist
  else
    compile -Dprefer_static=false -Dmpi=enabled
    DESTDIR=$PWD/$stage meson install -C "$build" --no-rebuild --quiet
    scripts/package/make_deb.sh "$stage" dist
  fi
done
