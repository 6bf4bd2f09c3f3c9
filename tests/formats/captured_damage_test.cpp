// Damaged capture files: whatever the bytes, the reader refuses with one line or reads; it never crashes, hangs or
// takes memory because a number in the file asks for it.
#include <arrow/util/compression.h>
#include <arrow/util/secure_string.h>
#include <gmock/gmock.h>
#include <parquet/encryption/encryption.h>
#include <sys/resource.h>

#include <array>

#include "formats/captured_files.h"

namespace headscope::test {
namespace {

using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using Properties = parquet::WriterProperties::Builder;

// Reads or refuses with one line. Returns whether it was refused.
bool survives(std::string_view bytes) {
  try {
    const auto captured = parse(bytes);
    EXPECT_EQ(captured.vector32.size() + captured.vector64.size(), captured.rows * captured.dim);
    EXPECT_EQ(captured.bucket.size(), captured.rows);
    return false;
  } catch (const Error& error) {
    const std::string line = error.what();
    EXPECT_EQ(error.fault(), Fault::input) << line;
    EXPECT_EQ(line.find_first_of("\n\r\t"), std::string::npos) << line;
    return true;
  }
}

std::string checksummed() {
  return Capture(50, 4).write([](Properties& p) { p.enable_page_checksum(); });
}

TEST(CapturedDamage, FilesThatAreNotParquet) {
  EXPECT_THAT(refusal(""), EndsWith("the file is empty, expected a Parquet file"));
  EXPECT_THAT(refusal("bucket,position\n1,2\n"),
              EndsWith("not a Parquet file: it starts with 'buck', expected 'PAR1'"));
  EXPECT_THAT(refusal("PA"), HasSubstr("not a Parquet file: it starts with 'PA'"));
  EXPECT_THAT(refusal(std::string("\0\n\x1b\xff", 4)), HasSubstr("not a Parquet file"));
  EXPECT_THAT(refusal("PAR1"), HasSubstr("cut short: 4 bytes that do not end with 'PAR1'"));
  EXPECT_THAT(refusal("PAR1PAR1"), HasSubstr("cut short"));
  EXPECT_THAT(refusal(std::string("PAR1\0\0\0\0PAR1", 12)), HasSubstr("the footer claims 0 bytes"));
}

TEST(CapturedDamage, FilesCutShortAtEveryByte) {
  const std::string file = Capture(3, 2).write();
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_TRUE(survives(std::string_view(file).substr(0, size))) << size;
  }
  EXPECT_THAT(refusal(std::string_view(file).substr(0, file.size() - 1)), HasSubstr("the file is cut short"));
}

TEST(CapturedDamage, FilesWithAByteMissingInside) {
  // Without the page index, which lies between pages and footer and is not read.
  const std::string file = Capture(3, 2).write([](Properties& p) { p.disable_write_page_index(); });
  for (std::size_t at = 4; at + 8 < file.size(); ++at) {
    EXPECT_TRUE(survives(std::string(file).erase(at, 1))) << at;
  }
}

TEST(CapturedDamage, EveryByteFlippedWithoutChecksums) {
  for (const auto page_version : {parquet::ParquetDataPageVersion::V1, parquet::ParquetDataPageVersion::V2}) {
    for (const auto codec : {parquet::Compression::UNCOMPRESSED, parquet::Compression::ZSTD,
                             parquet::Compression::SNAPPY, parquet::Compression::GZIP, parquet::Compression::LZ4}) {
      std::string file =
          Capture(5, 3).write([&](Properties& p) { p.data_page_version(page_version)->compression(codec); });
      for (std::size_t at = 0; at < file.size(); ++at) {
        for (const int flip : {0x01, 0x80, 0xff}) {
          file[at] = static_cast<char>(file[at] ^ flip);
          survives(file);
          file[at] = static_cast<char>(file[at] ^ flip);
        }
      }
    }
  }
}

TEST(CapturedDamage, AChecksumFindsEveryFlippedByteOfAPage) {
  const std::string file = checksummed();
  for (const std::string column : {"vector", "bucket", "position", "example_id", "sliding_window"}) {
    auto pages = pages_of(file, column);
    for (auto& one : pages) {
      ASSERT_TRUE(one.header.has(page::crc));
      for (char& byte : one.body) {
        byte = static_cast<char>(byte ^ 0x10);
        EXPECT_THAT(refusal(with_pages(file, column, pages)),
                    ::testing::AllOf(HasSubstr("column '" + column + "'"), HasSubstr("checksum")));
        byte = static_cast<char>(byte ^ 0x10);
      }
    }
    expect_capture(parse(with_pages(file, column, pages)), 50, 4);  // the taking apart itself changes nothing
  }
}

// ---- Footers that lie.

TEST(CapturedDamage, FootersOfAnotherLength) {
  std::string file = Capture().write();
  const std::size_t at = file.size() - 8;
  for (const std::uint32_t claim : {0U, 1U, 7U, 0x7fffffffU, 0x80000000U, 0xffffffffU, std::uint32_t(file.size())}) {
    file.replace(at, 4, reinterpret_cast<const char*>(&claim), 4);
    EXPECT_TRUE(survives(file)) << claim;
  }
  EXPECT_THAT(refusal(file), HasSubstr("damaged: the footer claims"));

  const std::string longer = Capture().write();
  const auto size = static_cast<std::uint32_t>(footer_of(longer).serialise().size() + 3);
  const std::string length(reinterpret_cast<const char*>(&size), sizeof(size));
  EXPECT_THAT(refusal(longer.substr(0, longer.size() - 8) + "abc" + length + "PAR1"),
              EndsWith(fmt::format("damaged: the footer takes {} bytes, its length says {}", size - 3, size)));
}

TEST(CapturedDamage, WrongNumbersOfRows) {
  const std::string file = Capture(20, 3).write();
  for (const std::int64_t claim : {-1LL, 19LL, 21LL, 1LL << 31, 1LL << 60}) {
    EXPECT_THAT(refusal(with_footer(file, [&](Thrift& tree) { tree[footer::num_rows].number = claim; })),
                EndsWith(fmt::format("damaged: the footer promises {} rows, its row groups 20", claim)));
    const auto both = with_footer(file, [&](Thrift& tree) {
      tree[footer::num_rows].number = claim;
      tree[footer::row_groups].items.at(0)[footer::group_rows].number = claim;
    });
    EXPECT_THAT(refusal(both), HasSubstr("damaged: ")) << claim;
  }
  // Rows and values agree with each other, the pages with neither.
  for (const std::int64_t claim : {10LL, 30LL, 100000LL}) {
    const auto consistent = with_footer(file, [&](Thrift& tree) {
      tree[footer::num_rows].number = claim;
      tree[footer::row_groups].items.at(0)[footer::group_rows].number = claim;
      for (const char* name : {"bucket", "position", "example_id", "sliding_window"}) {
        column_of(tree, name)[footer::num_values].number = claim;
      }
      column_of(tree, "vector")[footer::num_values].number = claim * 3;
    });
    EXPECT_THAT(refusal(consistent),
                AnyOf(HasSubstr("that the footer promises"), HasSubstr("the footer gives its pages")));
  }
  // The vectors alone lie: the right number of values in another number of rows.
  const auto rows = with_footer(Capture(20, 3)
                                    .set("vector", arrow::list(arrow::float32()),
                                         [] {
                                           std::string json = "[";
                                           for (int i = 0; i < 20; ++i) json += i > 0 ? ",[1,2]" : "[1,2]";
                                           return json + "]";
                                         }())
                                    .write(),
                                [](Thrift& tree) {
                                  tree[footer::num_rows].number = 40;
                                  tree[footer::row_groups].items.at(0)[footer::group_rows].number = 40;
                                });
  EXPECT_THAT(refusal(rows),
              HasSubstr("damaged: column 'bucket', row group 0: the footer promises 20 values in 40 rows"));
}

TEST(CapturedDamage, ClaimsTooLargeForTheFileTakeNoMemory) {
  struct rusage before {};
  ::getrusage(RUSAGE_SELF, &before);
  const std::string file = Capture(20, 3).write();
  for (const long long claim : {1LL << 28, 1LL << 34, 1LL << 60, (1LL << 62) + 1}) {
    const auto lying = with_footer(file, [&](Thrift& tree) {
      tree[footer::num_rows].number = claim;
      tree[footer::row_groups].items.at(0)[footer::group_rows].number = claim;
      for (auto& chunk : tree[footer::row_groups].items.at(0)[footer::columns].items) {
        chunk[footer::meta_data][footer::num_values].number = claim;
      }
    });
    EXPECT_THAT(refusal(lying),
                HasSubstr(fmt::format("damaged: the footer promises {} rows in row group 0, impossible in", claim)));
    const auto values =
        with_footer(file, [&](Thrift& tree) { column_of(tree, "vector")[footer::num_values].number = claim; });
    EXPECT_THAT(refusal(values), HasSubstr("too many for a file of"));
    const auto size = with_footer(file, [&](Thrift& tree) {
      column_of(tree, "vector")[footer::uncompressed_size].number = std::max(claim, 1LL << 30);
    });
    EXPECT_THAT(refusal(size), HasSubstr("too many for a file of"));
  }
  struct rusage after {};
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 * 1024) << "KiB";
}

