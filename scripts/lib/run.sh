#!/usr/bin/env bash
# Starts a program of a folder that unpack.sh made: FOLDER/usr/bin/NAME leads here, and FOLDER/programs/bin/NAME is run with the
# libraries of the folder.
name=${0##*/}
root=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")

libraries=
flags=()
for folder in "$root"/usr/lib/*-linux-gnu* "$root"/lib/*-linux-gnu*; do
  [[ ! -d $folder ]] || libraries+=${libraries:+:}$folder
done
# The compiler finds its own files beside itself, but not those of the C library. They come last, as those of the system do: the
# headers of the C++ library look for them behind themselves. What is linked must find its libraries when it runs.
case $name in
  g++ | gcc | g++-[0-9]* | gcc-[0-9]* | *-linux-gnu-g++* | *-linux-gnu-gcc | *-linux-gnu-gcc-[0-9]* | clang | clang++ | clang-[0-9]* | clang++-[0-9]*)
    [[ $name != clang* ]] || flags=(-Wno-unused-command-line-argument)
    flags+=("-B$root/programs/bin")
    for folder in "$root"/usr/include/*-linux-gnu* "$root/usr/include"; do
      [[ ! -d $folder ]] || flags+=(-idirafter "$folder")
    done
    for folder in "$root"/usr/lib/*-linux-gnu*; do
      [[ ! -d $folder ]] || flags+=("-B$folder" "-L$folder" "-Wl,-rpath,$folder" "-Wl,-rpath-link,$folder")
    done
    ;;
esac
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec "$root/programs/bin/$name" "${flags[@]}" "$@"
