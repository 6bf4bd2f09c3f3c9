# The tests again under sanitizers, and short fuzz runs, as tests of build/release: one ctest run covers everything.
# scripts/test builds the target headscope_checked in build/asan and build/fuzz, then runs ctest in build/release.
option(HEADSCOPE_SANITIZED_TESTS "Run the programs of build/asan and build/fuzz as tests too" OFF)

# What a sanitized folder is built for.
add_custom_target(headscope_checked)

# Our libraries tell the fuzzer which branches an input took; only a fuzzer itself gets libFuzzer's main.
if(HEADSCOPE_FUZZ)
  target_compile_options(headscope_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# headscope_sanitized_tests(NAME...): the test programs test_NAME, also under AddressSanitizer.
function(headscope_sanitized_tests)
  foreach(name ${ARGN})
    if(NOT TARGET test_${name})
      continue()
    endif()
    if(HEADSCOPE_SANITIZE)
      add_dependencies(headscope_checked test_${name})
    elseif(HEADSCOPE_SANITIZED_TESTS)
      add_test(NAME asan.${name} COMMAND "${CMAKE_BINARY_DIR}/../asan/tests/test_${name}"
        WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
      set_tests_properties(asan.${name} PROPERTIES ENVIRONMENT "UBSAN_OPTIONS=print_stacktrace=1")
    endif()
  endforeach()
endfunction()

# headscope_fuzzer(NAME LINKS target...): the fuzzer in tests/fuzz/NAME.cpp, started from the files in
# tests/fuzz/corpus/NAME if there are any. Inputs that reach new code are kept in build/fuzz/corpus/NAME, and tried first
# next time; one that fails is build/fuzz/NAME-crash-*.
function(headscope_fuzzer name)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  if(HEADSCOPE_FUZZ)
    add_executable(fuzz_${name} "${CMAKE_SOURCE_DIR}/tests/fuzz/${name}.cpp")
    target_link_libraries(fuzz_${name} PRIVATE headscope_flags ${ARG_LINKS})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(headscope_checked fuzz_${name})
  elseif(HEADSCOPE_SANITIZED_TESTS)
    set(folder "${CMAKE_BINARY_DIR}/../fuzz")
    set(corpora "${folder}/corpus/${name}")
    file(MAKE_DIRECTORY "${corpora}")
    if(EXISTS "${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name}")
      list(APPEND corpora "${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name}")
    endif()
    # 20,000 inputs take a few seconds; the time limit is for slow machines, and a longer hunt is run by hand.
    add_test(NAME fuzz.${name} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}"
      COMMAND "${folder}/tests/fuzz/fuzz_${name}" -seed=1 -runs=20000 -max_total_time=20 -timeout=10 -verbosity=0
        "-artifact_prefix=${folder}/${name}-" ${corpora})
  endif()
endfunction()
