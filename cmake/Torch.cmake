# LibTorch out of the torch wheel, through targets of our own: the wheel's CMake files insist on a CUDA toolkit.
option(HEADSCOPE_CUDA "Also build headscope_gpu, the program for NVIDIA GPUs (needs nvcc; scripts/bootstrap --with cuda)" OFF)
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

# One precompiled header for all folders of the torch half: it takes as long as five sources.
add_library(headscope_torch_precompiled OBJECT "${CMAKE_BINARY_DIR}/precompiled.cpp")
target_link_libraries(headscope_torch_precompiled PUBLIC headscope_flags headscope_torch fmt::fmt nlohmann_json::nlohmann_json)
target_precompile_headers(headscope_torch_precompiled PRIVATE "${CMAKE_SOURCE_DIR}/cmake/torch_precompiled.h")

# The program for NVIDIA GPUs is the other one with a few sources compiled a second time: those that name HEADSCOPE_CUDA, and
# the kernels in cuda/*.cu. In headscope_gpu their objects stand before the libraries, whose own ones are then not taken.
if(HEADSCOPE_CUDA)
  set(HEADSCOPE_NVCC "$ENV{HEADSCOPE_NVCC}" CACHE FILEPATH "The CUDA compiler")
  set(HEADSCOPE_CUDA_ARCHITECTURES "80;90" CACHE STRING "Compute capabilities that kernels are compiled for")
  if(NOT EXISTS "${HEADSCOPE_NVCC}")
    message(FATAL_ERROR "HEADSCOPE_NVCC='${HEADSCOPE_NVCC}' is not there; run scripts/bootstrap --with cuda")
  endif()
  # The headers and libraries of the CUDA runtime, beside torch as wheels put them.
  get_filename_component(cuda_runtime "${HEADSCOPE_TORCH}/../nvidia/cu13" ABSOLUTE)
  get_filename_component(cuda_compiler "${HEADSCOPE_NVCC}/../.." ABSOLUTE)
  # The headers of CUTLASS, beside the compiler as wheels put them. It also works without: see headscope_kernels.
  set(HEADSCOPE_CUTLASS "$ENV{HEADSCOPE_CUTLASS}" CACHE PATH "Folder that holds cutlass/cutlass.h, if not beside the compiler's wheels")
  set(cutlass "${HEADSCOPE_CUTLASS}")
  if(NOT cutlass)
    get_filename_component(cutlass "${cuda_compiler}/../../cutlass_library/source/include" ABSOLUTE)
  endif()
  # nccl.h, beside the compiler as wheels put it.
  set(HEADSCOPE_NCCL "$ENV{HEADSCOPE_NCCL}" CACHE PATH "Folder that holds nccl.h, if not beside the compiler's wheels")
  set(nccl "${HEADSCOPE_NCCL}")
  if(NOT nccl)
    get_filename_component(nccl "${cuda_compiler}/../nccl/include" ABSOLUTE)
  endif()
  add_library(headscope_gpu_objects OBJECT)
  target_link_libraries(headscope_gpu_objects PRIVATE headscope_flags headscope_torch fmt::fmt nlohmann_json::nlohmann_json Eigen3::Eigen)
  target_precompile_headers(headscope_gpu_objects REUSE_FROM headscope_torch_precompiled)
  target_compile_definitions(headscope_gpu_objects PRIVATE HEADSCOPE_CUDA)
  target_include_directories(headscope_gpu_objects SYSTEM PRIVATE "${cuda_runtime}/include" "${cuda_compiler}/include")
  # For programs. Nothing of ours calls the CUDA libraries by name: they register themselves when they are loaded.
  add_library(headscope_gpu_kernels INTERFACE)
  target_include_directories(headscope_gpu_kernels SYSTEM INTERFACE "${cuda_runtime}/include" "${cuda_compiler}/include")
  target_link_options(headscope_gpu_kernels INTERFACE -Wl,--no-as-needed)
  # cuBLAS, cuDNN and others: libtorch_cuda.so looks for them in ../../nvidia from its own folder. Where they are in another one, the
  # program's RPATH names it. The loader looks there for every library, even one that torch opens later, and before it looks in
  # LD_LIBRARY_PATH, where another cuDNN may be. A RUNPATH, which linkers write by default, would serve the program alone.
  set(HEADSCOPE_GPU_LIBRARIES "" CACHE PATH "Folder whose nvidia/*/lib hold what torch calls on a GPU, if not beside torch")
  if(HEADSCOPE_GPU_LIBRARIES)
    file(GLOB gpu_libraries "${HEADSCOPE_GPU_LIBRARIES}/nvidia/*/lib")
    list(APPEND CMAKE_BUILD_RPATH ${gpu_libraries})
    add_link_options(-Wl,--disable-new-dtags)
  endif()
  target_link_libraries(headscope_gpu_kernels INTERFACE "${HEADSCOPE_TORCH}/lib/libtorch_cuda.so"
    "${HEADSCOPE_TORCH}/lib/libc10_cuda.so" "${cuda_runtime}/lib/libcudart.so.13")