TEST(CapturedDamage, PagesOutsideTheFile) {
  const std::string file = Capture(20, 3).write([](Properties& p) { p.disable_dictionary(); });
  const auto end = static_cast<std::int64_t>(file.size());
  for (const std::int64_t offset : std::initializer_list<std::int64_t>{-1, 0, 3, end - 9, 1LL << 40, 1LL << 62}) {
    EXPECT_THAT(
        refusal(with_footer(
            file, [&](Thrift& tree) { column_of(tree, "position")[footer::data_page_offset].number = offset; })),
        HasSubstr("damaged: column 'position', row group 0: the footer puts its pages at byte"));
  }
  for (const std::int64_t size : {-1LL, 0LL, 1LL << 40, std::numeric_limits<long long>::max()}) {
    EXPECT_THAT(refusal(with_footer(
                    file, [&](Thrift& tree) { column_of(tree, "position")[footer::compressed_size].number = size; })),
                HasSubstr("damaged: column 'position', row group 0: the footer puts its pages at byte"));
  }
  // Another column's pages: they are valid, and are of another size or type.
  EXPECT_TRUE(survives(with_footer(file, [&](Thrift& tree) {
    column_of(tree, "vector")[footer::data_page_offset].number =
        column_of(tree, "position")[footer::data_page_offset].number;
  })));
}

