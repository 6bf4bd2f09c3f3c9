// Options that every fuzz target needs, so that nobody has to remember them on the command line.
#include <cstdlib>

extern "C" {

// Arrow, fmt and yaml-cpp are not instrumented: containers that they and we both touch look overflowed, falsely.
const char* __asan_default_options() {
  return "detect_container_overflow=0:allocator_may_return_null=1";
}

const char* __ubsan_default_options() {
  return "print_stacktrace=1";
}

// Arrow's buffers from malloc, so that AddressSanitizer watches them; its own allocator hides them.
int LLVMFuzzerInitialize(int*, char***) {
  return ::setenv("ARROW_DEFAULT_MEMORY_POOL", "system", 1);
}
}
