# shellcheck shell=bash
# Debian packages for an ordinary user. apt-get works without root on lists and a cache of its own; what it fetches, the packages
# that are missing and what they depend on, is unpacked into one folder of the cache, named by what was asked for:
#   usr, etc, ...  what the packages hold, but for the programs
#   programs/bin   the programs, which look for their files in ../lib and ../share: links to those of usr
#   usr/bin        the names of the programs; run.sh starts each with the libraries of the folder
#   fonts.conf     the fonts of the system and of the folder
#   packages       the system that it was made for, and the packages that were asked for, one in a line
# All clones share it. It can be deleted at any time.

# The folder that is in use, or nothing.
UNPACKED=

this_system() {
  # shellcheck disable=SC1091
  (. /etc/os-release 2>/dev/null || true; printf '%s %s %s\n' "${ID:-unknown}" "${VERSION_ID:-testing}" "$(uname -m)")
}

# The first line of a folder's list: what it is for, and the scripts that made it; others make another folder.
this_kind() { printf '%s %s\n' "$(this_system)" "$(cat "$LIB/unpack.sh" "$LIB/run.sh" | sha256sum | cut -c 1-16)"; }

# unpacked_folder PACKAGE...: a folder that holds all of them, if there is one.
unpacked_folder() {
  local folder package kind
  for folder in "$CACHE"/packages-*/; do
    folder=${folder%/}
    { read -r kind <"$folder/packages"; } 2>/dev/null || continue
    [[ $kind == "$(this_kind)" ]] || continue
    for package in "$@"; do
      grep -qxF "$package" "$folder/packages" || continue 2
    done
    printf '%s\n' "$folder"
    return
  done
}

# use_unpacked FOLDER: programs of the system come first, since only what it lacks was asked for. Nothing without a folder.
use_unpacked() {
  UNPACKED=$1
  [[ -n $UNPACKED ]] || return 0
  export PATH=$PATH:$UNPACKED/usr/bin
  export CMAKE_PREFIX_PATH=$UNPACKED/usr${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}
  export FONTCONFIG_FILE=${FONTCONFIG_FILE:-$UNPACKED/fonts.conf}
}

# unpack_packages GROUP...: the folder appears under its name only when it is complete.
unpack_packages() {
  local partial folder
  local -a missing
  rm -rf "$CACHE"/packages.partial.*  # of interrupted installs: a live one would hold the lock that we hold
  partial=$(mktemp -d "$CACHE/packages.partial.XXXXXX")
  # shellcheck disable=SC2064  # the folder of now
  trap "$(printf 'rm -rf %q' "$partial")" EXIT
  mapfile -t missing < <(missing_packages "$@")
  say "not root: unpacking Debian packages into $CACHE: ${missing[*]}"
  fetch_lists "$partial/apt" "${missing[@]}"
  mapfile -t missing < <(missing_packages "$@")  # clang's version is known now
  fetch_packages "$partial/apt" "${missing[@]}"
  mkdir "$partial/root"
  unpack_into "$partial/root" "$partial/apt/cache/archives"
  { this_kind; printf '%s\n' "${missing[@]}"; } >"$partial/root/packages"
  folder=$(sha256sum <"$partial/root/packages")
  folder=$CACHE/packages-${folder:0:16}
  write_fonts "$partial/root/fonts.conf" "$folder"
  rm -rf "$folder"  # of another version of these packages' list; nobody uses it, or it would have been found
  mv -T "$partial/root" "$folder"
}