TEST(CapturedDamage, WrongTotalSizes) {
  const std::string file = Capture(20, 3).write([](Properties& p) { p.disable_dictionary(); });
  for (const std::string column : {"bucket", "vector"}) {
    for (const int difference : {-20, -1, 1, 20}) {
      EXPECT_THAT(
          refusal(with_footer(
              file, [&](Thrift& tree) { column_of(tree, column)[footer::compressed_size].number += difference; })),
          HasSubstr("column '" + column + "'"))
          << difference;
    }
    EXPECT_THAT(refusal(with_footer(
                    file, [&](Thrift& tree) { column_of(tree, column)[footer::uncompressed_size].number = 9; })),
                HasSubstr("the pages hold more than the 9 bytes that the footer promises"));
  }
}

TEST(CapturedDamage, ChunksThatOverlap) {
  // Thousands of row groups on the same bytes would be hours of work.
  for (const int groups : {3, 9000}) {
    const auto file = with_footer(Capture(2000, 3).write(), [&](Thrift& tree) {
      auto& all = tree[footer::row_groups].items;
      const Thrift group = all.at(0);
      for (int i = 1; i < groups; ++i) all.push_back(group);
      tree[footer::num_rows].number *= groups;
    });
    EXPECT_THAT(refusal(file), AnyOf(HasSubstr("the footer gives the columns more bytes than the file has"),
                                     HasSubstr(groups > 3 ? "too many for a file of" : "?")));
  }
}

void change_numbers(Thrift& value, const std::function<void(Thrift&)>& visit) {
  if (value.type >= Thrift::byte && value.type <= Thrift::i64) visit(value);
  for (auto& item : value.items) change_numbers(item, visit);
  for (auto& [field, inner] : value.fields) change_numbers(inner, visit);
}

constexpr std::array<std::int64_t, 12> nasty = {-1,
                                                0,
                                                1,
                                                2,
                                                3,
                                                255,
                                                65536,
                                                (1LL << 31) - 1,
                                                -(1LL << 31),
                                                1LL << 40,
                                                1LL << 62,
                                                std::numeric_limits<std::int64_t>::min()};

