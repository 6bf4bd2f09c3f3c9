# shellcheck shell=bash
# torch and transformers for Python on the CPU. torch is the one that the program links, unpacked without the CUDA libraries (5 GB)
# that its Python module is linked with. A stand-in takes their place: it has their functions, and each ends the process.

# stand_ins TORCH: the folder with the CUDA libraries that torch needs and that are not there. Nothing if none is missing.
stand_ins() {
  local library=$1/lib/libtorch_python.so missing folder partial
  missing=$(missing_libraries "$library"; missing_functions "$library")
  [[ -n $missing ]] || return 0
  folder=$CACHE/stand-ins-$(sha256sum <<<"$missing" | head -c 16)
  if [[ ! -d $folder ]]; then
    make_cache
    partial=$(mktemp -d "$CACHE/stand-ins.partial.XXXXXX")
    make_stand_ins "$library" "$partial" || { rm -rf "$partial"; die 1 "cannot make the stand-ins for CUDA libraries"; }
    mv -T "$partial" "$folder" 2>/dev/null || rm -rf "$partial"  # another process was faster
  fi
  printf '%s\n' "$folder"
}

missing_libraries() { ldd "$1" | sed -n 's/^\t\(.*\) => not found.*/\1/p' | sort -u; }

# Lines "NAME VERSION", the latter empty for a function without one. Those of Python are in its program.
missing_functions() {
  ldd -r "$1" 2>&1 | sed -n '/symbol: _\?Py/d; s/^undefined symbol: \([^,\t]*\)\(, version \([^\t]*\)\)\?\t.*/\1 \3/p' | sort -u
}

# make_stand_ins LIBRARY FOLDER: one library with all functions, and a link to it for the name of each library.
make_stand_ins() {
  local name
  {
    printf '#include <cstdio>\n#include <cstdlib>\n'
    printf '#define STAND_IN(name) extern "C" void name() { std::fputs(#name ": this is no CUDA library\\n", stderr); std::abort(); }\n'
    missing_functions "$1" | awk '{ print "STAND_IN(" $1 ")" }'
  } >"$2/stand-ins.cpp"
  missing_functions "$1" | awk '$2 { of[$2] = of[$2] " " $1 ";" } END { for (version in of) print version " {" of[version] " };" }' \
    >"$2/versions"
  g++ -shared -fPIC "-Wl,--version-script=$2/versions" -o "$2/stand-ins.so" "$2/stand-ins.cpp" >&2 || return 1
  for name in $(missing_libraries "$1"); do ln -s stand-ins.so "$2/$name"; done
}

# Everything but Python itself. Fails with a reason.
install_peers() {
  local group torch
  find_python
  install_packages build
  [[ $PYTHON_VERSION != 3.10 ]] || die 2 'transformers needs Python 3.11 or newer; name one with HEADSCOPE_PYTHON'
  for group in $(wheel_groups build torch tests peers); do install_wheels "$group"; done
  torch=$(torch_folder)
  [[ -e $torch/__init__.py ]] || die 2 "$torch is not the folder of an installed torch package for Python"
  stand_ins "$torch" >/dev/null
}

# peers_python ARGUMENT...: becomes Python. Bytecode goes to a folder of its own: that of torch stays as it is.
peers_python() {
  local torch libraries
  find_python
  torch=$(torch_folder)
  libraries=$(stand_ins "$torch")
  export PYTHONPATH
  PYTHONPATH=$(wheel_folder peers):$(wheel_folder tests):$(dirname "$(pyarrow_folder)"):$(dirname "$torch")${PYTHONPATH:+:$PYTHONPATH}
  export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} PYTHONPYCACHEPREFIX=$CACHE/peers-bytecode
  export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
  unset PYTHONDONTWRITEBYTECODE
  exec "$PYTHON" "$@"
}
