#include "data/documents.h"

#include <arrow/util/compression.h>
#include <gtest/gtest.h>

#include "core/atomic_file.h"
#include "formats/text_input.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;
namespace fs = std::filesystem;

std::vector<std::string> documents(const fs::path& file, const std::string& column = "text") {
  std::vector<std::string> all;
  for_each_document(file, column, [&](std::string_view document, const DocumentPlace&) {
    all.emplace_back(document);
    return true;
  });
  return all;
}

std::string packed_by(arrow::Compression::type how, const std::string& text) {
  const auto codec = arrow::util::Codec::Create(how).ValueOrDie();
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  const auto size = static_cast<std::int64_t>(text.size());
  std::string packed(static_cast<std::size_t>(codec->MaxCompressedLen(size, bytes)), '\0');
  auto* out = reinterpret_cast<std::uint8_t*>(packed.data());
  packed.resize(static_cast<std::size_t>(
      codec->Compress(size, bytes, static_cast<std::int64_t>(packed.size()), out).ValueOrDie()));
  return packed;
}
std::string gzip(const std::string& text) {
  return packed_by(arrow::Compression::GZIP, text);
}
std::string zstd(const std::string& text) {
  return packed_by(arrow::Compression::ZSTD, text);
}

TEST(TextFile, IsOneDocumentOrSeveralBetweenSeparators) {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& text) {
    write_file(folder / "a.txt", text);
    return documents(folder / "a.txt");
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(read("one\ntwo\n"), (Texts{"one\ntwo\n"}));
  EXPECT_EQ(read("no line end"), (Texts{"no line end"}));
  EXPECT_EQ(read("one\n<|endoftext|>\ntwo\nmore"), (Texts{"one\n", "two\nmore"}));
  EXPECT_EQ(read("one\n<|endoftext|>\r\n<|endoftext|>\ntwo\n<|endoftext|>"), (Texts{"one\n", "two\n"}));
  EXPECT_EQ(read("one\n <|endoftext|>\n"), (Texts{"one\n <|endoftext|>\n"}));
  EXPECT_EQ(read(""), Texts{});
  const std::string bytes("\x00\xff\n\x80", 4);
  EXPECT_EQ(read(bytes), (Texts{bytes}));
}

TEST(JsonLines, GiveTheFieldOfEachLine) {
  const TemporaryFolder folder;
  write_file(
      folder / "a.jsonl",
      "{\"id\": {\"text\": 1}, \"text\": \"one \\u00e9\\n\"}\r\n\n{\"list\": [{\"text\": \"no\"}], \"text\": \"\"}\n"
      "{\"text\":\"two\",\"body\":\"other\"}");
  EXPECT_EQ(documents(folder / "a.jsonl"), (std::vector<std::string>{"one \u00e9\n", "two"}));
  expect_error(Fault::input, "a.jsonl: line 1: there is no field 'body'",
               [&] { documents(folder / "a.jsonl", "body"); });
}

TEST(JsonLines, ErrorsNameFileAndLine) {
  const TemporaryFolder folder;
  const auto expect = [&](const std::string& line, const std::string& message) {
    write_file(folder / "bad.jsonl", "{\"text\": \"fine\"}\n" + line + "\n{\"text\": \"fine\"}\n");
    expect_error(Fault::input, "bad.jsonl: line 2: " + message, [&] { documents(folder / "bad.jsonl"); });
  };
  expect("{\"text\": 5}", "field 'text' is a number; expected a text");
  expect("{\"text\": null}", "field 'text' is null; expected a text");
  expect("{\"text\": [\"a\"]}", "field 'text' is a list; expected a text");
  expect("{\"text\": {}}", "field 'text' is an object; expected a text");
  expect("{\"Text\": \"a\"}", "there is no field 'text'");
  expect("[]", "is a list; expected an object with the field 'text'");
  expect("\"text\"", "is a text; expected an object");
  expect("{\"text\": \"a\"", "not valid JSON at byte");
  expect("{\"text\": \"a\"} x", "not valid JSON at byte");
  expect("{\"text\": \"\xff\"}", "not valid JSON at byte");
  expect("{\"text\": \"a\", \"n\": 1e999}", "a number near byte");
  expect(std::string(100000, '['), "is a list");
}

