# shellcheck shell=bash
# CMake and Ninja: one folder build/PRESET for each preset, quiet unless something is wrong.

# plain_root: ROOT, or where its path has characters that Ninja cannot read in lists of headers, such as quotes, a link to it in the
# cache. With them, everything would be compiled again each time.
plain_root() {
  local link hash
  [[ $ROOT == *[!a-zA-Z0-9\ /_.,+@%=~\(\)-]* && $CACHE != *[!a-zA-Z0-9\ /_.,+@%=~\(\)-]* ]] || { printf '%s\n' "$ROOT"; return; }
  hash=$(sha256sum <<<"$ROOT")
  link=$CACHE/checkouts/${hash:0:16}
  if [[ $(readlink "$link") != "$ROOT" ]]; then
    { mkdir -p "$CACHE/checkouts" && ln -sfn "$ROOT" "$link"; } 2>/dev/null || link=$ROOT
  fi
  printf '%s\n' "$link"
}

CHECKOUT=$ROOT
ROOT=$(plain_root)
RELEASE=$ROOT/build/release

# use_preset release|cuda: which program is meant, the one for CPUs or the one for GPUs. Sets its PRESET, FOLDER, PROGRAM and STAMP.
# The stamp says what the folder was configured from. While it is true, nothing need be checked or installed.
use_preset() {
  PRESET=$1
  FOLDER=$ROOT/build/$1
  PROGRAM=$FOLDER/headscope
  [[ $1 != cuda ]] || PROGRAM=$FOLDER/gpu/headscope
  STAMP=$FOLDER/configured
}
use_preset release

# configure PRESET [-DNAME=VALUE...]
configure() {
  local folder=$ROOT/build/$1 log=$ROOT/build/$1/configure.log pyarrow torch
  local -a libraries=()
  forget_moved_cache "$folder"
  pyarrow=$(pyarrow_folder)
  torch=$(torch_folder)
  [[ -z $UNPACKED ]] || libraries=("-DCMAKE_PREFIX_PATH=$UNPACKED/usr")
  (cd "$ROOT" && cmake --preset "$@" "-DHEADSCOPE_PYARROW=$pyarrow" "-DHEADSCOPE_TORCH=$torch" \
    "-DHEADSCOPE_COMPILER_CACHE=$CACHE/compiler" "${libraries[@]}" </dev/null >"$log" 2>&1) || {
    sed -n '/^CMake Error/,$p' "$log" >&2
    die 1 "CMake failed; all it said is in $log"
  }
}

