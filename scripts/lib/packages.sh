# shellcheck shell=bash
# Debian and Ubuntu packages, listed in lock/debian.txt.

# Which package lists apt-cache reads: the system's, unless unpack.sh has lists of its own.
APT_OPTIONS=()

# missing_packages GROUP...: the packages to install, one per line.
missing_packages() {
  local package installed
  local -a wanted
  mapfile -t wanted < <(listed_packages "$@"; python_packages "$@"; fuzzer_packages "$@")
  ((${#wanted[@]})) || return 0
  # dpkg-query fails when it does not know one of them, and still answers for the others.
  installed=$(dpkg-query -W -f='${db:Status-Abbrev}${Package}\n' "${wanted[@]}" 2>/dev/null || true)
  for package in "${wanted[@]}"; do
    [[ $'\n'$installed$'\n' == *"i $package"$'\n'* ]] || printf '%s\n' "$package"
  done
}

listed_packages() {
  local group package program
  while read -r group package program; do
    [[ " $* " == *" $group "* ]] || continue
    [[ -n $program ]] && command -v "$program" >/dev/null && continue
    printf '%s\n' "$package"
  done <"$ROOT/lock/debian.txt"
}

# Python fetches the wheels that are missing, and runs tests.
python_packages() {
  local group
  if [[ -z $PYTHON ]]; then
    [[ -z $(wheel_groups "$@") ]] || printf '%s\n' python3 python3-pip
  elif [[ $PYTHON_HAS_PIP != yes ]]; then
    for group in $(wheel_groups "$@"); do
      [[ -d $(wheel_folder "$group") ]] || { printf '%s\n' python3-pip; return; }
    done
  fi
}

# Some releases keep clang's libFuzzer and sanitizer libraries in a package of their own, named after clang's version.
fuzzer_packages() {
  local version
  [[ " $* " == *" tests "* ]] || return 0
  if command -v clang++ >/dev/null; then
    ! has_fuzzer_library || return 0
    version=$(clang++ -dumpversion)
    version=${version%%.*}
  else
    version=$(apt-cache "${APT_OPTIONS[@]}" depends clang 2>/dev/null | sed -n 's/^ *Depends: clang-\([0-9]*\)$/\1/p' || true)
  fi
  [[ -z $(apt-cache "${APT_OPTIONS[@]}" search --names-only "^libclang-rt-$version-dev\$" 2>/dev/null) ]] ||
    printf '%s\n' "libclang-rt-$version-dev"
}

has_fuzzer_library() {
  local name
  # clang gives the whole path of a library that it knows, and the bare name of any other.
  for name in "libclang_rt.fuzzer-$(uname -m).a" libclang_rt.fuzzer.a; do
    [[ ! -e $(clang++ "-print-file-name=$name") ]] || return 0
  done
  return 1
}

install_command() { printf 'apt-get install -y --no-install-recommends %s' "$*"; }

# install_packages GROUP...: through apt-get as root, or as an ordinary user into a folder of the cache (unpack.sh).
install_packages() {
  local folder
  local -a missing
  if [[ -n ${HEADSCOPE_NO_APT:-} ]]; then
    check_programs
    return
  fi
  is_debian || die 2 "$(needed_elsewhere)"
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  folder=$(unpacked_folder "${missing[@]}")
  if [[ -z $folder ]]; then
    make_cache
    : >>"$CACHE/packages.lock"
    exclusively "$CACHE/packages.lock" 'installing Debian packages' install_missing_packages "$@"
    mapfile -t missing < <(missing_packages "$@")
    ((${#missing[@]} == 0)) || folder=$(unpacked_folder "${missing[@]}")
  fi
  use_unpacked "$folder"
  find_python  # there may be a new one
}

is_debian() { command -v dpkg-query >/dev/null && command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null; }

# One line for every other system: what must be there, and how to point at it.
needed_elsewhere() {
  printf '%s' "this is not Debian or Ubuntu: put $(needed_programs | paste -sd' ') (CMake 3.22 or newer) on PATH, install the" \
    " libraries $(needed_libraries | paste -sd' ') (Debian's names), the DejaVu fonts and Python $(supported_pythons) with pip, and" \
    " run again with HEADSCOPE_NO_APT=1; CMAKE_PREFIX_PATH=DIR1:DIR2 names the folders of libraries that are not in /usr," \
    " HEADSCOPE_PYTHON the Python"
}

needed_programs() { listed build program; }
needed_libraries() { listed build library; }

# listed GROUP program|library: what lock/debian.txt lists of the group.
listed() {
  local group package program
  while read -r group package program; do
    [[ $group == "$1" ]] || continue
    if [[ $2 == program && -n $program ]]; then
      printf '%s\n' "$program"
    elif [[ $2 == library && $package =~ (-dev$|^node-) ]]; then
      printf '%s\n' "$package"
    fi
  done <"$ROOT/lock/debian.txt"
}

check_programs() {
  local program
  local -a absent=()
  for program in $(needed_programs); do
    command -v "$program" >/dev/null || absent+=("$program")
  done
  ((${#absent[@]} == 0)) || die 2 "not on PATH: ${absent[*]}; HEADSCOPE_NO_APT is set, so nothing is installed"
}

install_missing_packages() {
  local -a missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0
  if ! become_root; then
    [[ -n $(unpacked_folder "${missing[@]}") ]] || unpack_packages "$@"
    return
  fi
  apt_install "${missing[@]}"
  # Which version clang has is known only once the package lists are there: ask again.
  find_python
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]} == 0)) || apt_install "${missing[@]}"
}

# Sets AS_ROOT, the words to put before a command that only root may run; fails for an ordinary user. Nobody is asked for a
# password: without root, the packages are unpacked.
become_root() {
  AS_ROOT=()
  [[ $(id -u) != 0 ]] || return 0
  AS_ROOT=(sudo)
  command -v sudo >/dev/null && sudo -n true 2>/dev/null
}

apt_install() {
  local log
  say "installing Debian packages: $*"
  log=$(mktemp)
  # An update can fail for a repository that is none of our business; the install then tells whether it mattered.
  as_root apt-get -q update >"$log" 2>&1 || true
  # shellcheck disable=SC2046  # one word each
  as_root $(install_command "$@") >>"$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; die 1 "apt-get failed"; }
  rm -f "$log"
}

# Another apt-get may be at work (a second clone, unattended upgrades): wait for it.
as_root() {
  local program=$1
  shift
  "${AS_ROOT[@]}" env DEBIAN_FRONTEND=noninteractive "$program" -o DPkg::Lock::Timeout=600 "$@" </dev/null
}

check_cmake() {
  local version
  version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')
  printf '3.22\n%s\n' "$version" | sort -C -V ||
    die 2 "CMake 3.22 or newer is needed; $(command -v cmake) is $version"
}
