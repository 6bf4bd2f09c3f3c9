// What the reader of captured vectors refuses because of what the file says, and how it says so.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/captured_files.h"
#include "support/time_limit.h"

namespace headscope::test {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

std::string path_refusal(const std::filesystem::path& file) {
  try {
    (void)read_captured_vectors(file);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    EXPECT_TRUE(std::string(error.what()).starts_with("cannot read " + file.string() + ": ")) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "accepted " << file;
  return {};
}

TEST(CapturedRefusals, FilesThatCannotBeOpened) {
  const test::TimeLimit limit(10);
  const CaptureFolder folder;
  EXPECT_THAT(path_refusal(folder.path() / "data.parquet"), EndsWith("No such file or directory"));
  EXPECT_THAT(path_refusal("no/such/place"), EndsWith("No such file or directory"));
  const auto file = folder.file(Capture().write());
  EXPECT_THAT(path_refusal(file / "data.parquet"), EndsWith("Not a directory"));
  EXPECT_THAT(path_refusal(folder.path()), EndsWith("Is a directory"));
  EXPECT_THAT(path_refusal("/dev/null"), EndsWith("not a regular file"));
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(path_refusal(pipe), EndsWith("not a regular file"));  // does not wait
  ASSERT_EQ(::chmod(file.c_str(), 0), 0);
  if (::geteuid() != 0) {  // root may read anything
    EXPECT_THAT(path_refusal(file), EndsWith("Permission denied"));
  }
}

TEST(CapturedRefusals, MissingColumns) {
  for (const std::string name : {"vector", "bucket", "position"}) {
    EXPECT_THAT(
        refusal(Capture().drop(name).write()),
        AllOf(HasSubstr("no column '" + name + "', expected bucket, position and vector; the file has: token_str"),
              HasSubstr("sliding_window")));
  }
}

TEST(CapturedRefusals, ColumnsThatAppearTwice) {
  const auto file = with_footer(Capture().write(), [](Thrift& tree) {
    for (auto& element : tree[footer::schema].items) {
      if (element[4].bytes == "example_id") element[4].bytes = "bucket";
    }
  });
  EXPECT_THAT(refusal(file), HasSubstr("column 'bucket' appears more than once"));
}

TEST(CapturedRefusals, VectorsOfAnotherType) {
  const std::vector<std::tuple<std::shared_ptr<arrow::DataType>, std::string, std::string>> cases = {
      {arrow::list(arrow::int64()), "[[1], [2]]", "nested: vector.list.element INT64"},
      {arrow::utf8(), R"(["a", "b"])", "BYTE_ARRAY (String)"},
      {arrow::float32(), "[1, 2]", "FLOAT"},
      {arrow::list(arrow::list(arrow::float32())), "[[[1]], [[2]]]", "nested: vector.list.element.list.element FLOAT"},
      {arrow::struct_({arrow::field("x", arrow::float32())}), R"([{"x": 1}, {"x": 2}])", "nested: vector.x FLOAT"},
      {arrow::map(arrow::int64(), arrow::float32()), "[[[1, 2]], [[3, 4]]]", "a group of several fields"},
      {arrow::list(arrow::fixed_size_binary(2)), R"([["ab"], ["cd"]])", "FIXED_LEN_BYTE_ARRAY"},
      {arrow::list(arrow::boolean()), "[[true], [false]]", "BOOLEAN"},
  };
  for (const auto& [type, json, found] : cases) {
    EXPECT_THAT(refusal(Capture(2, 2).set("vector", type, json).write()),
                AllOf(HasSubstr("column 'vector' is "), HasSubstr(found),
                      EndsWith("expected a list of float16, float32 or float64")));
  }
}

TEST(CapturedRefusals, IntegerColumnsOfAnotherType) {
  for (const std::string name : {"bucket", "position", "example_id"}) {
    for (const auto& [type, json] : std::vector<std::pair<std::shared_ptr<arrow::DataType>, std::string>>{
             {arrow::float64(), "[1, 2]"},
             {arrow::utf8(), R"(["1", "2"])"},
             {arrow::boolean(), "[true, false]"},
             {arrow::timestamp(arrow::TimeUnit::MILLI), "[1, 2]"},
             {arrow::date32(), "[1, 2]"},
             {arrow::list(arrow::int64()), "[[1], [2]]"},
             {arrow::decimal128(5, 0), R"(["1", "2"])"}}) {
      EXPECT_THAT(refusal(Capture(2, 2).set(name, type, json).write()),
                  AllOf(HasSubstr("column '" + name + "' is "), EndsWith("expected an integer type")));
    }
  }
  EXPECT_THAT(
      refusal(Capture(2, 2).set("sliding_window", arrow::utf8(), R"(["1", "2"])").write()),
      EndsWith("column 'sliding_window' is BYTE_ARRAY (String), expected an integer, a floating-point or a null type"));
}

TEST(CapturedRefusals, NullsAreNamedByRow) {
  for (const std::string name : {"bucket", "position", "example_id"}) {
    const auto capture = Capture(5, 2).set(name, arrow::int64(), "[1, 2, 3, null, null]");
    for (const std::int64_t rows_per_group : {2, 5}) {
      EXPECT_THAT(refusal(capture.write({}, rows_per_group)),
                  EndsWith("column '" + name + "': row 3 is null, expected an integer"));
    }
    EXPECT_THAT(refusal(Capture(2, 2).set(name, arrow::null(), "[null, null]").write()), HasSubstr("row 0 is null"));
  }
  const auto list = arrow::list(arrow::float32());
  for (const std::int64_t rows_per_group : {1, 2, 100}) {
    EXPECT_THAT(refusal(Capture(4, 1).set("vector", list, "[[1, 2], [1, 2], null, [1, 2]]").write({}, rows_per_group)),
                EndsWith("column 'vector': row 2 is null, expected a vector"));
    EXPECT_THAT(refusal(Capture(3, 1).set("vector", list, "[[1, 2], [1, null], [1, 2]]").write({}, rows_per_group)),
                EndsWith("column 'vector': row 1, component 1 is null, expected a number"));
    EXPECT_THAT(refusal(Capture(3, 1).set("vector", list, "[[1, 2], [1, 2], [null, 2]]").write({}, rows_per_group)),
                EndsWith("column 'vector': row 2, component 0 is null, expected a number"));
  }
}

TEST(CapturedRefusals, VectorsOfUnequalLengthAreNamedByRow) {
  const auto list = arrow::list(arrow::float32());
  for (const std::int64_t rows_per_group : {1, 2, 3, 100}) {
    EXPECT_THAT(
        refusal(Capture(4, 1).set("vector", list, "[[1, 2], [1, 2], [1], [1, 2, 3]]").write({}, rows_per_group)),
        EndsWith("column 'vector': row 2 has 1 components, expected 2 as in row 0"));
    EXPECT_THAT(refusal(Capture(2, 1).set("vector", list, "[[1, 2], [1, 2, 3]]").write({}, rows_per_group)),
                EndsWith("column 'vector': row 1 has 3 components, expected 2 as in row 0"));
    EXPECT_THAT(refusal(Capture(3, 1).set("vector", list, "[[1, 2], [], [1, 2]]").write({}, rows_per_group)),
                EndsWith("column 'vector': row 1 has no components"));
  }
  EXPECT_THAT(refusal(Capture(2, 1).set("vector", list, "[[], []]").write()), EndsWith("row 0 has no components"));
  EXPECT_THAT(refusal(Capture(2, 1).set("vector", arrow::fixed_size_list(arrow::float32(), 0), "[[], []]").write()),
              HasSubstr("column 'vector': row 0"));  // Arrow writes a null component
}

// Longer than what is read at once, by a multiple of the first row's length.
TEST(CapturedRefusals, AVeryLongRowIsNotTakenForSeveral) {
  std::string row = "[0";
  for (int i = 1; i < 30000; ++i) row += ",0";
  for (const std::string& json : {"[[1,2,3]," + row + "]]", "[[1,2,3]," + row + "],[1,2,3]]"}) {
    EXPECT_THAT(
        refusal(Capture(json.ends_with("3]]") ? 3 : 2, 1).set("vector", arrow::list(arrow::float32()), json).write()),
        EndsWith("row 1 has 30000 components, expected 3 as in row 0"));
  }
}

// Far behind the values that are read at once.
TEST(CapturedRefusals, RowsFarInTheFileAreNamed) {
  const auto with_row = [](const std::string& row) {
    std::string json = "[";
    for (int i = 0; i < 5000; ++i) json += (i > 0 ? "," : "") + (i == 4321 ? row : std::string("[1,2,3]"));
    return Capture(5000, 1).set("vector", arrow::list(arrow::float32()), json + "]").write();
  };
  EXPECT_THAT(refusal(with_row("[1,2]")), EndsWith("row 4321 has 2 components, expected 3 as in row 0"));
  EXPECT_THAT(refusal(with_row("[1,2,3,4]")), EndsWith("row 4321 has 4 components, expected 3 as in row 0"));
  EXPECT_THAT(refusal(with_row("[]")), EndsWith("row 4321 has no components"));
  EXPECT_THAT(refusal(with_row("null")), EndsWith("row 4321 is null, expected a vector"));
  EXPECT_THAT(refusal(with_row("[1,2,null]")), EndsWith("row 4321, component 2 is null, expected a number"));
  EXPECT_THAT(refusal(with_row("[1,NaN,3]")), EndsWith("row 4321, component 1 is NaN, expected a finite number"));
}

TEST(CapturedRefusals, NumbersThatAreNotFiniteAreNamedByRowAndComponent) {
  for (const auto& element : {arrow::float16(), arrow::float32(), arrow::float64()}) {
    const auto list = arrow::list(element);
    for (const std::int64_t rows_per_group : {1, 2, 100}) {
      EXPECT_THAT(refusal(Capture(3, 1).set("vector", list, "[[1, 2], [3, NaN], [Inf, 1]]").write({}, rows_per_group)),
                  EndsWith("column 'vector': row 1, component 1 is NaN, expected a finite number"));
      EXPECT_THAT(refusal(Capture(3, 1).set("vector", list, "[[1, 2], [3, 4], [-Inf, 1]]").write({}, rows_per_group)),
                  EndsWith("column 'vector': row 2, component 0 is infinite, expected a finite number"));
    }
    EXPECT_THAT(refusal(Capture(2, 1).set("vector", list, "[[1, NaN], [Inf, 1]]").write(), {.drop_nonfinite = true}),
                EndsWith("every row has a NaN or an infinity, no rows are left"));
  }
  EXPECT_THAT(refusal(Capture(2, 1).set("sliding_window", arrow::float32(), "[1, Inf]").write()),
              EndsWith("column 'sliding_window': row 1 is infinite; leave it null where there is no window"));
}

TEST(CapturedRefusals, NumbersOutsideTheirRange) {
  EXPECT_THAT(refusal(Capture(3, 2).set("bucket", arrow::int8(), "[0, 1, -1]").write()),
              EndsWith("column 'bucket': row 2 is -1, expected the index of a region of the context, 0 to 1000000"));
  EXPECT_THAT(refusal(Capture(3, 2).set("bucket", arrow::int32(), "[0, 1000001, 1]").write()),
              HasSubstr("column 'bucket': row 1 is 1000001, expected"));
  EXPECT_THAT(refusal(Capture(3, 2).set("position", arrow::int64(), "[0, 1, -7]").write({}, 1)),
              EndsWith("column 'position': row 2 is -7, expected a token position, at least 0"));
  EXPECT_THAT(refusal(Capture(2, 2).set("position", arrow::uint64(), "[1, 9223372036854775808]").write()),
              EndsWith("column 'position': row 1 is 9223372036854775808, too large for a signed integer"));
}

TEST(CapturedRefusals, FilesWithoutRows) {
  EXPECT_THAT(refusal(Capture(0, 2).write()), EndsWith("no rows, expected at least one captured vector"));
  const auto empty = with_footer(Capture().write(), [](Thrift& tree) {
    tree[footer::num_rows].number = 0;
    tree[footer::row_groups].items.clear();
  });
  EXPECT_THAT(refusal(empty), EndsWith("no rows, expected at least one captured vector"));
}

}  // namespace
}  // namespace headscope::test
