#include "ops/large_tensors.h"

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "core/large_memory.h"

namespace headscope {
namespace {

struct Pages {
  void* memory = nullptr;
  std::size_t bytes = 0;
};

void release(const Pages& pages) {
  ::munmap(pages.memory, pages.bytes);
}

// Torch's allocator is one for the process, and so is this.
class PageAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes < LargeTensors::smallest) return c10::GetDefaultCPUAllocator()->allocate(bytes);
    constexpr std::size_t step = std::size_t{64} << 10;  // whole pages, on any machine
    void* memory = taken((bytes + step - 1) / step * step);
    if (memory == nullptr) return c10::GetDefaultCPUAllocator()->allocate(bytes);  // has an error for it
    return {memory, memory, &give_back, c10::Device(c10::kCPU)};
  }

  // Operations of oneDNN take raw memory, small and large.
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return &give_back; }

  void copy_data(void* to, const void* from, std::size_t count) const override { default_copy_data(to, from, count); }

  // Keeps at most so many bytes from now on.
  void keep(std::size_t most) {
    const std::lock_guard lock(mutex_);
    most_ = most;
    drop_oldest();
  }

  [[nodiscard]] std::size_t kept() const {
    const std::lock_guard lock(mutex_);
    return kept_;
  }

 private:
  static void give_back(void* memory);

  // The smallest that are large enough and waste less than a quarter; otherwise new ones.
  void* taken(std::size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      auto best = free_.end();
      for (auto one = free_.begin(); one != free_.end(); ++one)
        if (one->bytes >= bytes && one->bytes - bytes < bytes / 4 && (best == free_.end() || one->bytes < best->bytes))
          best = one;
      if (best != free_.end()) {
        const Pages found = *best;
        free_.erase(best);
        kept_ -= found.bytes;
        in_use_.emplace(found.memory, found.bytes);
        return found.memory;
      }
    }
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    advise_huge_pages(memory, bytes);
    const std::lock_guard lock(mutex_);
    in_use_.emplace(memory, bytes);
    return memory;
  }

  // False where the memory is not ours.
  bool put(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto found = in_use_.find(memory);
    if (found == in_use_.end()) return false;
    free_.push_back({memory, found->second});
    kept_ += found->second;
    in_use_.erase(found);
    drop_oldest();
    return true;
  }

  void drop_oldest() {
    std::size_t dropped = 0;
    for (; kept_ > most_; ++dropped) {
      kept_ -= free_[dropped].bytes;
      release(free_[dropped]);
    }
    free_.erase(free_.begin(), free_.begin() + static_cast<std::ptrdiff_t>(dropped));
  }

  mutable std::mutex mutex_;
  std::unordered_map<void*, std::size_t> in_use_;  // bytes
  std::vector<Pages> free_;                        // the oldest first; some dozens
  std::size_t kept_ = 0, most_ = 0;
};

std::atomic<int> objects = 0;  // LargeTensors that live

// Lives as long as the process: tensors of static lifetime give their pages back to it.
PageAllocator& page_allocator() {
  static auto& allocator = *new PageAllocator;
  return allocator;
}

void PageAllocator::give_back(void* memory) {
  if (!page_allocator().put(memory)) c10::GetDefaultCPUAllocator()->raw_deleter()(memory);
}

}  // namespace

LargeTensors::LargeTensors() {
  if (objects++ > 0) return;
  page_allocator().keep(most_kept);
  c10::SetCPUAllocator(&page_allocator());
}

LargeTensors::~LargeTensors() {
  if (--objects > 0) return;
  c10::SetCPUAllocator(c10::GetDefaultCPUAllocator());
  page_allocator().keep(0);
}

std::size_t LargeTensors::kept() const {
  return page_allocator().kept();
}

}  // namespace headscope
