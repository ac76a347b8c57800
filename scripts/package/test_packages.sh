#!/usr/bin/env bash
# Tests the packages in dist/ in clean Debian 12 systems: .deb, wheel, the container's steps.
# Each is a minimal system that debootstrap makes, entered by chroot: it has no compiler and none of the libraries
# that the build uses. No container engine is needed: the steps of the image are tested, but not an engine's build.
#   scripts/package/test_packages.sh [deb|wheel|container]...    default: deb and wheel
# Needs root, debootstrap, Debian's archive, and the output of build_packages.sh; container compiles everything anew.
# $PACKAGE_MODEL is a directory with a BERT (default: MiniLM, fetched once). Exits with 77 if it cannot run here.
set -euo pipefail
cd "$(dirname "$0")/../.."

skip() { echo "test_packages: skipped: $1" >&2; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "only root may use debootstrap and chroot"
command -v debootstrap > /dev/null || skip "debootstrap is not installed"
kinds=("$@")
[ $# -gt 0 ] || kinds=(deb wheel)
model=${PACKAGE_MODEL:-$(scripts/fetch_model.sh)}

cache=$PWD/.cache/package
base=$cache/debian-12.tar
mkdir -p "$cache"
if [ ! -f "$base" ]; then
  echo "== a minimal Debian 12"
  rm -rf "$cache/base"
  debootstrap --variant=minbase bookworm "$cache/base" > "$cache/debootstrap.log" 2>&1 || {
    tail "$cache/debootstrap.log" >&2; skip "debootstrap cannot reach Debian's archive"; }
  tar -C "$cache/base" -cf "$base.partial" .
  mv "$base.partial" "$base"
  rm -rf "$cache/base"
fi

work=$(mktemp -d "$cache/roots.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Makes a clean system in $1, with the tests' files in its /trial.
make_root() {
  mkdir -p "$1"
  tar -xf "$base" -C "$1"
  mkdir -p "$1/trial/data"
  cp -r scripts docs data CHANGELOG.md README.md "$1/trial/"
  cp -rL "$model" "$1/trial/model"
  cp -r tests/golden/tiny-bert-qa "$1/trial/tiny"
  cp dist/* "$1/trial/"
}
# Runs a command line in the system $1. Its mounts vanish with its namespace.
within() {
  unshare --mount sh -c 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" &&
    mount --rbind /sys "$0/sys" && cp /etc/resolv.conf "$0/etc/" &&
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
      DEBIAN_FRONTEND=noninteractive chroot "$0" /bin/bash -euc "cd /trial; $1"' "$1" "$2"
}
quietly() {
  "$@" > "$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; exit 1; }
}
fail() { echo "test_packages: error: $1" >&2; exit 1; }
must_say() {  # fails unless standard input contains the words
  grep -q -- "$1" || fail "no '$1'"
}

# Checks that a run on two processes has the same bits as one process.
several_processes() {
  local train="train --model model --train data/samples/toronto-dev.csv --label-column category --max-steps 4"
  within "$1" "$2 $train --virtual-shards 2 --output /tmp/one --quiet; \
    mpirun --allow-run-as-root --oversubscribe -n 2 $2 $train --output /tmp/two --quiet; \
    grep -h weights_sha256 /tmp/one/run.json /tmp/two/run.json | uniq | wc -l | grep -qx 1" > /dev/null
  echo "  mpirun -n 2: the bits of one process"
}

try_deb() {
  local root=$work/deb deb
  echo "== the .deb"
  make_root "$root"
  deb=$(basename dist/finetune_*_amd64.deb)
  quietly within "$root" "apt-get update; apt-get install -y --no-install-recommends ./$deb"
  echo "  installed: $(within "$root" "finetune --version"), $(du -sh "dist/$deb" | cut -f1)"
  within "$root" "finetune doctor" | must_say "code path"
  within "$root" "test -s /usr/share/man/man1/finetune.1.gz -a -s /usr/share/bash-completion/completions/finetune"
  within "$root" "finetune train --model model --train data/samples/toronto-train.csv --label-column category \
    --max-steps 3 --output /tmp/run --quiet; \
    finetune predict --model /tmp/run --input data/samples/toronto-dev.csv --output /tmp/labels.csv --quiet; \
    test \$(wc -l < /tmp/labels.csv) -ge 1001" > /dev/null
  echo "  trains and predicts"
  quietly within "$root" "apt-get install -y --no-install-recommends openmpi-bin"
  several_processes "$root" finetune
  quietly within "$root" "apt-get remove -y finetune; test -z \"\$(find /usr -name '*finetune*')\""
  echo "  removed without a trace"
  if command -v lintian > /dev/null; then
    lintian --fail-on error --tag-display-limit 0 "dist/$deb" || fail "lintian finds errors"
    echo "  lintian finds no errors"
  fi
}

try_wheel() {
  local root=$work/wheel wheel
  echo "== the wheel"
  make_root "$root"
  wheel=$(basename dist/finetune_bert-*.whl)
  quietly within "$root" "apt-get update; apt-get install -y --no-install-recommends python3-venv; python3 -m venv /venv"
  quietly within "$root" "/venv/bin/pip install --no-index ./$wheel"
  echo "  installed: $(within "$root" "/venv/bin/finetune --version"), $(du -sh "dist/$wheel" | cut -f1)"
  within "$root" "! ldd /venv/bin/finetune | grep 'not found'"
  within "$root" "OMPI_COMM_WORLD_SIZE=2 /venv/bin/finetune doctor 2>&1 || echo code \$?" > "$work/without-mpi"
  must_say "install Open MPI" < "$work/without-mpi"
  must_say "code 5" < "$work/without-mpi"
  # This only shows that the guide's commands run, so a tiny model is enough: MiniLM takes an hour.
  within "$root" "python3 scripts/guide.py --rows 900 /venv/bin/finetune tiny" | sed 's/^/  guide: /'
  quietly within "$root" "apt-get install -y --no-install-recommends openmpi-bin"
  several_processes "$root" /venv/bin/finetune
  quietly within "$root" "/venv/bin/pip uninstall -y finetune-bert; test -z \"\$(find /venv -name '*finetune*')\""
  echo "  uninstalled without a trace"
}

try_container() {
  local root
  echo "== the container's steps"
  root=$(scripts/package/run_containerfile.py scripts/package/Containerfile . "$base" "$work/container" 2> "$work/log" |
    tail -n 1) || { tail -n 40 "$work/log" >&2; exit 1; }
  mkdir -p "$root/trial"
  cp -r data "$root/trial/"
  cp -rL "$model" "$root/trial/model"
  within "$root" "! command -v g++"
  within "$root" "finetune --version" | must_say "[0-9]"
  several_processes "$root" finetune
}

for kind in "${kinds[@]}"; do
  case $kind in
    deb | wheel | container) "try_$kind" ;;
    *) echo "test_packages: error: unknown kind $kind (known: deb, wheel, container)" >&2; exit 2 ;;
  esac
done
echo "the packages work: ${kinds[*]}"
