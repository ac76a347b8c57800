#!/usr/bin/env bash
# Installs Debian packages for building and testing. Does nothing if all are installed.
#   scripts/install_deps.sh                 packages for the program and the tests
#   scripts/install_deps.sh --program       only packages for the program, without tests
#   scripts/install_deps.sh --quickstart    the same, and pip, which fetches quickstart.sh's model
#   scripts/install_deps.sh --fuzz          packages for scripts/fuzz.sh: the program's, and clang with its fuzzer
# Optional and not installed here: the CUDA toolkit (nvcc, cuBLASLt, cuDNN, NCCL) and oneDNN (libdnnl-dev).
set -euo pipefail

packages=(
  g++ meson ninja-build pkg-config python3
  libopenmpi-dev openmpi-bin libhdf5-dev libsentencepiece-dev libhwy-dev
  libcli11-dev liblinear-dev libsimdjson-dev zlib1g-dev libzstd-dev libssl-dev
)
case "${1:-}" in
  '') packages+=(doctest-dev iproute2 clang-format patchelf) ;;
  --program) ;;
  --fuzz) packages+=(clang-14 libclang-rt-14-dev llvm-14) ;;
  --quickstart) command -v pip3 > /dev/null || packages+=(python3-pip) ;;
  *) echo "install_deps: error: unknown option $1 (known: --program, --quickstart, --fuzz)" >&2; exit 2 ;;
esac

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [ "$state" = "install ok installed" ] || missing+=("$package")
done

if [ ${#missing[@]} -eq 0 ]; then
  echo "install_deps: all ${#packages[@]} packages are installed"
  exit 0
fi

echo "install_deps: installing ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "install_deps: error: run this as root, or install sudo" >&2; exit 1; }
  as_root=(sudo)
fi
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
echo "install_deps: installed ${missing[*]}"