# fetch_lists FOLDER PACKAGE...: sets APT_OPTIONS.
fetch_lists() {
  local apt=$1 kept
  shift
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  APT_OPTIONS=(-o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o Debug::NoLocking=1 -o APT::Sandbox::User=
    -o Acquire::Languages=none -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20)
  # A list that no package of ours is in may fail; the download then tells whether it mattered.
  apt-get "${APT_OPTIONS[@]}" -q update </dev/null >"$apt/log" 2>&1 || true
  for kept in "$apt/lists"/*_Packages*; do
    [[ ! -e $kept ]] || return 0
  done
  die 1 "apt-get could not fetch the package lists ($(first_complaint "$apt/log")); with a network, run this again;" \
    "or ask the administrator for: $(install_command "$@")"
}

fetch_packages() {
  local apt=$1
  shift
  apt-get "${APT_OPTIONS[@]}" -q -o APT::Keep-Downloaded-Packages=true install -y --no-install-recommends --download-only "$@" \
    </dev/null >"$apt/log" 2>&1 ||
    die 1 "apt-get could not fetch the packages ($(first_complaint "$apt/log")); run this again, or ask the administrator for:" \
      "$(install_command "$@")"
}

# What apt-get said was wrong, in one line.
first_complaint() {
  local line
  line=$(grep -m 1 '^E: ' "$1" || grep -m 1 '^W: ' "$1" || grep -m 1 '^Err' "$1" || tail -n 1 "$1")
  line=${line#[EW]: }
  printf '%s\n' "${line:-it did not say why}"
}

# unpack_into ROOT ARCHIVES: what is in the packages, and what their scripts would have done for us as root.
unpack_into() {
  local root=$1 archive entry program
  for archive in "$2"/*.deb; do
    dpkg-deb -x "$archive" "$root" 2>"$root.log" || die 1 "cannot unpack ${archive##*/}: $(tail -n 1 "$root.log")"
  done
  rm -rf "$root"/usr/share/{doc,man,info,locale,lintian}
  join_with_system "$root"
  mkdir -p "$root/usr/bin"
  [[ ! -d $root/bin ]] || mv "$root"/bin/* "$root/usr/bin"  # a release before the merged /usr
  # Debian chooses between gnuplots; we need not.
  [[ ! -e $root/usr/bin/gnuplot-nox || -e $root/usr/bin/gnuplot ]] || ln -s gnuplot-nox "$root/usr/bin/gnuplot"
  mkdir "$root/programs"
  for entry in "$root"/usr/*; do ln -s "../usr/${entry##*/}" "$root/programs/${entry##*/}"; done
  rm "$root/programs/bin"
  mv "$root/usr/bin" "$root/programs"
  mkdir "$root/usr/bin"
  cp "$LIB/run.sh" "$root/run.sh"
  chmod +x "$root/run.sh"
  for program in "$root"/programs/bin/*; do
    [[ ! -x $program ]] || ln -s ../../run.sh "$root/usr/bin/${program##*/}"
  done
}

# Packages expect to lie in /: their links and linker scripts name places there.
join_with_system() {
  local root=$1 link target script
  # An absolute link to something of the packages.
  while IFS= read -r -d '' link; do
    target=$(readlink "$link")
    [[ ! -e $root$target ]] || ln -sfn "$(realpath -s --relative-to="${link%/*}" "$root$target")" "$link"
  done < <(find "$root" -type l -lname '/*' -print0)
  # libX.so -> libX.so.1, where the library itself is installed in the system: the same names in the folder lead there.
  while IFS= read -r -d '' link; do
    follow_into_system "$root" "$link"
  done < <(find "$root" -xtype l ! -lname '/*' -print0)
  # libc.so is a text with the paths of its parts. A bare name is looked for beside the text.
  for script in "$root"/usr/lib/*/lib{c,m}.so; do
    [[ -f $script && ! -L $script ]] || continue
    for target in $(grep -o '/usr/lib/[^ ]*\.a' "$script" || true); do
      [[ ! -e $root$target ]] || sed -i "s|$target|${target##*/}|g" "$script"
    done
  done
}

follow_into_system() {
  local root=$1 link=$2 place
  while [[ -L $link && ! -e $link ]]; do
    link=$(realpath -ms "${link%/*}/$(readlink "$link")")
    place=${link#"$root"}
    [[ ! -e $link && ! -L $link && $place != "$link" && -e $place ]] || return 0
    mkdir -p "${link%/*}"
    if [[ -L $place && $(readlink "$place") != /* ]]; then
      ln -s "$(readlink "$place")" "$link"
    else
      ln -s "$place" "$link"
    fi
  done
}

# write_fonts FILE FOLDER: gnuplot draws text with the fonts that fontconfig knows.
write_fonts() {
  local folder
  folder=$(sed 's/&/\&amp;/g; s/</\&lt;/g' <<<"$2")
  cat >"$1" <<END
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <include ignore_missing="yes">$folder/etc/fonts/fonts.conf</include>
  <dir>$folder/usr/share/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
END
}