TEST(PackedFile, GivesWhatWasPackedInAnyNumberOfParts) {
  const TemporaryFolder folder;
  std::string large;  // more than a few buffers, and it packs well
  for (int i = 0; large.size() < 3'000'000; ++i) large += std::to_string(i % 977) + (i % 50 == 0 ? "\n" : " ");
  write_file(folder / "a.txt.gz", gzip(large) + gzip("") + gzip("the end"));
  write_file(folder / "a.txt.zst", zstd(large) + zstd("") + zstd("the end"));
  write_file(folder / "a.jsonl.gz", gzip("{\"text\": \"a\"}\n{\"te") + gzip("xt\": \"b\"}"));
  for (const char* name : {"a.txt.gz", "a.txt.zst"}) {
    const auto all = documents(folder / name);
    ASSERT_EQ(all.size(), 1U) << name;
    EXPECT_TRUE(all[0] == large + "the end") << name;
  }
  EXPECT_EQ(documents(folder / "a.jsonl.gz"), (std::vector<std::string>{"a", "b"}));
}

TEST(PackedFile, CutAtAnyByteIsRefused) {
  const TemporaryFolder folder;
  for (const auto& [name, packed] :
       {std::pair("a.txt.gz", gzip("some text, some text\n")), std::pair("a.txt.zst", zstd("some text, some text\n"))})
    for (std::size_t size = 0; size < packed.size(); ++size) {
      write_file(folder / name, packed.substr(0, size));
      expect_error(Fault::input, "the packed data is cut short", [&, name = name] { documents(folder / name); });
    }
}

TEST(PackedFile, DamageIsRefused) {
  const TemporaryFolder folder;
  std::string packed = gzip("some text");
  packed[packed.size() - 6] ^= 1;  // of the checksum
  write_file(folder / "a.txt.gz", packed);
  expect_error(Fault::input, "a.txt.gz: the packed data is damaged (incorrect data check)",
               [&] { documents(folder / "a.txt.gz"); });
  write_file(folder / "a.txt.gz", "plain text");
  expect_error(Fault::input, "a.txt.gz: the packed data is damaged", [&] { documents(folder / "a.txt.gz"); });
  write_file(folder / "a.txt.gz", gzip("some text") + "more");
  expect_error(Fault::input, "a.txt.gz: the packed data is damaged", [&] { documents(folder / "a.txt.gz"); });
  write_file(folder / "a.txt.zst", zstd("some text") + "more");
  expect_error(Fault::input, "a.txt.zst: the packed data is damaged", [&] { documents(folder / "a.txt.zst"); });
}

TEST(DocumentFiles, OfAFolderAreSortedAndOthersAreLeftOut) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "texts");
  for (const char* name : {"b.txt", "a.jsonl.gz", "c.parquet", "README.md", "d.txt.zst", "e.bin"})
    write_file(folder / "texts" / name, "x");
  const std::vector<fs::path> paths = {folder / "texts", folder / "texts" / "b.txt"};
  std::vector<std::string> names;
  for (const fs::path& file : document_files(paths)) names.push_back(file.filename().string());
  EXPECT_EQ(names, (std::vector<std::string>{"a.jsonl.gz", "b.txt", "c.parquet", "d.txt.zst", "b.txt"}));
  const auto expect = [&](const fs::path& path, const std::string& message) {
    expect_error(Fault::input, message, [&] { document_files({&path, 1}); });
  };
  expect(folder / "absent", "absent: is not there; expected a file or a folder of text");
  expect(folder / "texts" / "README.md", "README.md: expected a name that ends in .txt");
  fs::create_directories(folder / "empty");
  expect(folder / "empty", "empty: holds no file that ends in .txt");
}

TEST(LineReader, FindsLinesAcrossReads) {
  const TemporaryFolder folder;
  std::vector<std::string> expected;
  std::string text;
  for (std::size_t i = 0; text.size() < 1'000'000; ++i) {  // some reads of 256 KiB
    expected.push_back(std::string(i * i % 70'001, 'x') + "\n");
    text += expected.back();
  }
  expected.push_back("f");
  write_file(folder / "a.txt", text + "f");
  LineReader lines(folder / "a.txt");
  std::vector<std::string> all;
  for (std::string line; lines.next(line);) {
    all.push_back(line);
    EXPECT_EQ(lines.number(), all.size());
  }
  EXPECT_TRUE(all == expected);
}

}  // namespace
}  // namespace headscope