# A folder that was copied or moved with its clone still names the old place; CMake refuses it, and Ninja would build
# the old clone. The same where a folder of unpacked packages is gone.
forget_moved_cache() {
  local cache=$1/CMakeCache.txt
  [[ -e $cache ]] || return 0
  { grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$ROOT" "$cache" && names_unpacked_that_are_there "$cache"; } ||
    rm -rf "$cache" "$1/CMakeFiles" "$1/build.ninja"
}

names_unpacked_that_are_there() {
  local folder
  while read -r folder; do
    [[ -d $folder ]] || return 1
  done < <(sed -n 's/.*=\(.*\/packages-[0-9a-f]\{16\}\)\/.*/\1/p' "$1" | sort -u)
}

# build PRESET WHAT TARGET...
build() {
  local folder=$ROOT/build/$1 what=$2
  local log=$folder/build.log
  shift 2
  NINJA_STATUS='[%f/%t] ' ninja -C "$folder" "$@" </dev/null 2>&1 | announce "$what" >"$log" || {
    # The cause may be a package that is gone: next time, look again.
    rm -f "$STAMP"
    show_failure "$log"
    die 1 "the build failed"
  }
}

# From the first failure on, or everything if Ninja could not even start.
show_failure() {
  local from
  from=$(grep -n -m 1 '^FAILED' "$1" | cut -d: -f1) || from=1
  tail -n "+$from" "$1" >&2
}

# Passes Ninja's output on, and says WHAT once there is work: a step is done, or a second has passed without a word. Then the
# progress, "building 57/190": on a terminal in one line that changes, elsewhere a line every quarter of a minute.
# CMake looks for new source files before every build; that alone is no work. The interrupt is ignored, so that
# Ninja can say its last words and tidy up.
announce() {
  local line status told='' shown=$SECONDS
  trap '' INT
  while status=0; IFS= read -r -t 1 line || status=$?; ((status != 1)); do
    ((status)) || line+=$'\n'  # otherwise the time is up, with or without the beginning of a line
    printf '%s' "$line"
    if [[ -z $told && $line != 'ninja: '* && $line != *'Re-checking globbed'* ]]; then
      say "$1"
      told=yes
    fi
    [[ $told && $line =~ ^\[([0-9]+/[0-9]+)\] ]] || continue
    if [[ -t 2 ]]; then
      printf '\rheadscope: building %s ' "${BASH_REMATCH[1]}" >&2
      shown=line
    elif ((SECONDS - shown >= 15)); then
      say "building ${BASH_REMATCH[1]}"
      shown=$SECONDS
    fi
  done
  [[ $shown != line ]] || printf '\r\033[K' >&2
}

configure_release() {
  use_preset release
  configure_program "$@"
}

# configure_program [-DNAME=VALUE...]
configure_program() {
  rm -f "$STAMP"
  configure "$PRESET" "$@"
  stamp_text "$(pyarrow_folder)" "$(torch_folder)" "$UNPACKED" "$(gpu_libraries)" >"$STAMP"
}

stamp_text() {
  printf '%s\n' "$1" "$2" "$3" "$4" "$ROOT" "${HEADSCOPE_PYARROW:-}" "${HEADSCOPE_TORCH:-}" \
    "$(<"$ROOT/lock/debian.txt")" "$(<"$ROOT/lock/build.txt")" "$(<"$ROOT/lock/torch.txt")"
  [[ $PRESET != cuda ]] || printf '%s\n' "${HEADSCOPE_NVCC:-}" "$(<"$ROOT/lock/cuda.txt")" "$(<"$ROOT/lock/gpu.txt")"
}

is_configured() {
  local pyarrow torch unpacked libraries
  [[ -e $STAMP && -e $FOLDER/build.ninja ]] || return 1
  { read -r pyarrow && read -r torch && read -r unpacked && read -r libraries; } <"$STAMP"
  [[ -e $pyarrow/include && -e $torch/include && $(<"$STAMP") == "$(stamp_text "$pyarrow" "$torch" "$unpacked" "$libraries")" ]] &&
    [[ -z $libraries || -d $libraries ]] && [[ -z $unpacked || -d $unpacked ]] && use_unpacked "$unpacked"
}

# The program and its tests for NVIDIA GPUs; needs none here.
build_for_gpus() {
  configure_release -DHEADSCOPE_TESTS=ON -DHEADSCOPE_CUDA=ON "-DHEADSCOPE_NVCC=$(nvcc_program)"
  build release 'building for GPUs' headscope_gpu test_gpu
}

# Brings the program up to date, installing first what is missing.
update_program() {
  local what=building target=headscope_program
  local -a groups=(build torch) settings=()
  [[ -e $PROGRAM ]] || what='building (first time: some minutes)'
  [[ $PRESET != cuda ]] || target=headscope_gpu groups+=(cuda gpu)
  if ! is_configured; then
    forget_moved_cache "$FOLDER"
    # The program alone needs no test libraries. A folder that scripts/test has made keeps its tests.
    [[ -e $FOLDER/CMakeCache.txt ]] || settings=(-DHEADSCOPE_TESTS=OFF)
    install_all "${groups[@]}"
    [[ $PRESET != cuda ]] || settings+=("-DHEADSCOPE_NVCC=$(nvcc_program)" "-DHEADSCOPE_GPU_LIBRARIES=$(gpu_libraries)")
    configure_program "${settings[@]}"
  fi
  build "$PRESET" "$what" "$target"
}

# The program, up to date, with what it needs on PATH. Who may not write here, such as a user of an administrator's checkout, runs
# what is built.
ready_program() {
  local unpacked=
  ! wants_gpu_program || use_preset cuda
  [[ $PRESET != cuda || -x $PROGRAM ]] || may_build || do_without_gpu_program
  if [[ -x $PROGRAM && ! -w $FOLDER ]]; then
    [[ -e $STAMP ]] || return 0
  else
    may_build || die 2 "cannot write to $FOLDER, where the program is built"
    exclusively "$FOLDER" "building in $FOLDER" update_program
  fi
  { read -r _ && read -r _ && read -r unpacked; } <"$STAMP" || true
  use_unpacked "$unpacked"
}

do_without_gpu_program() {
  [[ ${HEADSCOPE_CUDA:-} != 1 ]] || die 2 "HEADSCOPE_CUDA=1: cannot write to $FOLDER, where the program for GPUs is built"
  [[ -x $RELEASE/headscope ]] || return 0
  say "using the CPU: the program for GPUs cannot be built here (cannot write to $FOLDER)"
  use_preset release
}

may_build() { mkdir -p "$FOLDER" 2>/dev/null && [[ -w $FOLDER ]]; }
