#include "formats/part_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/atomic_file.h"
#include "core/missing.h"
#include "support/expect_error.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::TemporaryFolder;
using ::testing::ElementsAre;

// Rows `begin` to `end` of one long table.
Table rows(std::int64_t begin, std::int64_t end) {
  Integers step;
  Numbers value;
  Texts metric;
  Vectors vector;
  for (std::int64_t row = begin; row < end; ++row) {
    step.push_back(row);
    value.push_back(row % 5 == 3 ? missing : static_cast<double>(row) / 7);
    metric.push_back(row % 2 == 0 ? "k_norm" : "k_pr");
    vector.push_back(Numbers(static_cast<std::size_t>(row % 3), static_cast<double>(row)));
  }
  return Table().add("step", step).add("value", value).add("metric", metric).add("vector", vector);
}

void expect_rows(const Table& table, std::int64_t count) {
  const Table expected = rows(0, count);
  ASSERT_EQ(table.rows(), static_cast<std::size_t>(count));
  EXPECT_EQ(table.integers("step"), expected.integers("step"));
  EXPECT_EQ(table.texts("metric"), expected.texts("metric"));
  EXPECT_EQ(table.vectors("vector"), expected.vectors("vector"));
  const Numbers values = table.numbers("value"), expected_values = expected.numbers("value");
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_TRUE(values[i] == expected_values[i] || (std::isnan(values[i]) && std::isnan(expected_values[i]))) << i;
}

std::vector<std::string> names(const fs::path& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path().filename().string());
  std::sort(found.begin(), found.end());
  return found;
}

TEST(PartTable, GrowsByPartsThatCanBeReadAtAnyMoment) {
  const TemporaryFolder folder;
  PartTable table(folder / "run" / "steps.parquet");
  EXPECT_EQ(read_parquet(folder / "run" / "steps.parquet").rows(), 0U);
  table.append(rows(0, 7));
  table.append(rows(7, 7));
  expect_rows(read_parquet(folder / "run" / "steps.parquet"), 7);
  table.append(rows(7, 20));
  expect_rows(read_parquet(folder / "run" / "steps.parquet/"), 20);
  EXPECT_THAT(names(folder / "run" / "steps.parquet"), ElementsAre("part-00000.parquet", "part-00001.parquet"));
  expect_rows(read_parquet(folder / "run" / "steps.parquet" / "part-00000.parquet"), 7);
  EXPECT_EQ(PartTable(folder / "run" / "steps.parquet").rows(), 20);
  EXPECT_EQ(table.rows(), 20);
}

// Another process may write the table by the time that a part is whole.
TEST(PartTable, WhoMayWriteNoMoreGivesNoName) {
  const TemporaryFolder folder;
  bool may_write = true;
  PartTable table(folder / "run" / "t", [&] {
    if (!may_write) fail_runtime("taken over");
  });
  table.append(rows(0, 5));
  table.append(rows(5, 9));
  may_write = false;
  expect_error(Fault::runtime, "taken over", [&] { table.append(rows(9, 12)); });
  expect_error(Fault::runtime, "taken over", [&] { table.merge(); });
  EXPECT_EQ(PartTable(folder / "run" / "t").rows(), 9);
  EXPECT_THAT(names(folder / "run" / "t"), ElementsAre("part-00000.parquet", "part-00001.parquet"));
}

TEST(PartTable, AResumedRunGoesBackToItsCheckpoint) {
  const TemporaryFolder folder;
  PartTable(folder / "t").append(rows(0, 5));
  PartTable(folder / "t").append(rows(5, 9));
  PartTable(folder / "t").append(rows(9, 12));
  write_file(folder / "t" / ".part-00003.parquet.1.0.tmp", "half");
  PartTable table(folder / "t");
  EXPECT_EQ(table.rows(), 12);
  table.truncate_rows(9);
  EXPECT_THAT(names(folder / "t"), ElementsAre("part-00000.parquet", "part-00001.parquet"));
  table.append(rows(9, 30));
  expect_rows(read_parquet(folder / "t"), 30);
  expect_error(Fault::input, "31 rows were expected, 30 are there", [&] { table.truncate_rows(31); });
  table.truncate_rows(0);
  EXPECT_EQ(read_parquet(folder / "t").rows(), 0U);
}

