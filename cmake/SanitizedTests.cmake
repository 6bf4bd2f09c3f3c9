# The tests again under sanitizers, and short fuzz runs, as tests of build/release: one ctest run covers everything.
# scripts/test builds the target headscope_checked in build/asan, build/tsan and build/fuzz, then runs ctest in build/release.
option(HEADSCOPE_SANITIZED_TESTS "Run the programs of build/asan, build/tsan and build/fuzz as tests too" OFF)

# What a sanitized folder is built for.
add_custom_target(headscope_checked)

# What the libraries need that are not instrumented. Arrow takes its buffers from malloc: a buffer that its own allocator
# hands from one thread to another looks like a race.
set(HEADSCOPE_asan_ENVIRONMENT UBSAN_OPTIONS=print_stacktrace=1)
set(HEADSCOPE_tsan_ENVIRONMENT ARROW_DEFAULT_MEMORY_POOL=system TSAN_OPTIONS=second_deadlock_stack=1)

# headscope_sanitized_tests(PRESET NAME...): the test programs test_NAME of build/PRESET, also as tests PRESET.NAME.
function(headscope_sanitized_tests preset)
  get_filename_component(folder "${CMAKE_BINARY_DIR}" NAME)
  foreach(name ${ARGN})
    if(folder STREQUAL preset)
      add_dependencies(headscope_checked test_${name})
    elseif(HEADSCOPE_SANITIZED_TESTS)
      add_test(NAME ${preset}.${name} COMMAND "${CMAKE_BINARY_DIR}/../${preset}/tests/test_${name}"
        WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
      set_tests_properties(${preset}.${name} PROPERTIES ENVIRONMENT "${HEADSCOPE_${preset}_ENVIRONMENT}")
    endif()
  endforeach()
endfunction()
