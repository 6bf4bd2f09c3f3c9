// Changes one thing inside a Parquet file and puts the rest right: mutated plain bytes rarely get past the footer.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <random>

#include "formats/captured_thrift.h"

using namespace headscope::test;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using Random = std::mt19937;

void collect_numbers(Thrift& value, std::vector<Thrift*>& numbers) {
  if (value.type >= Thrift::byte && value.type <= Thrift::i64) numbers.push_back(&value);
  for (auto& item : value.items) collect_numbers(item, numbers);
  for (auto& [field, inner] : value.fields) collect_numbers(inner, numbers);
}

void change_number(Thrift& tree, Random& random) {
  constexpr std::int64_t i32_most = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t i64_least = std::numeric_limits<std::int64_t>::min();
  constexpr std::array<std::int64_t, 10> nasty = {-1, 0, 1, 2, 8, 255, 1 << 20, i32_most, 1LL << 40, i64_least};
  std::vector<Thrift*> numbers;
  collect_numbers(tree, numbers);
  if (numbers.empty()) return;
  auto& number = numbers[random() % numbers.size()]->number;
  switch (random() % 3) {
    case 0:
      number = nasty[random() % nasty.size()];
      break;
    case 1:
      number = static_cast<std::int64_t>(static_cast<std::uint64_t>(number) + random() % 17 - 8);
      break;
    default:
      number = static_cast<std::int64_t>(random() % 12);
  }
}

void change_body(Page& page, bool compressed, Random& random) {
  std::string& body = page.body;
  const std::size_t size = body.size();
  body.resize(size + 16);
  body.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(body.data()), size, body.size()));
  const auto now = static_cast<std::int64_t>(body.size());
  page.header[page::compressed_size].number = now;
  if (!compressed && random() % 8 != 0) page.header[page::uncompressed_size].number = now;
}

void change_pages(std::vector<Page>& pages, bool compressed, Random& random) {
  if (pages.empty()) return;
  Page& page = pages[random() % pages.size()];
  switch (random() % 6) {
    case 0:
      pages.push_back(Page(page));
      break;
    case 1:
      change_number(page.header, random);
      break;
    default:
      change_body(page, compressed, random);
  }
}

std::string mutated(std::string_view file, Random& random) {
  Thrift tree = footer_of(file);
  auto& groups = tree[footer::row_groups].items;
  if (random() % 32 == 0 && !groups.empty()) groups.push_back(Thrift(groups[random() % groups.size()]));
  std::vector<Thrift*> chunks;
  for (auto& group : groups) {
    for (auto& chunk : group[footer::columns].items) chunks.push_back(&chunk[footer::meta_data]);
  }
  const bool in_pages = random() % 4 != 0 && !chunks.empty();
  const auto chosen = in_pages ? random() % chunks.size() : chunks.size();
  std::string data = "PAR1";
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    auto pages = pages_of(file, *chunks[i]);
    if (i == chosen) change_pages(pages, (*chunks[i])[footer::codec].number != 0, random);
    append_pages(data, *chunks[i], pages);
  }
  if (!in_pages) change_number(tree, random);
  return with_footer(data + std::string(8, '\0'), tree);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  Random random(seed);
  if (random() % 8 != 0) {
    try {
      const std::string file = mutated({reinterpret_cast<const char*>(data), size}, random);
      if (file.size() <= max_size) {
        std::memcpy(data, file.data(), file.size());
        return file.size();
      }
    } catch (const std::exception&) {
      // Too damaged to take apart: mutate the bytes.
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
