# headscope_folder(NAME LINKS target...): the static library of one folder of src, named as the folder.
# A public link is a statement of the architecture: only to folders below (see the root CMakeLists.txt).
function(headscope_folder name)
  cmake_parse_arguments(ARG "" "" "LINKS;PRIVATE_LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  add_library(headscope_${name} STATIC ${sources})
  target_link_libraries(headscope_${name} PUBLIC headscope_flags ${ARG_LINKS} PRIVATE ${ARG_PRIVATE_LINKS})
  target_precompile_headers(headscope_${name} PRIVATE "${CMAKE_SOURCE_DIR}/cmake/precompiled.h")
endfunction()

# headscope_test(NAME LINKS target...): one test program of all .cpp files in tests/NAME.
function(headscope_test name)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/${name}/*.cpp")
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE ${ARG_LINKS} headscope_test_support GTest::gmock GTest::gtest_main)
  target_precompile_headers(test_${name} PRIVATE "${CMAKE_SOURCE_DIR}/cmake/precompiled.h" <gmock/gmock.h> <gtest/gtest.h>)
  target_compile_options(test_${name} PRIVATE -O1)  # what is tested is optimised; the tests compile faster
  add_test(NAME ${name} COMMAND test_${name} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
endfunction()