TEST(PartTable, GoesBackByRowsEvenWhenItWasMerged) {
  const TemporaryFolder folder;
  PartTable table(folder / "t");
  for (const std::int64_t begin : {0, 10, 20}) table.append(rows(begin, begin + 10));
  table.truncate_rows(20);
  EXPECT_EQ(part_files(folder / "t").size(), 2U);
  table.append(rows(20, 30));
  table.merge();
  table.truncate_rows(14);
  expect_rows(read_parquet(folder / "t"), 14);
  EXPECT_EQ(PartTable(folder / "t").rows(), 14);
  expect_error(Fault::input, "15 rows were expected, 14 are there", [&] { table.truncate_rows(15); });
  table.truncate_rows(0);
  EXPECT_TRUE(part_files(folder / "t").empty());
}

TEST(PartTable, MergedBytesDependOnTheRowsAlone) {
  const TemporaryFolder folder;
  const auto merged = [&](const char* name, std::vector<std::int64_t> borders) {
    PartTable table(folder / name);
    for (std::size_t i = 1; i < borders.size(); ++i) table.append(rows(borders[i - 1], borders[i]));
    table.merge();
    EXPECT_THAT(names(folder / name), ElementsAre("part-00000.parquet"));
    return read_file(folder / name / "part-00000.parquet");
  };
  const std::string once = merged("once", {0, 5000});
  EXPECT_EQ(merged("twice", {0, 1, 5000}), once);
  EXPECT_EQ(merged("often", {0, 1000, 1003, 2000, 4999, 5000}), once);
  expect_rows(read_parquet(folder / "often"), 5000);
  PartTable again(folder / "often");
  again.merge();
  EXPECT_EQ(read_file(folder / "often" / "part-00000.parquet"), once);
  again.append(rows(5000, 5001));
  expect_rows(read_parquet(folder / "often"), 5001);
  EXPECT_THAT(names(folder.path()), ElementsAre("often", "once", "twice"));
}

TEST(PartTable, RowGroupsDoNotDependOnThePartsEither) {
  constexpr std::int64_t count = (1 << 20) + 1000;  // more than one group
  Integers step(count);
  for (std::int64_t i = 0; i < count; ++i) step[static_cast<std::size_t>(i)] = i;
  const TemporaryFolder folder;
  PartTable one(folder / "one"), two(folder / "two");
  one.append(Table().add("step", step));
  two.append(Table().add("step", Integers(step.begin(), step.begin() + 700000)));
  two.append(Table().add("step", Integers(step.begin() + 700000, step.end())));
  one.merge();
  two.merge();
  EXPECT_EQ(read_file(folder / "one" / "part-00000.parquet"), read_file(folder / "two" / "part-00000.parquet"));
  EXPECT_EQ(read_parquet(folder / "two").integers("step"), step);
}

// The states that a crash during merge() leaves (part_table.h), each put in order by the next process.
TEST(PartTable, ACrashWhileMergingLosesAndDoublesNothing) {
  const TemporaryFolder folder;
  const fs::path table = folder / "t", aside = folder / "t.parts", hidden = folder / ".t.merged";
  const auto parts = [](const fs::path& place) {
    PartTable(place).append(rows(0, 5));
    PartTable(place).append(rows(5, 9));
  };
  const auto expect_whole = [&] {
    expect_rows(read_parquet(table), 9);
    PartTable recovered(table);
    expect_rows(read_parquet(table), 9);
    EXPECT_THAT(names(folder.path()), ElementsAre("t"));
    recovered.merge();
    expect_rows(read_parquet(table), 9);
    fs::remove_all(table);
  };
  parts(table);  // before the exchange: the merged file is half written
  fs::create_directory(hidden);
  write_file(hidden / ".part-00000.parquet.1.0.tmp", "half");
  expect_whole();

  parts(hidden);  // after the exchange: the hidden folder holds parts
  PartTable(table).append(rows(0, 9));
  parts(hidden);
  expect_whole();

  parts(aside);  // without exchange, between the renames; a resumed run removes hidden names first
  expect_whole();
  parts(aside);
  PartTable(hidden).append(rows(0, 9));
  expect_whole();

  PartTable(table).append(rows(0, 9));  // after the renames
  parts(aside);
  expect_whole();
}

