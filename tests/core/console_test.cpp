#include "core/console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/error.h"

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

TEST(OnOneLine, HasNoControlCharacters) {
  EXPECT_EQ(on_one_line("a\nb\x1b[1m\x7f"
                        "c\n"),
            "a b [1m c");
  EXPECT_EQ(on_one_line("a\xC2\x9B"
                        "2Jb \xC2\xB5 \xC2"),
            "a  2Jb \xC2\xB5 \xC2");  // U+009B is like ESC [
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

// A terminal that understands what a progress display needs: where the cursor is, and what each line shows then.
std::vector<std::string> screen_after(std::string_view text) {
  std::vector<std::string> lines(1);
  std::size_t row = 0;
  while (!text.empty()) {
    if (text.starts_with("\x1b[K") || text.starts_with("\x1b[J")) {
      lines[row].clear();
      if (text[2] == 'J') lines.resize(row + 1);
      text.remove_prefix(3);
    } else if (text.starts_with("\x1b[")) {
      EXPECT_EQ(text[3], 'A');
      EXPECT_GE(row, static_cast<std::size_t>(text[2] - '0'));
      row -= static_cast<std::size_t>(text[2] - '0');
      text.remove_prefix(4);
    } else {
      if (text[0] == '\n' && ++row == lines.size()) lines.emplace_back();
      if (text[0] != '\n' && text[0] != '\r') lines[row] += text[0];
      text.remove_prefix(1);
    }
  }
  return lines;
}

// What a console prints on a terminal of so many columns and rows.
template <class Action>
std::string printed_on_a_terminal(unsigned short columns, Action action, unsigned short rows = 40) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  ::grantpt(terminal);
  ::unlockpt(terminal);
  std::FILE* file = std::fopen(::ptsname(terminal), "w");
  winsize size{};
  size.ws_row = rows;
  size.ws_col = columns;
  ::ioctl(terminal, TIOCSWINSZ, &size);
  {
    Console console({}, file);
    action(console);
  }
  std::fclose(file);
  // A read gives what has come through by then; behind the last byte it fails.
  std::string text, piece(1 << 16, '\0');
  for (ssize_t got = 0; (got = ::read(terminal, piece.data(), piece.size())) > 0;)
    text.append(piece, 0, static_cast<std::size_t>(got));
  ::close(terminal);
  return text;
}

TEST(Progress, OnATerminalEachHasItsLineAndMessagesStandAbove) {
  const auto lines = screen_after(printed_on_a_terminal(200, [](Console& console) {
    Progress first(console, "first", "steps", 3);
    auto second = std::make_unique<Progress>(console, "second", "steps", 2);
    const Progress third(console, "third", "steps", 9, 4);
    first.reach(2);
    console.info("a message");
    second->reach(2, "loss 1.5");
    second.reset();  // done: its line stays where it is, above those that go on
    console.warn("another");
  }));
  ASSERT_EQ(lines.size(), 6U) << ::testing::PrintToString(lines);
  EXPECT_EQ(lines[0], "headscope: a message");
  EXPECT_THAT(lines[1],
              ::testing::AllOf(::testing::StartsWith("second "), HasSubstr("2/2 steps"), HasSubstr("loss 1.5")));
  EXPECT_EQ(lines[2], "headscope: warning: another");
  EXPECT_THAT(lines[3], HasSubstr("third"));
  EXPECT_THAT(lines[4], HasSubstr("2/3 steps"));
  EXPECT_EQ(lines[5], "");
}

TEST(Progress, ALineIsNeverLongerThanTheTerminal) {
  const std::string text = printed_on_a_terminal(40, [](Console& console) {
    const Progress first(console, "a label", "steps", 1000), second(console, std::string(100, 'x'), "steps", 1000);
    console.info("m");
  });
  const std::string after = text.substr(text.find(" m\r\n") + 4);
  for (const std::string& line : screen_after(after.substr(0, after.find('\x1b')))) {
    const auto characters = std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; });
    EXPECT_LE(characters, 38) << line;  // the terminal writes ^C behind it
  }
}

// The column in which something begins.
std::ptrdiff_t column_of(const std::string& line, const std::string& what) {
  const std::size_t at = line.find(what);
  return std::ranges::count_if(line.substr(0, at), [](char c) { return (c & 0xC0) != 0x80; });
}

// How often a character is there.
int count_of(const std::string& line, const std::string& what) {
  int count = 0;
  for (std::size_t at = line.find(what); at != std::string::npos; at = line.find(what, at + 1)) ++count;
  return count;
}

TEST(Progress, ANarrowTerminalShortensAllBarsAndKeepsTheText) {
  const auto cells_at = [](unsigned short columns) {
    const auto lines = screen_after(printed_on_a_terminal(columns, [](Console& console) {
      Progress first(console, "A QK seed 42", "steps", 1000), second(console, "B QK_frozen seed 42", "steps", 1000);
      first.reach(1, "loss 2.3");
      second.reach(999, "loss 2.3");
      console.info("m");
      console.info("m");
    }));
    std::vector<int> cells;
    for (const std::string& line : lines) {
      if (!line.starts_with("A") && !line.starts_with("B")) continue;
      EXPECT_THAT(line, ::testing::AllOf(HasSubstr(columns > 66 ? "/1000 steps" : "/1000, "),
                                         ::testing::EndsWith(", loss 2.3")))
          << columns;
      cells.push_back(count_of(line, "█") + count_of(line, "░"));
    }
    EXPECT_THAT(cells, ::testing::SizeIs(2));
    EXPECT_EQ(cells.front(), cells.back());
    return cells.front();
  };
  EXPECT_EQ(cells_at(200), 30);
  EXPECT_THAT(cells_at(100), ::testing::AnyOf(10, 15, 20, 25));  // the rate has more digits or fewer
  EXPECT_THAT(cells_at(80), ::testing::AnyOf(0, 5));
  EXPECT_EQ(cells_at(66), 0);
}

TEST(Progress, BarsBeginInOneColumnAlsoThoseThatCameLater) {
  const auto lines = screen_after(printed_on_a_terminal(200, [](Console& console) {
    { const Progress first(console, "B QK_frozen", "steps", 3); }
    { const Progress second(console, "C′ NoQK", "steps", 3); }
  }));
  ASSERT_EQ(lines.size(), 3U) << ::testing::PrintToString(lines);
  EXPECT_EQ(column_of(lines[0], "░"), 12);
  EXPECT_EQ(column_of(lines[1], "░"), 12);
}

// A bar that left the terminal at its upper end could not be drawn again.
TEST(Progress, MoreBarsThanTheTerminalHasRows_EndInACount) {
  const auto action = [](Console& console) {
    std::vector<std::unique_ptr<Progress>> all;
    for (int i = 0; i < 6; ++i)
      all.push_back(std::make_unique<Progress>(console, fmt::format("bar {}", i), "steps", 3));
    console.info("a message");
  };
  const std::string text = printed_on_a_terminal(200, action, 4);
  const std::string after = text.substr(text.find(" message\r\n") + 10);
  const auto lines = screen_after(after.substr(0, after.find('\x1b')));
  ASSERT_EQ(lines.size(), 4U) << ::testing::PrintToString(lines);
  EXPECT_THAT(lines[2], HasSubstr("bar 2"));
  EXPECT_EQ(lines[3], "and 3 more");
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
