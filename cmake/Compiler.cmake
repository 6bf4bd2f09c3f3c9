# One set of flags for all of our code. Third-party headers are SYSTEM: their warnings are not ours.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_library(headscope_flags INTERFACE)
# Errors where tests are built, so in CI; a user's newer compiler may know warnings that ours did not.
target_compile_options(headscope_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion $<$<BOOL:${HEADSCOPE_TESTS}>:-Werror>
  -fno-math-errno)  # errno after sqrt and log is never read, and checking it blocks vectorisation
# Names of files in messages begin at the root: the same in every clone.
target_compile_options(headscope_flags INTERFACE -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
target_compile_definitions(headscope_flags INTERFACE HEADSCOPE_VERSION="${PROJECT_VERSION}")
target_include_directories(headscope_flags INTERFACE "${CMAKE_SOURCE_DIR}/src")

# AVX2 and FMA are on every x86-64 server since 2013; an older machine sets HEADSCOPE_ARCH=x86-64.
# A fixed level, not "native", so that the same sources give the same digits on every machine.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(HEADSCOPE_ARCH "x86-64-v3" CACHE STRING "Instruction set passed to -march")
  target_compile_options(headscope_flags INTERFACE -march=${HEADSCOPE_ARCH})
endif()

if(HEADSCOPE_SANITIZE)
  target_compile_options(headscope_flags INTERFACE
    -fsanitize=${HEADSCOPE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1
    -Wno-shadow  # a name of another file, where a whole folder is one unit; the release build looks
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # GCC cannot follow values through instrumented code
  target_link_options(headscope_flags INTERFACE -fsanitize=${HEADSCOPE_SANITIZE})
endif()

# What one clone has compiled, another takes from the cache: paths are relative to the root. ccache cannot use clang's precompiled
# headers in another clone; the preset asan does without.
set(HEADSCOPE_COMPILER_CACHE "" CACHE PATH "Folder of a compiler cache shared by clones; used where ccache is installed")
find_program(CCACHE ccache NO_CACHE)
if(HEADSCOPE_COMPILER_CACHE AND CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER env "CCACHE_DIR=${HEADSCOPE_COMPILER_CACHE}" "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}"
    CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=4G
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime "${CCACHE}")
  target_compile_options(headscope_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()
