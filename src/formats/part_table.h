// A table that grows while a run goes on: a folder of immutable Parquet files, part-00000.parquet, part-00001.parquet,
// …
//
// A reader sees the rows of all complete parts at any moment. A part is written beside the folder and renamed into it:
// polars reads every name in a folder, also those that begin with '.'. A killed process leaves a hidden file beside the
// folder, which the run folder removes.
//
// merge() writes the merged part into a hidden folder beside the table and exchanges the two folders in one step of the
// file system, so the name of the table means all parts or the merged one, never both and never neither. A program that
// listed the folder before and opens the files after finds that most are gone: it has to read again.
// Where the file system cannot exchange two names (NFS), the folder is renamed to NAME.parts, the merged one gets
// its name, and NAME.parts is removed: between the two renames the table is absent. A crash leaves one of
//   NAME, and hidden leftovers          they are removed
//   NAME.parts alone                    it is the table: it gets its name back
//   NAME merged, and NAME.parts         NAME is complete: NAME.parts is removed
// which the constructor repairs. One process writes a table at a time: the run folder is locked.
//
// Only files that a table makes are removed (parts, and .part-N.parquet.PID.N.tmp); other files in its folder stay
// there, also after merge(). A writer refuses symbolic links where it expects folders and parts of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "formats/parquet_table.h"
#include "formats/table.h"

namespace headscope {

class PartTable {
 public:
  // Makes the folder where it is not there, and removes what a killed process left. Throws Error(Fault::input) when a
  // symbolic link has the place of the folder, of NAME.parts or of a part. `before_rename` throws when this process may
  // write no more, because another one writes the table by now; it is asked directly before a name is given.
  explicit PartTable(std::filesystem::path folder, std::function<void()> before_rename = {});

  // Writes the next part; nothing for no rows. Throws Error(Fault::runtime) when the disk is full; the table is then as
  // it was.
  void append(const Table& rows);

  [[nodiscard]] std::int64_t rows() const;

  // Back to an earlier state: a resumed run writes again the rows that came after its checkpoint. It works on a merged
  // table, too: the part that holds the border is written again, shorter. The last part is removed first, so that a
  // crash leaves a table without gaps. Throws Error(Fault::input) when the table holds fewer rows.
  void truncate_rows(std::int64_t rows);

  // All parts into one; see above. The bytes of the result depend on the rows alone, not on how they were appended.
  void merge();

  // Removes the folder, unless it holds files that are not ours. The table must not be used afterwards.
  void remove();

 private:
  void remove_last_part();
  void check() const;  // before something changes
  [[nodiscard]] std::filesystem::path part(std::size_t index) const;
  [[nodiscard]] std::vector<std::filesystem::path> files() const;

  std::filesystem::path folder_;
  std::function<void()> before_rename_;
  std::vector<std::int64_t> rows_;  // of each part
};

// The parts of the table in order. Throws Error(Fault::input) when one is missing between others.
std::vector<std::filesystem::path> part_files(const std::filesystem::path& folder);

// Where the parts are: the folder, or NAME.parts when a crash left them there.
std::filesystem::path part_folder(const std::filesystem::path& folder);

}  // namespace headscope
