#include "formats/arrow_input.h"

#include <arrow/buffer.h>
#include <arrow/io/file.h>
#include <arrow/io/memory.h>

#include "core/regular_file.h"

namespace headscope {

std::string reason_of(const std::exception& error) {
  std::string reason = on_one_line(excerpt(error.what()));
  while (reason.ends_with('.') || reason.ends_with(' ')) reason.pop_back();
  return reason;
}

ArrowInput open_input(const std::filesystem::path& file, arrow::MemoryPool& pool) {
  RegularFile opened = open_regular_file(file);
  auto readable = arrow::io::ReadableFile::Open(opened.descriptor.release(), &pool);  // which closes it
  if (!readable.ok()) fail_input("cannot read {}: {}", file.string(), readable.status().message());
  return {std::move(readable).ValueUnsafe(), opened.size};
}

ArrowInput input_of(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return {std::make_shared<arrow::io::BufferReader>(
              std::make_shared<arrow::Buffer>(data, static_cast<std::int64_t>(bytes.size()))),
          bytes.size()};
}

}  // namespace headscope
