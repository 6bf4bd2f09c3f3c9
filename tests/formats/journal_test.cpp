#include "formats/journal.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/atomic_file.h"
#include "support/expect_error.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"
#include "support/time_limit.h"

namespace headscope {
namespace {

using test::expect_error;
using test::FileSizeLimit;
using test::TemporaryFolder;
namespace fs = std::filesystem;

TEST(Journal, KeepsWholeRecordsWhereverTheFileIsCut) {
  const TemporaryFolder folder;
  const std::vector<std::string> records = {"first", "", std::string("\0\n\xff", 3), std::string(1000, 'x')};
  {
    Journal journal(folder / "j");
    for (const std::string& record : records) journal.append(record);
  }
  const std::string whole = read_file(folder / "j");
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    const JournalContent content = parse_journal(std::string_view(whole).substr(0, cut));
    ASSERT_LE(content.length, cut);
    ASSERT_LE(content.records.size(), records.size());
    for (std::size_t i = 0; i < content.records.size(); ++i) ASSERT_EQ(content.records[i], records[i]);
    ASSERT_EQ(content.records.size() == records.size(), cut == whole.size());
  }
}

TEST(Journal, ATornEndIsCutOffAndWritingGoesOn) {
  const TemporaryFolder folder;
  { Journal(folder / "j").append("kept"); }
  const std::string whole = read_file(folder / "j");
  write_file(folder / "j", whole + "torn");
  {
    Journal journal(folder / "j");
    EXPECT_EQ(journal.records(), std::vector<std::string>{"kept"});
    journal.append("next");
  }
  EXPECT_EQ(Journal(folder / "j").records(), (std::vector<std::string>{"kept", "next"}));
}

TEST(Journal, ALinkIsRefusedAndItsTargetKept) {
  const TemporaryFolder folder;
  write_file(folder / "thesis.tex", "years of work");
  fs::create_symlink(folder / "thesis.tex", folder / "j");
  expect_error(Fault::input, "j: is a symbolic link", [&] { Journal(folder / "j"); });
  EXPECT_EQ(read_file(folder / "thesis.tex"), "years of work");
  fs::remove(folder / "j");
  fs::create_symlink(folder / "absent", folder / "j");
  expect_error(Fault::input, "j: is a symbolic link", [&] { Journal(folder / "j"); });
  EXPECT_FALSE(fs::exists(folder / "absent"));
}

TEST(Journal, ANamedPipeIsRefusedAtOnce) {
  const test::TimeLimit limit(10);
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "j").c_str(), 0600), 0);
  expect_error(Fault::input, "j: is not a regular file", [&] { Journal(folder / "j"); });
}

TEST(Journal, AFlippedByteEndsTheRecordsBeforeIt) {
  const TemporaryFolder folder;
  {
    Journal journal(folder / "j");
    journal.append("one");
    journal.append("two");
  }
  std::string bytes = read_file(folder / "j");
  bytes.back() ^= 1;
  EXPECT_EQ(parse_journal(bytes).records, std::vector<std::string>{"one"});
}

// A limit on file sizes stands in for a full disk: a write ends in the middle of a record.
TEST(Journal, AFullDiskKeepsWholeRecordsAndSaysHowToGoOn) {
  const TemporaryFolder folder;
  {
    Journal journal(folder / "j");
    journal.append("kept");
    {
      const FileSizeLimit full(100);
      expect_error(Fault::runtime, "go on with --resume", [&] { journal.append(std::string(1000, 'x')); });
    }
    journal.append("later");
  }
  EXPECT_EQ(Journal(folder / "j").records(), (std::vector<std::string>{"kept", "later"}));
}

}  // namespace
}  // namespace headscope
