# LibTorch out of the torch wheel, through targets of our own: the wheel's CMake files insist on a CUDA toolkit.
option(HEADSCOPE_CUDA "Train on NVIDIA GPUs too (needs nvcc; scripts/bootstrap --with cuda)" OFF)
set(HEADSCOPE_TORCH "$ENV{HEADSCOPE_TORCH}" CACHE PATH "Folder of the installed torch package")
if(NOT EXISTS "${HEADSCOPE_TORCH}/include/ATen/ATen.h")
  message(FATAL_ERROR "HEADSCOPE_TORCH='${HEADSCOPE_TORCH}' holds no LibTorch headers; run scripts/bootstrap")
endif()

add_library(headscope_torch INTERFACE)
# After the system's folders: the wheel brings an own copy of fmt, and there must be one.
target_compile_options(headscope_torch INTERFACE
  "SHELL:-idirafter ${HEADSCOPE_TORCH}/include" "SHELL:-idirafter ${HEADSCOPE_TORCH}/include/torch/csrc/api/include")
target_link_libraries(headscope_torch INTERFACE "${HEADSCOPE_TORCH}/lib/libtorch_cpu.so" "${HEADSCOPE_TORCH}/lib/libc10.so")
# On a machine without a GPU the CUDA libraries that libtorch_cpu.so names are not all there.
target_link_options(headscope_torch INTERFACE -Wl,--unresolved-symbols=ignore-in-shared-libs)
list(APPEND CMAKE_BUILD_RPATH "${HEADSCOPE_TORCH}/lib")

if(HEADSCOPE_CUDA)
  target_compile_definitions(headscope_torch INTERFACE HEADSCOPE_CUDA)
  # Nothing of ours calls the CUDA libraries by name: they register themselves when they are loaded.
  target_link_options(headscope_torch INTERFACE -Wl,--no-as-needed)
  target_link_libraries(headscope_torch INTERFACE
    "${HEADSCOPE_TORCH}/lib/libtorch_cuda.so" "${HEADSCOPE_TORCH}/lib/libc10_cuda.so")
endif()

# One precompiled header for all folders that use torch, one for their tests: each takes as long as five sources.
add_library(headscope_torch_precompiled OBJECT "${CMAKE_SOURCE_DIR}/cmake/torch_precompiled.cpp")
target_link_libraries(headscope_torch_precompiled PUBLIC headscope_flags headscope_torch headscope_formats headscope_data)
target_precompile_headers(headscope_torch_precompiled PRIVATE "${CMAKE_SOURCE_DIR}/cmake/torch_precompiled.h")

# headscope_torch_folder(NAME LINKS target...): as headscope_folder, for a folder of the torch half.
function(headscope_torch_folder name)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  add_library(headscope_${name} STATIC ${sources})
  target_link_libraries(headscope_${name} PUBLIC headscope_flags headscope_torch headscope_formats headscope_data ${ARG_LINKS})
  target_precompile_headers(headscope_${name} REUSE_FROM headscope_torch_precompiled)
endfunction()
