#!/usr/bin/env bash
# Installs what building and testing need, from Debian's packages. Does nothing where all is there.
# The CUDA toolkit (nvcc, cuBLASLt, cuDNN, NCCL) is optional and not installed here.
set -euo pipefail

packages=(
  g++ meson ninja-build pkg-config python3
  libopenmpi-dev openmpi-bin libhdf5-dev libsentencepiece-dev libhwy-dev
  libcli11-dev doctest-dev libsimdjson-dev nlohmann-json3-dev zlib1g-dev libssl-dev
  iproute2
)

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