endif()

# headscope_gpu_sources(NAME source...): those sources of the folder that differ on a GPU, and its kernels.
function(headscope_gpu_sources name)
  set(differ)
  foreach(source ${ARGN})
    file(STRINGS "${source}" lines REGEX "HEADSCOPE_CUDA")
    if(lines)
      list(APPEND differ "${source}")
    endif()
  endforeach()
  if(HEADSCOPE_CUDA AND differ)
    # Each is an object of its own in the library, too, so that headscope_gpu can leave it out.
    set_source_files_properties(${differ} TARGET_DIRECTORY headscope_${name} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    target_sources(headscope_gpu_objects PRIVATE ${differ})
    headscope_kernels(${name})
  endif()
endfunction()

# headscope_kernels(NAME): compiles cuda/*.cu of a folder. By hand, because CMake's own CUDA support wants a whole toolkit, and
# the wheels are only a compiler.
# Some use instructions that only sm_90a has, one of them through CUTLASS. Without that architecture, or without CUTLASS for the one, their
# sources are compiled like the others and hold no kernels; the program then uses others.
function(headscope_kernels name)
  set(made_for_90a "${CMAKE_SOURCE_DIR}/src/probe/cuda/hopper_pairs.cu")
  set(flags_for_90a -gencode=arch=compute_90a,code=sm_90a --expt-relaxed-constexpr -DNDEBUG -DHEADSCOPE_SM90A "-I${cutlass}")
  if(EXISTS "${cutlass}/cutlass/cutlass.h")
    list(APPEND made_for_90a "${CMAKE_SOURCE_DIR}/src/ops/cuda/fused_products.cu")
  endif()
  if(NOT "90" IN_LIST HEADSCOPE_CUDA_ARCHITECTURES)
    set(made_for_90a)
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${name}/cuda/*.cu")
  set(targets)
  foreach(architecture ${HEADSCOPE_CUDA_ARCHITECTURES})
    list(APPEND targets "-gencode=arch=compute_${architecture},code=[sm_${architecture},compute_${architecture}]")
  endforeach()
  set(folder "${CMAKE_BINARY_DIR}/cuda/${name}")
  foreach(source ${sources})
    get_filename_component(stem "${source}" NAME_WE)
    set(object "${folder}/${stem}.o")
    set(flags ${targets})
    if(source IN_LIST made_for_90a)
      set(flags ${flags_for_90a})
    endif()
    add_custom_command(OUTPUT "${object}" DEPFILE "${object}.d" DEPENDS "${source}"
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}"
      COMMAND "${HEADSCOPE_NVCC}" -c -O3 -std=c++20 ${flags} -Xcompiler=-fPIC,-Wall -MD -MF "${object}.d"
        "-I${CMAKE_SOURCE_DIR}/src" "-I${cuda_runtime}/include" -o "${object}" "${source}"
      COMMENT "Building CUDA object ${stem}.o" VERBATIM)
    list(APPEND objects "${object}")
  endforeach()
  add_custom_target(headscope_${name}_kernels DEPENDS ${objects})
  add_dependencies(headscope_gpu_objects headscope_${name}_kernels)
  target_link_libraries(headscope_gpu_kernels INTERFACE ${objects})
endfunction()
