# shellcheck shell=bash
# headscope install and uninstall: a launcher, and completion for three shells. The launcher lists every file and folder that was
# made, and uninstall removes exactly those.

MARK='made by headscope install'  # a file without these words is not ours

# Printed below the program's own --help. scripts/complete reads these three texts, too.
wrapper_commands() {
  cat <<'END'
Of this checkout:
  install                     Put a launcher and completion for bash, zsh and fish into ~/.local
  uninstall                   Remove what install has made
END
}

install_usage() {
  cat <<'END'
Put a launcher into ~/.local/bin, and completion for bash, zsh and fish into ~/.local/share
Usage: headscope install [OPTIONS]

Options:
  -h,--help                   Print this help message and exit
  --prefix DIR                Folder that takes bin and share [~/.local]
END
}

uninstall_usage() {
  cat <<'END'
Remove the launcher and the completion that install has made
Usage: headscope uninstall [OPTIONS]

Options:
  -h,--help                   Print this help message and exit
  --prefix DIR                The folder that install was given [~/.local]
END
}

# read_places COMMAND ARGUMENT...: sets LAUNCHER, SHARE and COMPLETION, the places where the shells look.
read_places() {
  local command=$1 prefix=
  shift
  while (($#)); do
    case $1 in
      --prefix=?*) prefix=${1#--prefix=} ;;
      --prefix)
        [[ -n ${2:-} ]] || die 2 "--prefix takes a folder (see 'headscope $command --help')"
        prefix=$2
        shift
        ;;
      -h | --help)
        "${command}_usage"
        exit
        ;;
      *) die 2 "unknown argument '$1' (see 'headscope $command --help')" ;;
    esac
    shift
  done
  SHARE=$HOME/.local/share
  [[ ${XDG_DATA_HOME:-} != /* ]] || SHARE=$XDG_DATA_HOME
  [[ -z $prefix ]] || SHARE=$(realpath -ms -- "$prefix")/share
  LAUNCHER=$HOME/.local/bin/headscope
  [[ -z $prefix ]] || LAUNCHER=${SHARE%/share}/bin/headscope
  COMPLETION=("$SHARE/bash-completion/completions/headscope" "$SHARE/zsh/site-functions/_headscope"
    "$SHARE/fish/vendor_completions.d/headscope.fish")
}

install_launcher() {
  local file
  read_places install "$@"
  [[ $LAUNCHER$SHARE$CHECKOUT != *$'\n'* ]] || die 2 'a path with a line break cannot be installed to or from'
  for file in "$LAUNCHER" "${COMPLETION[@]}"; do
    [[ ! -e $file && ! -L $file ]] || is_ours "$file" ||
      die 2 "$file is there and was not made by headscope install; nothing was changed"
  done
  ready_program
  MADE_FOLDERS=() MADE_FILES=()
  trap undo_install EXIT
  write_completion
  launcher_text | write_whole "$LAUNCHER" +x
  trap - EXIT
  say "installed $LAUNCHER, and completion for bash, zsh and fish in $SHARE"
  say_what_is_left_to_do
}

is_ours() { [[ -f $1 && ! -L $1 ]] && grep -qF "$MARK" "$1" 2>/dev/null; }

# make_folder FOLDER: with the folders above it.
make_folder() {
  if [[ ! -d $1 ]]; then
    make_folder "$(dirname "$1")"
    mkdir "$1" 2>/dev/null || die 2 "cannot make the folder $1; name another place with --prefix DIR"
    MADE_FOLDERS+=("$1")
  fi
}

# write_whole FILE [MODE]: standard input, at once or not at all.
write_whole() {
  local partial=$1.$$.partial
  if ! { cat >"$partial" && chmod "${2:-+r}" "$partial" && mv -fT "$partial" "$1"; } 2>/dev/null; then
    rm -f "$partial" 2>/dev/null || true
    die 2 "cannot write $1; name another place with --prefix DIR"
  fi
}

undo_install() {
  local i
  ((${#MADE_FILES[@]} == 0)) || rm -f "${MADE_FILES[@]}"
  for ((i = ${#MADE_FOLDERS[@]} - 1; i >= 0; --i)); do rmdir "${MADE_FOLDERS[i]}" 2>/dev/null || true; done
}

# Each shell's file is scripts/completion/SHELL with the place of this checkout in its first line of code.
write_completion() {
  local file shell
  local -a shells=(bash zsh fish)
  make_folder "${LAUNCHER%/*}"
  for file in "${COMPLETION[@]}"; do
    shell=${shells[0]}
    shells=("${shells[@]:1}")
    make_folder "${file%/*}"
    [[ -e $file ]] || MADE_FILES+=("$file")
    completion_text "$shell" | write_whole "$file"
  done
}

completion_text() {
  local line
  while IFS= read -r line; do
    case $line in
      *@MARK@*) printf '# %s; headscope uninstall removes it.\n' "$MARK" ;;
      *@CHECKOUT@*) printf '%s%s\n' "${line%@CHECKOUT@*}" "$("quote_$([[ $1 == fish ]] && echo fish || echo bourne)" "$CHECKOUT")" ;;
      *) printf '%s\n' "$line" ;;
    esac
  done <"$ROOT/scripts/completion/$1"
}

# In single quotes, as bash and zsh read them, and as fish does.
quote_bourne() { printf "'%s'\n" "$(sed "s/'/'\\\\''/g" <<<"$1")"; }
quote_fish() { printf "'%s'\n" "$(sed "s/['\\\\]/\\\\&/g" <<<"$1")"; }

launcher_text() {
  printf '#!/usr/bin/env bash\n# %s; headscope uninstall removes it, and what is listed here.\n' "$MARK"
  printf '#file %s\n' "${COMPLETION[@]}"
  { listed_in_launcher folder; ((${#MADE_FOLDERS[@]} == 0)) || printf '%s\n' "${MADE_FOLDERS[@]}"; } | sort -u | sed 's/^/#folder /'
  printf 'checkout=%s\n' "$(quote_bourne "$CHECKOUT")"
  cat <<'END'
[[ -x $checkout/headscope ]] || {
  printf 'headscope: the checkout %s is gone; run ./headscope install in its new place\n' "$checkout" >&2
  exit 2
}
exec "$checkout/headscope" "$@"
END
}

# listed_in_launcher file|folder: what the launcher that is there says.
listed_in_launcher() { [[ ! -e $LAUNCHER ]] || sed -n "s/^#$1 //p" "$LAUNCHER"; }

say_what_is_left_to_do() {
  [[ :$PATH: == *":${LAUNCHER%/*}:"* ]] ||
    say "${LAUNCHER%/*} is not on PATH; add to your shell's start file: export PATH=\"${LAUNCHER%/*}:\$PATH\""
  [[ -e /usr/share/bash-completion/bash_completion ]] ||
    say "for completion in bash, add to ~/.bashrc: source $(quote_bourne "${COMPLETION[0]}")"
  ! command -v zsh >/dev/null ||
    say "for completion in zsh, add to ~/.zshrc before compinit: fpath+=($(quote_bourne "${COMPLETION[1]%/*}"))"
}

uninstall_launcher() {
  local file folder removed=
  local -a folders=()
  read_places uninstall "$@"
  if is_ours "$LAUNCHER"; then
    refuse_other_checkout
    mapfile -t COMPLETION < <(listed_in_launcher file)
    mapfile -t folders < <(listed_in_launcher folder | sort -r)
  elif [[ -e $LAUNCHER || -L $LAUNCHER ]]; then
    die 2 "$LAUNCHER was not made by headscope install; nothing was removed"
  fi
  for file in "${COMPLETION[@]}" "$LAUNCHER"; do
    is_ours "$file" || continue
    rm -f "$file" 2>/dev/null || die 2 "cannot remove $file"
    removed=yes
  done
  for folder in "${folders[@]}"; do rmdir "$folder" 2>/dev/null || true; done  # what others have put something into stays
  if [[ $removed ]]; then
    say "removed $LAUNCHER and its completion"
  else
    say "nothing to remove: there is no launcher $LAUNCHER"
  fi
}

# A launcher of another checkout that is still there is that one's to remove.
refuse_other_checkout() {
  local other
  other=$(sed -n "s/^checkout='\(.*\)'\$/\1/p" "$LAUNCHER" | sed "s/'\\\\''/'/g")
  [[ $other == "$CHECKOUT" || ! -x $other/headscope ]] ||
    die 2 "$LAUNCHER belongs to the checkout $other; run uninstall there, or install here first"
}
