// An append-only file of records that survives a kill at any moment: what was appended whole is read back, a torn last
// record is cut off. Results of finished work are kept here until the tables are written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/regular_file.h"

namespace headscope {

class Journal {
 public:
  // Opens or creates the file and reads the records it holds; a damaged end is cut off. Throws Error(Fault::input) when
  // its name is that of a link or of something else than a file.
  explicit Journal(std::filesystem::path file);

  [[nodiscard]] const std::vector<std::string>& records() const { return records_; }

  // From any thread. Throws Error(Fault::runtime) when the disk is full; the file then ends with the last whole record.
  void append(std::string_view record);

 private:
  std::filesystem::path file_;
  std::vector<std::string> records_;
  Descriptor descriptor_;
  std::int64_t end_ = 0;
  std::mutex mutex_;
};

// The whole records at the start of `bytes`, and how many bytes they take.
struct JournalContent {
  std::vector<std::string> records;
  std::size_t length = 0;
};
JournalContent parse_journal(std::string_view bytes);

}  // namespace headscope
