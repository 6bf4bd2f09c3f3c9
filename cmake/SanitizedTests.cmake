# The tests again under sanitizers, and short fuzz runs, as tests of build/release: one ctest run covers everything.
# scripts/test builds the target headscope_checked in build/asan and build/fuzz, then runs ctest in build/release.
option(HEADSCOPE_SANITIZED_TESTS "Run the programs of build/asan and build/fuzz as tests too" OFF)

# What a sanitized folder is built for.
add_custom_target(headscope_checked)

# headscope_sanitized_tests(NAME...): the test programs test_NAME, also under AddressSanitizer.
function(headscope_sanitized_tests)
  foreach(name ${ARGN})
    if(HEADSCOPE_SANITIZE)
      add_dependencies(headscope_checked test_${name})
    elseif(HEADSCOPE_SANITIZED_TESTS)
      add_test(NAME asan.${name} COMMAND "${CMAKE_BINARY_DIR}/../asan/tests/test_${name}"
        WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
      set_tests_properties(asan.${name} PROPERTIES ENVIRONMENT "UBSAN_OPTIONS=print_stacktrace=1")
    endif()
  endforeach()
endfunction()
