# Third-party packages. Debian's come from their own config files; Arrow is the C++ library inside the pyarrow wheel.
find_package(fmt REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_program(GNUPLOT gnuplot REQUIRED)

find_path(XXHASH_INCLUDE xxhash.h REQUIRED)
add_library(headscope_xxhash INTERFACE)
target_include_directories(headscope_xxhash SYSTEM INTERFACE "${XXHASH_INCLUDE}")
target_compile_definitions(headscope_xxhash INTERFACE XXH_INLINE_ALL)

# The folder that holds the unpacked wheel (pyarrow/include, pyarrow/libarrow.so.*): scripts/bootstrap makes it.
set(HEADSCOPE_PYARROW "$ENV{HEADSCOPE_PYARROW}" CACHE PATH "Folder of the installed pyarrow package")
if(NOT EXISTS "${HEADSCOPE_PYARROW}/include/parquet/api/reader.h")
  message(FATAL_ERROR "HEADSCOPE_PYARROW='${HEADSCOPE_PYARROW}' holds no Arrow headers; run scripts/bootstrap")
endif()
add_library(headscope_arrow INTERFACE)
target_include_directories(headscope_arrow SYSTEM INTERFACE "${HEADSCOPE_PYARROW}/include")
foreach(library parquet arrow)
  file(GLOB found "${HEADSCOPE_PYARROW}/lib${library}.so.*")
  list(GET found 0 found)
  target_link_libraries(headscope_arrow INTERFACE "${found}")
endforeach()
# The wheel is not on the loader's path: its place is written into our programs.
set(CMAKE_BUILD_RPATH "${HEADSCOPE_PYARROW}")