TEST(CapturedDamage, EveryNumberOfTheFooterReplaced) {
  for (const bool v2 : {false, true}) {
    const std::string file = Capture(5, 3).write([&](Properties& p) {
      if (v2) p.data_page_version(parquet::ParquetDataPageVersion::V2);
    });
    Thrift tree = footer_of(file);
    change_numbers(tree, [&](Thrift& value) {
      const std::int64_t right = value.number;
      for (const std::int64_t wrong : nasty) {
        value.number = wrong;
        survives(with_footer(file, tree));
      }
      for (const std::int64_t step : {-1, 1}) {
        value.number = right + step;
        survives(with_footer(file, tree));
      }
      value.number = right;
    });
  }
}

TEST(CapturedDamage, EveryNumberOfEveryPageHeaderReplaced) {
  for (const bool v2 : {false, true}) {
    for (const bool dictionary : {false, true}) {
      const std::string file = Capture(5, 3).write([&](Properties& p) {
        if (v2) p.data_page_version(parquet::ParquetDataPageVersion::V2);
        if (!dictionary) p.disable_dictionary();
      });
      for (const std::string column : {"vector", "position", "sliding_window"}) {
        auto pages = pages_of(file, column);
        for (auto& one : pages) {
          change_numbers(one.header, [&](Thrift& value) {
            const std::int64_t right = value.number;
            for (const std::int64_t wrong : nasty) {
              value.number = wrong;
              survives(with_pages(file, column, pages));
            }
            for (const std::int64_t step : {-1, 1}) {
              value.number = right + step;
              survives(with_pages(file, column, pages));
            }
            value.number = right;
          });
        }
      }
    }
  }
}

TEST(CapturedDamage, PagesThatAreNotAsLargeAsTheySay) {
  const std::string file = Capture(50, 4).write([](Properties& p) { p.disable_dictionary(); });
  auto pages = pages_of(file, "vector");
  ASSERT_EQ(pages.size(), 1U);
  const std::int64_t size = pages[0].header[page::uncompressed_size].number;
  for (const std::int64_t claim : {std::int64_t{1}, size - 1, size + 1}) {
    pages[0].header[page::uncompressed_size].number = claim;
    EXPECT_THAT(refusal(with_pages(file, "vector", pages)), HasSubstr("column 'vector'")) << claim;
  }
  pages[0].header[page::uncompressed_size].number = std::numeric_limits<std::int32_t>::max();
  EXPECT_THAT(refusal(with_pages(file, "vector", pages)), HasSubstr("more than a file of this size can mean"));
}

TEST(CapturedDamage, APagePackedSmallThatGrowsLarge) {
  // A page of a few KiB that decompresses to 64 MiB, with a header that says so and one that does not.
  const std::string file = Capture(50, 4).write([](Properties& p) { p.disable_dictionary(); });
  auto pages = pages_of(file, "vector");
  const std::string zeros(std::size_t{64} << 20, '\0');
  const auto codec = arrow::util::Codec::Create(arrow::Compression::ZSTD).ValueOrDie();
  const auto* input = reinterpret_cast<const std::uint8_t*>(zeros.data());
  const auto length = static_cast<std::int64_t>(zeros.size());
  std::string packed(static_cast<std::size_t>(codec->MaxCompressedLen(length, input)), '\0');
  packed.resize(static_cast<std::size_t>(codec
                                             ->Compress(length, input, static_cast<std::int64_t>(packed.size()),
                                                        reinterpret_cast<std::uint8_t*>(packed.data()))
                                             .ValueOrDie()));
  ASSERT_LT(packed.size(), 10000U);
  pages[0].body = packed;
  pages[0].header[page::compressed_size].number = static_cast<std::int64_t>(packed.size());
  EXPECT_THAT(refusal(with_pages(file, "vector", pages)), HasSubstr("column 'vector': damaged: "));
  pages[0].header[page::uncompressed_size].number = length;
  EXPECT_THAT(refusal(with_pages(file, "vector", pages)), HasSubstr("the pages hold more than the"));
}

