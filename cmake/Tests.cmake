# headscope_test(NAME [TORCH] [THREADS] [UNLISTED] LINKS folder... PACKAGES target...): the program test_NAME of all .cpp files in
# tests/NAME. ctest does not run one that is not listed.
# Tests of the torch-free half run three times: as NAME, as asan.NAME (with AddressSanitizer and UndefinedBehaviorSanitizer, in
# build/asan) and as tsan.NAME (with ThreadSanitizer, in build/tsan). What is tested is instrumented, the code of the tests is
# not: build/release compiles it once, into tests/libtests_NAME.a, and the other two link it. THREADS: these tests have threads
# of their own, which ThreadSanitizer must see: build/tsan compiles them, too. What only the tests instantiate is not checked.
# The two compilers share the standard library and the layout of types.
# scripts/test builds the target headscope_checked in build/asan and build/tsan, then runs ctest in build/release.
option(HEADSCOPE_SANITIZED_TESTS "Run the programs of build/asan and build/tsan as tests too" OFF)

# What a sanitized folder is built for.
add_custom_target(headscope_checked)

# What the libraries need that are not instrumented. Arrow takes its buffers from malloc: a buffer that its own allocator
# hands from one thread to another looks like a race.
set(HEADSCOPE_asan_ENVIRONMENT UBSAN_OPTIONS=print_stacktrace=1)
set(HEADSCOPE_tsan_ENVIRONMENT ARROW_DEFAULT_MEMORY_POOL=system
  "TSAN_OPTIONS=second_deadlock_stack=1 suppressions=cmake/tsan_suppressions.txt")  # from the root, where tests run

function(headscope_test name)
  cmake_parse_arguments(ARG "TORCH;THREADS;UNLISTED" "" "LINKS;PACKAGES" ${ARGN})
  if(HEADSCOPE_SANITIZE AND ARG_TORCH)
    return()  # LibTorch is not instrumented
  endif()
  list(TRANSFORM ARG_LINKS PREPEND headscope_ OUTPUT_VARIABLE libraries)
  list(APPEND libraries ${ARG_PACKAGES} headscope_test_support GTest::gmock GTest::gtest_main)
  if(HEADSCOPE_SANITIZE AND NOT (ARG_THREADS AND HEADSCOPE_SANITIZE STREQUAL "thread"))
    headscope_sanitized_test(${name} "${ARG_LINKS}" ${libraries})
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/${name}/*.cpp")
  list(FILTER sources EXCLUDE REGEX "/program/")  # programs of their own
  add_library(tests_${name} STATIC ${sources})
  target_link_libraries(tests_${name} PRIVATE ${libraries})
  set_target_properties(tests_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${HEADSCOPE_BATCH})
  target_compile_options(tests_${name} PRIVATE -O1)  # what is tested is optimised; the tests compile faster
  if(ARG_TORCH)
    target_precompile_headers(tests_${name} REUSE_FROM headscope_torch_precompiled)
  else()
    target_precompile_headers(tests_${name} REUSE_FROM headscope_test_precompiled)
  endif()
  add_executable(test_${name} $<TARGET_OBJECTS:tests_${name}>)
  target_link_libraries(test_${name} PRIVATE ${libraries})
  if(HEADSCOPE_SANITIZE)
    add_dependencies(headscope_checked test_${name})
  elseif(NOT ARG_UNLISTED)
    headscope_list_test(${name} "${ARG_TORCH}")
  endif()
endfunction()

function(headscope_sanitized_test name folders)
  set(tests "${CMAKE_SOURCE_DIR}/build/release/tests/libtests_${name}.a")
  # Objects of ours come first: of an inline function that the tests have, too, the linker takes the instrumented one.
  set(instrumented)
  foreach(folder ${folders})
    get_property(below GLOBAL PROPERTY HEADSCOPE_INCLUDES_${folder})
    list(TRANSFORM below REPLACE "(.+)" "$<TARGET_OBJECTS:headscope_\\1>")
    list(APPEND instrumented ${below})
  endforeach()
  list(REMOVE_DUPLICATES instrumented)
  add_executable(test_${name} ${instrumented})
  target_link_libraries(test_${name} PRIVATE -Wl,--whole-archive "${tests}" -Wl,--no-whole-archive ${ARGN})
  set_target_properties(test_${name} PROPERTIES LINKER_LANGUAGE CXX LINK_DEPENDS "${tests}")
  add_dependencies(test_${name} headscope_release_tests)
  add_dependencies(headscope_checked test_${name})
  set_property(GLOBAL APPEND PROPERTY HEADSCOPE_RELEASE_TESTS tests_${name})
  set_property(GLOBAL APPEND PROPERTY HEADSCOPE_RELEASE_ARCHIVES "${tests}")
endfunction()

# Brings the tests' code in build/release up to date, before anything is linked with it.
function(headscope_release_tests)
  get_property(targets GLOBAL PROPERTY HEADSCOPE_RELEASE_TESTS)
  get_property(archives GLOBAL PROPERTY HEADSCOPE_RELEASE_ARCHIVES)
  add_custom_target(headscope_release_tests BYPRODUCTS ${archives}
    COMMAND "${CMAKE_COMMAND}" --build "${CMAKE_SOURCE_DIR}/build/release" --target ${targets}
    COMMENT "Building the tests' code in build/release" VERBATIM)
endfunction()

function(headscope_list_test name torch)
  add_test(NAME ${name} COMMAND test_${name} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
  if(torch)
    # As the program does for itself: threads that wait for work leave the cores to other tests.
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "OMP_WAIT_POLICY=passive")
  elseif(HEADSCOPE_SANITIZED_TESTS)
    foreach(preset asan tsan)
      add_test(NAME ${preset}.${name} COMMAND "${CMAKE_BINARY_DIR}/../${preset}/tests/test_${name}"
        WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
      set_tests_properties(${preset}.${name} PROPERTIES ENVIRONMENT "${HEADSCOPE_${preset}_ENVIRONMENT}")
    endforeach()
  endif()
endfunction()
