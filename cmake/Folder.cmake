# The folders of src, each a static library named as the folder. headscope_folder(NAME LINKS folder... PACKAGES target...)
# is the architecture: a folder includes itself, the folders that it links, and those below them. CheckIncludes.cmake
# stops the build at any other include, and at an include of torch in a folder without it.
# LIGHT: compiled at -O1.
# A unit of the build is a batch of sources: headers are read once for the batch. Batches are small where a touched file
# should be compiled soon, and whole folders under sanitizers, where a folder is built once.
set(HEADSCOPE_BATCH 4 CACHE STRING "Sources of one unit; 0: all of a folder")

# One precompiled header for the torch-free half; Torch.cmake has the other.
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/precompiled.cpp" CONTENT "")
add_library(headscope_precompiled OBJECT "${CMAKE_BINARY_DIR}/precompiled.cpp")
target_link_libraries(headscope_precompiled PUBLIC headscope_flags fmt::fmt nlohmann_json::nlohmann_json)
target_precompile_headers(headscope_precompiled PRIVATE "${CMAKE_SOURCE_DIR}/cmake/precompiled.h")

function(headscope_folder name)
  cmake_parse_arguments(ARG "TORCH;LIGHT" "" "LINKS;PACKAGES;PRIVATE_PACKAGES" ${ARGN})
  set(folder "${CMAKE_SOURCE_DIR}/src/${name}")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  add_library(headscope_${name} STATIC ${sources})
  list(TRANSFORM ARG_LINKS PREPEND headscope_ OUTPUT_VARIABLE libraries)
  target_link_libraries(headscope_${name} PUBLIC headscope_flags ${libraries} ${ARG_PACKAGES} PRIVATE ${ARG_PRIVATE_PACKAGES})
  set_target_properties(headscope_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${HEADSCOPE_BATCH})
  if(ARG_LIGHT)  # it computes little: better compiled soon
    target_compile_options(headscope_${name} PRIVATE -O1)
  endif()
  if(ARG_TORCH)
    set(headscope_with_torch ${headscope_with_torch} headscope_${name} PARENT_SCOPE)
    target_link_libraries(headscope_${name} PUBLIC headscope_torch)
    target_precompile_headers(headscope_${name} REUSE_FROM headscope_torch_precompiled)
    headscope_gpu_sources(${name} ${sources})
  else()
    set(headscope_torch_free ${headscope_torch_free} headscope_${name} PARENT_SCOPE)
    target_precompile_headers(headscope_${name} REUSE_FROM headscope_precompiled)
  endif()
  headscope_check_includes(${name} "${ARG_TORCH}" ${ARG_LINKS})
endfunction()

# The folders that NAME may include, and a step before its first unit that looks at every include.
function(headscope_check_includes name torch)
  set(allowed ${name})
  foreach(link ${ARGN})
    get_property(below GLOBAL PROPERTY HEADSCOPE_INCLUDES_${link})
    if(NOT below)
      message(FATAL_ERROR "src/${name} links src/${link}, which is not below it: see the list in CMakeLists.txt")
    endif()
    list(APPEND allowed ${below})
  endforeach()
  list(REMOVE_DUPLICATES allowed)
  set_property(GLOBAL PROPERTY HEADSCOPE_INCLUDES_${name} "${allowed}")
  file(GLOB_RECURSE files CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${name}/*.h" "${CMAKE_SOURCE_DIR}/src/${name}/*.cpp"
    "${CMAKE_SOURCE_DIR}/src/${name}/*.cu" "${CMAKE_SOURCE_DIR}/src/${name}/*.cuh")
  set(stamp "${CMAKE_BINARY_DIR}/includes/${name}.checked")
  string(REPLACE ";" "," allowed "${allowed}")
  add_custom_command(OUTPUT "${stamp}" DEPENDS ${files} "${CMAKE_SOURCE_DIR}/cmake/CheckIncludes.cmake"
    COMMAND "${CMAKE_COMMAND}" "-DROOT=${CMAKE_SOURCE_DIR}" "-DNAME=${name}" "-DALLOWED=${allowed}" "-DTORCH=${torch}"
      "-DSTAMP=${stamp}" -P "${CMAKE_SOURCE_DIR}/cmake/CheckIncludes.cmake"
    COMMENT "Checking the includes of src/${name}" VERBATIM)
  add_custom_target(headscope_${name}_includes DEPENDS "${stamp}")
  add_dependencies(headscope_${name} headscope_${name}_includes)
endfunction()