TEST(PartTable, FilesOfOthersStay) {
  const TemporaryFolder folder;
  const fs::path table = folder / "t";
  const std::vector<std::string> kept = {".hidden", ".notes/deep", ".part-00001.parquet.1.0.tmp.txt",
                                         ".part-x.parquet.1.0.tmp", "README.md"};
  const auto put = [&](const fs::path& place) {
    for (const std::string& name : kept) {
      fs::create_directories((place / name).parent_path());
      write_file(place / name, name);
    }
  };
  const auto expect_kept = [&](const fs::path& place) {
    for (const std::string& name : kept) EXPECT_EQ(read_file(place / name), name);
  };
  PartTable(table).append(rows(0, 5));
  PartTable(table).append(rows(5, 9));
  put(table);
  write_file(table / ".part-00002.parquet.17.3.tmp", "half");
  PartTable again(table);
  EXPECT_FALSE(fs::exists(table / ".part-00002.parquet.17.3.tmp"));
  expect_kept(table);
  again.merge();
  expect_kept(table);
  expect_rows(read_parquet(table), 9);
  EXPECT_THAT(names(folder.path()), ElementsAre("t"));
  again.truncate_rows(0);
  expect_kept(table);
  again.remove();
  expect_kept(table);

  fs::rename(table, folder / "t.parts");  // not ours: it holds no parts
  PartTable fresh(table);
  fresh.append(rows(0, 3));
  expect_kept(folder / "t.parts");
  EXPECT_EQ(PartTable(table).rows(), 3);
  expect_kept(folder / "t.parts");
  fs::rename(folder / "t.parts", folder / ".t.merged");
  EXPECT_EQ(PartTable(table).rows(), 3);
  expect_error(Fault::input, ".t.merged: is in the way of merging", [&] { fresh.merge(); });
  expect_kept(folder / ".t.merged");
}

// After the renames: what others keep in the folder of the parts comes back into the table.
TEST(PartTable, FilesOfOthersSurviveACrashWhileMerging) {
  const TemporaryFolder folder;
  for (const char* left : {"t.parts", ".t.merged"}) {
    fs::remove_all(folder / "t");
    PartTable(folder / "t").append(rows(0, 9));
    PartTable(folder / left).append(rows(0, 5));
    PartTable(folder / left).append(rows(5, 9));
    write_file(folder / left / ".notes", "mine");
    PartTable recovered(folder / "t");
    expect_rows(read_parquet(folder / "t"), 9);
    EXPECT_EQ(read_file(folder / "t" / ".notes"), "mine");
    EXPECT_THAT(names(folder.path()), ElementsAre("t"));
  }
}

TEST(PartTable, LinksAreRefusedAndLeadNowhere) {
  const TemporaryFolder folder;
  const fs::path outside = folder / "outside";
  PartTable(outside).append(rows(0, 5));
  const std::string part = read_file(outside / "part-00000.parquet");
  const auto refused = [&](const fs::path& link, const fs::path& to) {
    fs::create_symlink(to, link);
    expect_error(Fault::input, link.filename().string() + ": is a symbolic link",
                 [&] { PartTable(folder / "run" / "t"); });
    fs::remove(link);
    EXPECT_EQ(read_file(outside / "part-00000.parquet"), part);
    EXPECT_THAT(names(outside), ElementsAre("part-00000.parquet"));
  };
  fs::create_directory(folder / "run");
  refused(folder / "run" / "t", outside);
  refused(folder / "run" / "t", folder / "nowhere");
  EXPECT_FALSE(fs::exists(folder / "nowhere"));
  refused(folder / "run" / "t.parts", outside);
  PartTable table(folder / "run" / "t");
  refused(folder / "run" / "t" / "part-00000.parquet", outside / "part-00000.parquet");
  table.append(rows(0, 2));
  refused(folder / "run" / ".t.merged", outside);
  fs::create_directory_symlink(outside, folder / "run" / ".t.merged");
  expect_error(Fault::input, ".t.merged: is a symbolic link", [&] { table.merge(); });
  EXPECT_EQ(read_file(outside / "part-00000.parquet"), part);
}

