#include "core/console.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace headscope {
namespace {

using ::testing::HasSubstr;

// What a console prints into a file that is not a terminal.
template <class Action>
std::string printed(ConsoleOptions options, Action action) {
  std::FILE* file = std::tmpfile();
  {
    Console console(options, file);
    action(console);
  }
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

TEST(Console, AnErrorIsOneLineWhateverItHolds) {
  EXPECT_EQ(printed({}, [](Console& console) { console.error("two\nlines\n"); }), "headscope: two lines\n");
}

TEST(Console, QuietKeepsWarningsAndVerboseAddsDetails) {
  const auto all = [](Console& console) {
    console.info("info");
    console.detail("detail");
    console.warn("warning");
  };
  EXPECT_EQ(printed({.quiet = true}, all), "headscope: warning: warning\n");
  EXPECT_EQ(printed({}, all), "headscope: info\nheadscope: warning: warning\n");
  EXPECT_EQ(printed({.verbose = true}, all), "headscope: info\nheadscope: detail\nheadscope: warning: warning\n");
}

TEST(Progress, EndsWithTheCountAndNoControlCharactersInAFile) {
  const std::string text = printed({}, [](Console& console) {
    Progress progress(console, "work", "heads", 3, 1);
    progress.step();
    progress.step();
  });
  EXPECT_THAT(text, HasSubstr("work: 3/3 heads"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(printed({.quiet = true}, [](Console& console) { Progress(console, "work", "heads", 3).step(); }), "");
}

// A destructor that throws ends the program: this test then does not come to its end.
TEST(Console, AStreamThatIsFullOrClosedIsNoFailure) {
  const auto use = [](std::FILE* stream) {
    Console console({.verbose = true}, stream);
    console.info("info");
    console.warn("warning");
    console.error(std::string(1 << 16, 'x'));  // more than a buffer
    Progress progress(console, "work", "heads", 2);
    progress.step();
    progress.step();
  };
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  EXPECT_NO_THROW(use(full));
  std::fclose(full);
  std::FILE* read_only = std::fopen("/dev/null", "r");
  EXPECT_NO_THROW(use(read_only));
  std::fclose(read_only);
}

TEST(FormatDuration, ChoosesTheUnit) {
  EXPECT_EQ(format_duration(1.26), "1.3 s");
  EXPECT_EQ(format_duration(250), "4 min 10 s");
  EXPECT_EQ(format_duration(7500), "2 h 05 min");
  EXPECT_EQ(format_duration(3.6e30), "1.0e+27 h");  // does not fit in 64 bits
}

}  // namespace
}  // namespace headscope
