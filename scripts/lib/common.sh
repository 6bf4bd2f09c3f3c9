# shellcheck shell=bash
# What every script shares. A script sources this file first; it brings the others.
#   packages.sh  Debian packages      unpack.sh  the same without root      wheels.sh  Python wheels
#   build.sh     CMake and Ninja      gpu.sh     which program to build
set -euo pipefail

LIB=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
ROOT=${LIB%/scripts/lib}

# Without HOME, ~ is the folder that the system's list of users names.
[[ -n ${HOME:-} ]] || { unset HOME; HOME=~; }

# Standard output belongs to the program (--json): everything that we say goes to standard error.
say() { printf 'headscope: %s\n' "$*" >&2; }

# die CODE MESSAGE...: 1 for a step that failed, 2 for something that only the user can change.
die() {
  local code=$1
  shift
  say "$@"
  exit "$code"
}

# exclusively FILE WHAT COMMAND...: runs the command while no other process does so for the same file or folder.
# In a subshell, so that the lock ends with the command and whatever we exec later does not hold it.
exclusively() {
  local lock=$1 what=$2
  shift 2
  (
    trap 'exit 130' INT
    flock -n 9 || { say "waiting for another process: $what"; flock 9; }
    "$@"
  ) 9<"$lock"
}

# shellcheck source=scripts/lib/packages.sh
source "$LIB/packages.sh"
# shellcheck source=scripts/lib/unpack.sh
source "$LIB/unpack.sh"
# shellcheck source=scripts/lib/wheels.sh
source "$LIB/wheels.sh"
# shellcheck source=scripts/lib/build.sh
source "$LIB/build.sh"
# shellcheck source=scripts/lib/gpu.sh
source "$LIB/gpu.sh"

# install_all GROUP...: everything that these groups (build, tests, torch, cuda, gpu) need and that is not there yet.
install_all() {
  local group
  find_python
  install_packages "$@"
  check_cmake
  for group in $(wheel_groups "$@"); do install_wheels "$group"; done
}

trap 'exit 130' INT
