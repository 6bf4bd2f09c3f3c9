# shellcheck shell=bash
# Python wheels, pinned with their hashes in lock/GROUP.txt. Each group is unpacked once per machine into a folder of
# the cache, named by what is in it, and used from there by all clones: no virtual environment, nothing to activate.

[[ ${XDG_CACHE_HOME:-} == /* ]] || XDG_CACHE_HOME=$HOME/.cache
CACHE=$XDG_CACHE_HOME/headscope

make_cache() {
  mkdir -p "$CACHE" 2>/dev/null && [[ -w $CACHE ]] ||
    die 2 "cannot write to the cache folder $CACHE; name another place with XDG_CACHE_HOME=DIR"
}

# wheel_groups GROUP...: those of the groups that are made of wheels to fetch.
wheel_groups() {
  local group
  for group in "$@"; do
    # Who brings Arrow, torch or nvcc needs no other.
    [[ $group != build || -z ${HEADSCOPE_PYARROW:-} ]] || continue
    # The libraries that torch calls on a GPU lie beside it.
    [[ ! $group =~ ^(torch|gpu)$ || -z ${HEADSCOPE_TORCH:-} ]] || continue
    [[ $group != cuda || -z ${HEADSCOPE_NVCC:-} ]] || continue
    printf '%s\n' "$group"
  done
}

# Sets PYTHON, PYTHON_VERSION and PYTHON_HAS_PIP: the first Python that the lock files cover, one with pip if there is.
find_python() {
  local candidate version pip path
  local -a candidates=(python3 python3.{13,12,11,10} /usr/bin/python3)
  [[ -z ${HEADSCOPE_PYTHON:-} ]] || candidates=("$HEADSCOPE_PYTHON")
  PYTHON='' PYTHON_VERSION='' PYTHON_HAS_PIP=''
  for candidate in "${candidates[@]}"; do
    read -r version pip path < <(describe_python "$candidate") || continue
    # An unpacked Python finds its libraries only through the program that starts it.
    [[ $(command -v "$candidate") != "$CACHE"/* ]] || path=$(command -v "$candidate")
    grep -qxF "$version" "$ROOT/lock/python.txt" || continue
    [[ -z $PYTHON || $pip == yes ]] || continue
    PYTHON=$path PYTHON_VERSION=$version PYTHON_HAS_PIP=$pip
    [[ $pip != yes ]] || return 0
  done
  [[ -n $PYTHON || -z ${HEADSCOPE_PYTHON:-} ]] ||
    die 2 "HEADSCOPE_PYTHON=$HEADSCOPE_PYTHON is not Python $(supported_pythons)"
}

# describe_python PROGRAM: its version, whether it has pip, and its place (not that of a version manager's shim).
describe_python() {
  "$1" -I -c 'if True:
    import importlib.util, sys
    pip = "yes" if importlib.util.find_spec("pip") else "no"
    print("%d.%d" % sys.version_info[:2], pip, sys.executable)' 2>/dev/null
}

supported_pythons() { sed -n '1p;$p' "$ROOT/lock/python.txt" | paste -sd- | sed 's/-/ to /'; }

# wheel_folder GROUP: where the group's packages are, or will be. Compiled modules fit one Python and one machine.
wheel_folder() {
  local hash
  hash=$({ cat "$ROOT/lock/$1.txt"; printf '%s %s\n' "$PYTHON_VERSION" "$(uname -m)"; } | sha256sum)
  printf '%s/%s-%s\n' "$CACHE" "$1" "${hash:0:16}"
}

wheel_names() { sed -n 's/^\([a-z0-9-]*==[0-9.]*\).*/\1/p' "$ROOT/lock/$1.txt" | paste -sd' '; }

# install_wheels GROUP: makes the group's folder, once, however many ask for it at the same time.
install_wheels() {
  local folder
  [[ -n $PYTHON ]] || die 2 "Python $(supported_pythons) is needed; name one with HEADSCOPE_PYTHON"
  folder=$(wheel_folder "$1")
  [[ ! -d $folder ]] || return 0
  [[ $PYTHON_HAS_PIP == yes ]] || die 2 "$PYTHON has no pip; name another Python with HEADSCOPE_PYTHON"
  make_cache
  : >>"$CACHE/$1.lock"
  exclusively "$CACHE/$1.lock" "fetching $(wheel_names "$1")" unpack_wheels "$1" "$folder"
}

# The folder appears under its name only when it is complete: by a rename, which happens or does not.
unpack_wheels() {
  local group=$1 folder=$2 partial
  [[ ! -d $folder ]] || return 0
  rm -rf "$CACHE/$group".partial.*  # of interrupted installs: a live one would hold the lock that we hold
  partial=$(mktemp -d "$CACHE/$group.partial.XXXXXX")
  # shellcheck disable=SC2064  # the folder of now
  trap "$(printf 'rm -rf %q' "$partial")" EXIT
  mkdir "$partial/packages" "$partial/tmp"
  say "fetching $(wheel_names "$group")"
  pip_install "$partial" "$ROOT/lock/$group.txt" >"$partial/log" 2>&1 || {
    cat "$partial/log" >&2
    [[ ! $group =~ ^(cuda|gpu)$ ]] || die 1 "pip could not install lock/$group.txt; HEADSCOPE_CUDA=0 uses the CPU and does without"
    die 1 "pip could not install lock/$group.txt"
  }
  mv -T "$partial/packages" "$folder"
}

# pip unpacks into TMPDIR and then moves: on one file system that is a rename, and a small /tmp does not matter.
pip_install() {
  (
    only_download_settings
    TMPDIR=$1/tmp exec "$PYTHON" -I -m pip --quiet --no-input --disable-pip-version-check --no-cache-dir install \
      --target "$1/packages" --require-hashes --no-deps --only-binary=:all: --no-compile -r "$2" </dev/null
  )
}

# The user's settings say where to download from; how to install is our business. pip reads its configuration files
# too, where two of the latter are common: they are answered here.
only_download_settings() {
  local name
  for name in "${!PIP_@}"; do
    case ${name#PIP_} in
      INDEX_URL | EXTRA_INDEX_URL | NO_INDEX | FIND_LINKS | TRUSTED_HOST | PROXY | CERT | CLIENT_CERT) ;;
      KEYRING_PROVIDER | USE_FEATURE | TIMEOUT | DEFAULT_TIMEOUT | RETRIES | CONFIG_FILE) ;;
      *) unset "$name" ;;
    esac
  done
  export PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 PIP_ROOT_USER_ACTION=ignore
}

# After install_all: the folders with the headers and libraries of Arrow and of LibTorch.
pyarrow_folder() { library_folder "${HEADSCOPE_PYARROW:-$(wheel_folder build)/pyarrow}" pyarrow parquet/api/reader.h; }
torch_folder() { library_folder "${HEADSCOPE_TORCH:-$(wheel_folder torch)/torch}" torch ATen/ATen.h; }

# The folder with what torch calls on a GPU; none where it is not for one, or where torch is the user's.
gpu_libraries() { [[ $PRESET != cuda || -n ${HEADSCOPE_TORCH:-} ]] || wheel_folder gpu; }

nvcc_program() { printf '%s\n' "${HEADSCOPE_NVCC:-$(wheel_folder cuda)/nvidia/cu13/bin/nvcc}"; }

# library_folder FOLDER PACKAGE HEADER
library_folder() {
  local folder
  folder=$(realpath -ms "$1")
  [[ -e $folder/include/$3 ]] ||
    die 2 "no $3 in $folder/include: it is not the folder of an installed $2 package"
  printf '%s\n' "$folder"
}
