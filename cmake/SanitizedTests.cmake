# The tests again under sanitizers, and short fuzz runs, as tests of build/release: one ctest run covers everything.
# scripts/test builds the programs (headscope_checked in build/asan, tests/fuzz/all in build/fuzz) and runs that ctest.
option(HEADSCOPE_SANITIZED_TESTS "Run the programs of build/asan and build/fuzz as tests too" OFF)

# headscope_sanitized_tests(NAME...): test_NAME also under AddressSanitizer and UndefinedBehaviorSanitizer.
function(headscope_sanitized_tests)
  if(HEADSCOPE_SANITIZE)
    add_custom_target(headscope_checked)
  endif()
  foreach(name ${ARGN})
    if(NOT TARGET test_${name})
      continue()
    elseif(HEADSCOPE_SANITIZE)
      add_dependencies(headscope_checked test_${name})
    elseif(HEADSCOPE_SANITIZED_TESTS)
      add_test(NAME asan.${name} COMMAND "${CMAKE_SOURCE_DIR}/build/asan/tests/test_${name}"
        WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
      # Arrow's buffers from malloc, so that AddressSanitizer watches them; its own allocator hides them.
      set_tests_properties(asan.${name} PROPERTIES
        ENVIRONMENT "UBSAN_OPTIONS=print_stacktrace=1;ARROW_DEFAULT_MEMORY_POOL=system")
    endif()
  endforeach()
endfunction()

# headscope_fuzz_runs(): a short run of every fuzzer in tests/fuzz, from its stored corpus and whatever earlier runs
# found: inputs that reached new code are kept in build/fuzz/corpus/NAME, one that failed is build/fuzz/NAME-crash-*.
function(headscope_fuzz_runs)
  if(NOT HEADSCOPE_SANITIZED_TESTS)
    return()
  endif()
  set(folder "${CMAKE_SOURCE_DIR}/build/fuzz")
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/tests/fuzz/*_fuzz.cpp")
  foreach(source ${sources})
    string(REGEX REPLACE ".*/(.*)_fuzz\\.cpp" "\\1" name "${source}")
    file(MAKE_DIRECTORY "${folder}/corpus/${name}")
    # 20,000 inputs take some seconds; the time limit is for slow machines. A longer hunt is run by hand.
    add_test(NAME fuzz.${name} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}"
      COMMAND "${folder}/tests/fuzz/fuzz_${name}" -seed=1 -runs=20000 -max_total_time=20
        -max_len=4096 -timeout=10 -rss_limit_mb=2048 "-artifact_prefix=${folder}/${name}-"
        "${folder}/corpus/${name}" "${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name}")
  endforeach()
endfunction()
