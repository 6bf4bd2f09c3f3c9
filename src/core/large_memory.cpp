#include "core/large_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

namespace headscope {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

}  // namespace

void* allocate_large(std::size_t bytes) {
  void* memory = nullptr;
  if (bytes < 2 * huge_page) {
    memory = std::malloc(bytes);
  } else if (::posix_memalign(&memory, huge_page, bytes) == 0) {
    advise_huge_pages(memory, bytes);
  } else {
    memory = nullptr;
  }
  if (memory == nullptr && bytes > 0) throw std::bad_alloc();
  return memory;
}

void free_large(void* memory) noexcept {
  std::free(memory);
}

void advise_huge_pages(void* memory, std::size_t bytes) {
  // Whole pages inside the array: the pages at its ends may hold other data, too.
  const auto begin = (reinterpret_cast<std::uintptr_t>(memory) + huge_page - 1) / huge_page * huge_page;
  const auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / huge_page * huge_page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace headscope