// Somebody moves the table of a run that goes on, and puts a link in its place.
TEST(PartTable, ALinkThatComesLaterLeadsNowhere) {
  const TemporaryFolder folder;
  const fs::path place = folder / "t", outside = folder / "outside";
  fs::create_directories(outside / "sub");
  write_file(outside / "thesis.txt", "years of work");
  PartTable table(place);
  table.append(rows(0, 2));
  table.append(rows(2, 4));
  fs::rename(place, folder / "moved");
  fs::create_directory_symlink(outside, place);
  const auto refused = [&](const std::function<void()>& change) {
    expect_error(Fault::runtime, "t: is a symbolic link", change);
  };
  refused([&] { table.append(rows(4, 5)); });
  refused([&] { table.truncate_rows(3); });
  refused([&] { table.remove(); });
  refused([&] { table.merge(); });
  EXPECT_TRUE(fs::is_symlink(place));
  EXPECT_THAT(names(outside), ElementsAre("sub", "thesis.txt"));
  EXPECT_THAT(names(folder / "moved"), ElementsAre("part-00000.parquet", "part-00001.parquet"));
}

TEST(PartTable, AFullDiskLeavesTheTableAsItWas) {
  const TemporaryFolder folder;
  PartTable table(folder / "t");
  table.append(rows(0, 2000));
  table.append(rows(2000, 4000));
  {
    const test::FileSizeLimit limit(4096);
    expect_error(Fault::runtime, "part-00002.parquet: File too large while writing",
                 [&] { table.append(rows(4000, 8000)); });
    expect_error(Fault::runtime, "part-00000.parquet: File too large while writing", [&] { table.merge(); });
  }
  EXPECT_EQ(table.rows(), 4000);
  EXPECT_THAT(names(folder.path()), ElementsAre("t"));
  EXPECT_THAT(names(folder / "t"), ElementsAre("part-00000.parquet", "part-00001.parquet"));
  expect_rows(read_parquet(folder / "t"), 4000);
}

TEST(PartTable, DamageIsNamed) {
  const TemporaryFolder folder;
  PartTable(folder / "t").append(rows(0, 5));
  PartTable(folder / "t").append(rows(5, 9));
  const std::string part = read_file(folder / "t" / "part-00001.parquet");
  for (std::size_t length = 0; length < part.size(); length += 97) {
    write_file(folder / "t" / "part-00001.parquet", part.substr(0, length));
    expect_error(Fault::input, "part-00001.parquet: is damaged", [&] { read_parquet(folder / "t"); });
    expect_error(Fault::input, "part-00001.parquet: is damaged", [&] { PartTable(folder / "t"); });
  }
  write_file(folder / "t" / "part-00001.parquet", to_parquet(Table().add("other", Integers{1})));
  expect_error(Fault::input, "part-00001.parquet: its columns are not those of the first part",
               [&] { read_parquet(folder / "t"); });
  fs::rename(folder / "t" / "part-00001.parquet", folder / "t" / "part-00002.parquet");
  expect_error(Fault::input, "there is no part-00001.parquet, yet part-00002.parquet is there",
               [&] { PartTable(folder / "t"); });
  expect_error(Fault::input, "No such file or directory", [&] { read_parquet(folder / "absent"); });
}

TEST(Csv, RefusesVectors) {
  expect_error(Fault::runtime, "column vector of a CSV holds vectors", [] { to_csv(rows(0, 1)); });
}

}  // namespace
}  // namespace headscope