TEST(CapturedDamage, DictionariesThatAreMissingOrDoubled) {
  const std::string file = Capture(50, 4).write();
  auto pages = pages_of(file, "position");
  ASSERT_EQ(pages.size(), 2U);
  EXPECT_THAT(refusal(with_pages(file, "position", {pages[1]})),
              HasSubstr("column 'position': damaged: Dictionary page must be before data page"));
  const auto doubled = with_footer(with_pages(file, "position", {pages[0], pages[0], pages[1]}), [](Thrift& tree) {
    column_of(tree, "position")[footer::uncompressed_size].number *= 2;
  });
  EXPECT_THAT(refusal(doubled), HasSubstr("Column cannot have more than one dictionary"));
  auto small = pages;
  small[0].header[page::dictionary][page::num_values].number -= 1;
  EXPECT_THAT(refusal(with_pages(file, "position", small)), HasSubstr("column 'position': damaged: "));
}

TEST(CapturedDamage, PagesWithFewerValuesThanTheirHeadersSay) {
  const auto plain = [](Properties& p) { p.disable_dictionary()->compression(parquet::Compression::UNCOMPRESSED); };
  const auto split = [&](Properties& p) {
    plain(p);
    p.encoding("position", parquet::Encoding::BYTE_STREAM_SPLIT);
  };
  for (const auto& change : {Capture::Change(plain), Capture::Change(split)}) {
    const std::string file = Capture(50, 4).write(change);
    auto pages = pages_of(file, "position");
    ASSERT_EQ(pages.size(), 1U);
    pages[0].body.resize(pages[0].body.size() - 8);
    for (const int size : {page::compressed_size, page::uncompressed_size}) pages[0].header[size].number -= 8;
    EXPECT_THAT(refusal(with_pages(file, "position", pages)), HasSubstr("column 'position': damaged: "));
  }

  const std::string file = Capture(50, 4).nullable(false).write([&](Properties& p) {
    plain(p);
    p.encoding("position", parquet::Encoding::DELTA_BINARY_PACKED);
  });
  auto pages = pages_of(file, "position");
  ASSERT_EQ(pages[0].body.at(3), 50);  // block size 128 (two bytes), miniblocks, count
  pages[0].body[3] = 49;
  EXPECT_THAT(refusal(with_pages(file, "position", pages)), HasSubstr("column 'position': damaged: "));
}

// One page of vectors: two rows of two components, all of them there. Its levels are in `body` as four bytes of length
// and the runs, first of repetition, then of definition.
Page page_of_vectors(std::string_view file) {
  const auto pages = pages_of(file, "vector");
  EXPECT_EQ(pages.size(), 1U);
  return pages.at(0);
}

TEST(CapturedDamage, LevelsThatEndEarlyOrAreImpossible) {
  const std::string file = Capture(2, 2).write(
      [](Properties& p) { p.disable_dictionary()->compression(parquet::Compression::UNCOMPRESSED); });
  const Page good = page_of_vectors(file);
  // Repetition 0 1 0 1 as one packed group; definition 3 3 3 3 as a run.
  ASSERT_EQ(good.body.substr(0, 12), std::string("\2\0\0\0\3\12\2\0\0\0\10\3", 12));
  const auto with_levels = [&](std::size_t at, const std::string& bytes) {
    Page changed = good;
    changed.body.replace(at, bytes.size(), bytes);
    return with_pages(file, "vector", {changed});
  };
  expect_capture(parse(with_levels(5, "\12")), 2, 2);
  for (const std::string& bad : {
           with_levels(4, {"\4\1", 2}),      // two repetition levels
           with_levels(4, {"\1\1", 2}),      // a group of none
           with_levels(4, {"\200\200", 2}),  // a length without end
           with_levels(4, {"\10\2", 2}),     // 2 where at most 1 is possible
           with_levels(10, {"\6\3", 2}),     // three definition levels
           with_levels(10, {"\10\4", 2}),    // 4 where at most 3 is possible
           with_levels(0, {"\377\377\377\177", 4}),
           with_levels(6, {"\377\377\377\377", 4}),
       }) {
    EXPECT_THAT(refusal(bad), HasSubstr("column 'vector': damaged: "));
  }
  EXPECT_THAT(refusal(with_levels(5, "\13")), HasSubstr("damaged: the first page starts in the middle of row 0"));
  EXPECT_THAT(refusal(with_levels(5, "\16")), HasSubstr("damaged: 1 rows where the footer promises 2"));
}

