#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/atomic_file.h"
#include "core/regular_file.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;

std::size_t entries(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

TEST(WriteFile, ReplacesTheContentAndLeavesNothingElse) {
  const TemporaryFolder folder;
  write_file(folder / "a", "first, and longer");
  write_file(folder / "a", std::string_view("se\0cond", 7));
  EXPECT_EQ(read_file(folder / "a"), std::string("se\0cond", 7));
  EXPECT_EQ(entries(folder.path()), 1U);
}

TEST(WriteFile, AFailureKeepsTheOldFileAndRemovesTheTemporaryOne) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "target" / "occupied");  // a rename onto it fails
  expect_error(Fault::runtime, "cannot write", [&] { write_file(folder / "target", "x"); });
  EXPECT_TRUE(std::filesystem::is_directory(folder / "target" / "occupied"));
  EXPECT_EQ(entries(folder.path()), 1U);
  expect_error(Fault::runtime, "No such file or directory", [&] { write_file(folder / "no" / "such", "x"); });
}

TEST(AtomicFile, IsThereOnlyOnceCommitted) {
  const TemporaryFolder folder;
  {
    AtomicFile file(folder / "a");
    file.write("half");
    EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  }
  EXPECT_EQ(entries(folder.path()), 0U);
  AtomicFile file(folder / "a");
  file.write("one ");
  file.write("two");
  EXPECT_EQ(file.size(), 7);
  file.commit();
  EXPECT_EQ(read_file(folder / "a"), "one two");
}

TEST(AtomicFile, TakesAnotherNameWhereAKilledProcessHadItsNumber) {
  const TemporaryFolder folder;
  for (int number = 0; number < 2000; ++number)  // this process has written some files before
    std::ofstream(folder / fmt::format(".file.{}.{}.tmp", ::getpid(), number)) << "half";
  write_file(folder / "file", "whole");
  EXPECT_EQ(read_file(folder / "file"), "whole");
}

TEST(RemoveLeftovers, RemovesOnlyWhatNobodyWrites) {
  const TemporaryFolder folder;
  const std::vector<std::string> others = {".file.1.tmp", ".other.1.0.tmp", ".file.1.0.tmp.txt", "file"};
  for (const std::string& name : others) write_file(folder / name, "mine");
  write_file(folder / ".file.1.0.tmp", "half");
  std::filesystem::create_symlink("file", folder / ".file.2.0.tmp");
  std::filesystem::create_directory(folder / ".file.3.0.tmp");
  AtomicFile written(folder / "file");
  written.write("new");
  remove_leftovers(folder / "file");
  EXPECT_FALSE(std::filesystem::exists(folder / ".file.1.0.tmp"));
  for (const std::string& name : others) EXPECT_EQ(read_file(folder / name), "mine");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / ".file.2.0.tmp"));
  EXPECT_TRUE(std::filesystem::exists(folder / ".file.3.0.tmp"));
  written.commit();
  EXPECT_EQ(read_file(folder / "file"), "new");
}

TEST(MappedFile, HasTheBytesOfTheFile) {
  const TemporaryFolder folder;
  write_file(folder / "a", "content");
  write_file(folder / "empty", "");
  MappedFile first(folder / "a");
  const MappedFile moved = std::move(first);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(moved.bytes().data()), moved.bytes().size()), "content");
  EXPECT_TRUE(MappedFile(folder / "empty").bytes().empty());
  expect_error(Fault::input, "absent: No such file or directory", [&] { MappedFile(folder / "absent"); });
  expect_error(Fault::input, "Is a directory", [&] { MappedFile(folder.path()); });
  expect_error(Fault::input, "not a regular file", [] { MappedFile("/dev/null"); });
}

TEST(ReadFile, NamesWhatCannotBeRead) {
  const TemporaryFolder folder;
  expect_error(Fault::input, "absent: No such file or directory", [&] { read_file(folder / "absent"); });
  expect_error(Fault::input, "Is a directory", [&] { read_file(folder.path()); });
  expect_error(Fault::input, "not a regular file", [] { read_file("/dev/null"); });
}

// A named pipe without a writer makes a plain open() wait for ever.
TEST(OpenRegularFile, RefusesAtOnceWhatIsNoRegularFile) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const int listening = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{AF_UNIX, {}};
  const std::string socket = (folder / "socket").string();
  ASSERT_LT(socket.size(), sizeof address.sun_path);
  std::copy(socket.begin(), socket.end(), address.sun_path);
  ASSERT_EQ(::bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  for (const std::filesystem::path& file : {folder / "pipe", folder / "socket", std::filesystem::path("/dev/zero")}) {
    const std::string message = fmt::format("cannot read {}: not a regular file", file.string());
    expect_error(Fault::input, message, [&] { open_regular_file(file); });
    expect_error(Fault::input, message, [&] { read_file(file); });
    expect_error(Fault::input, message, [&] { MappedFile mapped(file); });
  }
  ::close(listening);
}

}  // namespace
}  // namespace headscope
