# To be sourced in the project's folder: lets programs find CUDA's libraries on this machine.
# In a bundle (gpu_bundle.sh) they also find the bundle's own libraries. report_libraries prints
# where each library was found.

PATH=$PATH:/usr/local/cuda/bin
declare -A found_by_loader=()
while read -r name path; do
  [ -n "${found_by_loader[$name]:-}" ] || found_by_loader[$name]=$path
done < <(PATH=$PATH:/usr/sbin:/sbin ldconfig -p | awk '/x86-64/ && /=>/ {print $1, $NF}')

# Prints folders that the loader does not search: Python packages' (torch's belong together), then the toolkit's.
cuda_folders() {
  local folder
  "${PEER_PYTHON:-python3}" - << 'EOF'
import importlib.util
from pathlib import Path
spec = importlib.util.find_spec("nvidia")
for root in spec.submodule_search_locations if spec else []:
    print(*sorted(Path(root).glob("*/lib")), sep="\n")
EOF
  for folder in /usr/local/cuda/lib64 /usr/local/cuda/lib /usr/local/cuda/targets/x86_64-linux/lib \
    /usr/local/cuda-*/lib64 /usr/local/nvidia/lib64 /usr/lib/x86_64-linux-gnu /usr/lib64; do
    [ ! -d "$folder" ] || echo "$folder"
  done
}
mapfile -t cuda_folders < <(cuda_folders)

# library SONAME CONSEQUENCE_OF_ITS_ABSENCE: lets the loader find the library, and records where it is.
library() {
  local folder place=${found_by_loader[$1]:-}
  for folder in ${LD_LIBRARY_PATH//:/ }; do
    if [ -e "$folder/$1" ]; then
      place=$folder/$1
      break
    fi
  done
  if [ -z "$place" ]; then
    for folder in "${cuda_folders[@]}"; do
      if [ -e "$folder/$1" ]; then
        place=$folder/$1
        LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
        break
      fi
    done
  fi
  libraries+=("$1: ${place:-MISSING ($2)}")
}

# Uses the bundle's libraries that this machine lacks, so that its programs keep their own, and all of Open MPI's.
choose_bundled() {
  local file name new=lib/used.$$
  [ ! -d lib/used ] || return 0
  mkdir "$new"
  for file in lib/all/*; do
    name=${file##*/}
    case $name in
      libmpi.* | libopen-* | libmca_* | libpmix.*) ;;
      *) [ -z "${found_by_loader[$name]:-}" ] || continue ;;
    esac
    ln -s "../all/$name" "$new/$name"
  done
  mv -T "$new" lib/used
}

LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
libraries=()
library libcuda.so.1 "the driver's: no GPU can be used"
library libcudart.so.13 "the CUDA module cannot be loaded"
library libcublasLt.so.13 "the CUDA module cannot be loaded"
library libnccl.so.2 "processes cannot have a GPU each; several on one GPU can"
library libcudnn.so.9 "attention is our own without it, FINETUNE_CUDA_ATTENTION=cudnn or not"
library libnvrtc.so.13 "cuDNN, which compiles its kernels, has none for attention"
if [ -f bundle.txt ]; then
  choose_bundled
  machine_path=$LD_LIBRARY_PATH
  LD_LIBRARY_PATH=$PWD/lib/used${machine_path:+:$machine_path}
  if ! LD_LIBRARY_PATH=$LD_LIBRARY_PATH build/finetune --version > /dev/null 2>&1; then
    LD_LIBRARY_PATH=$PWD/lib/all${machine_path:+:$machine_path}
  fi
  libraries+=("bundled libraries: ${LD_LIBRARY_PATH%%:*} ($(ls "${LD_LIBRARY_PATH%%:*}" | wc -l) of $(ls lib/all | wc -l))")
  if [ -d openmpi ]; then
    PATH=$PWD/openmpi/bin:$PATH
    export OPAL_PREFIX=$PWD/openmpi
    export OPAL_BINDIR=$OPAL_PREFIX/bin OPAL_LIBDIR=$OPAL_PREFIX/lib OPAL_PKGLIBDIR=$OPAL_PREFIX/lib/openmpi
    export OPAL_PKGDATADIR=$OPAL_PREFIX/share/openmpi OPAL_SYSCONFDIR=$OPAL_PREFIX/etc
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_btl_vader_single_copy_mechanism=none  # containers forbid it, and Open MPI prints a page about that
    export PMIX_MCA_pcompress_base_silence_warning=1  # the bundle has no such plugins
  fi
fi
libraries+=("mpirun: $(command -v mpirun || echo "MISSING (tests of several processes are skipped)")")
libraries+=("compute-sanitizer: $(command -v compute-sanitizer || echo "MISSING (memcheck and racecheck are skipped)")")
export PATH
[ -z "$LD_LIBRARY_PATH" ] && unset LD_LIBRARY_PATH || export LD_LIBRARY_PATH

report_libraries() {
  printf '%s\n' "${libraries[@]}"
}