TEST(CapturedDamage, ARowGroupStartsWithARow) {
  const std::string file = Capture(4, 2).write(
      [](Properties& p) { p.disable_dictionary()->compression(parquet::Compression::UNCOMPRESSED); }, 2);
  std::string changed = file;
  const std::string levels("\2\0\0\0\3\12\2\0\0\0\10\3", 12);
  const std::size_t second = changed.find(levels, changed.find(levels) + 1);
  ASSERT_NE(second, std::string::npos);
  changed[second + 5] = '\13';
  EXPECT_THAT(refusal(changed), HasSubstr("damaged: the first page starts in the middle of row 2"));
}

TEST(CapturedDamage, VectorsOfAnotherNumberOfRows) {
  // Eighty components either way.
  const auto file = with_pages(Capture(40, 2).write(), "vector", pages_of(Capture(20, 4).write(), "vector"));
  EXPECT_THAT(refusal(with_footer(
                  file, [](Thrift& tree) { column_of(tree, "vector")[footer::uncompressed_size].number *= 2; })),
              EndsWith("column 'vector': damaged: 20 rows where the footer promises 40"));
}

TEST(CapturedDamage, EncodingsThatAreNotForNumbers) {
  const std::string file = Capture(50, 4).write([](Properties& p) { p.disable_dictionary(); });
  auto pages = pages_of(file, "position");
  pages[0].header[page::data][page::encoding].number = 7;  // DELTA_BYTE_ARRAY
  EXPECT_THAT(refusal(with_pages(file, "position", pages)),
              HasSubstr("column 'position': damaged: DELTA_BYTE_ARRAY only supports"));
  pages = pages_of(file, "vector");
  pages[0].header[page::data][page::definition_encoding].number = 4;  // BIT_PACKED
  EXPECT_THAT(refusal(with_pages(file, "vector", pages)),
              HasSubstr("levels of a page are in encoding BIT_PACKED, expected RLE"));
}

TEST(CapturedDamage, DeepSchemasDoNotOverflowTheStack) {
  for (const int depth : {1000, 9000, 100000}) {
    const auto file = with_footer(Capture().write(), [&](Thrift& tree) {
      auto& schema = tree[footer::schema].items;
      for (auto& element : schema) {
        if (element[4].bytes == "token_str") {
          element.fields.clear();
          element[3].type = Thrift::i32;
          element[4].type = Thrift::text;
          element[4].bytes = "x";
          element[5].type = Thrift::i32;
          element[5].number = 1;
          const Thrift group = element;
          const Thrift leaf = schema.back();
          const auto at = &element - schema.data();
          schema.insert(schema.begin() + at, static_cast<std::size_t>(depth), group);
          schema.insert(schema.begin() + at + depth + 1, leaf);
          break;
        }
      }
    });
    survives(file);
  }
}

TEST(CapturedDamage, EncryptedFilesAreCalledThat) {
  std::string file = Capture().write();
  EXPECT_THAT(refusal("PARE" + file.substr(4)), EndsWith("the file is encrypted; write it without encryption"));
  for (const bool plaintext_footer : {false, true}) {
    const std::string encrypted = Capture().write([&](Properties& p) {
      const arrow::util::SecureString secret(std::string("0123456789012345"));
      parquet::FileEncryptionProperties::Builder builder(secret);
      if (plaintext_footer) builder.set_plaintext_footer();
      p.encryption(builder.build());
    });
    EXPECT_THAT(refusal(encrypted), EndsWith("encrypted; write it without encryption"));
  }
}

TEST(CapturedDamage, PagesInAnotherFile) {
  const auto file = with_footer(Capture().write(), [](Thrift& tree) {
    for (auto& chunk : tree[footer::row_groups].items.at(0)[footer::columns].items) {
      chunk[footer::file_path].type = Thrift::text;
      chunk[footer::file_path].bytes = "../other\n.parquet";
    }
  });
  EXPECT_THAT(refusal(file), HasSubstr("its pages are in another file (../other .parquet)"));
}

}  // namespace
}  // namespace headscope::test
