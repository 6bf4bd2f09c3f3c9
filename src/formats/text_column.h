// One column of texts of a Parquet file, such as `text` in published corpora.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace headscope {

// Calls `on_text` with each row's text, in order, until it returns false; then returns false. Empty texts are left out.
// Memory holds a few pages. Throws Error(Fault::input) naming the file, and the column or row, when the column is not
// there or is not text, a row is null, or the file is damaged.
bool for_each_text(const std::filesystem::path& file, const std::string& column,
                   const std::function<bool(std::string_view)>& on_text);

}  // namespace headscope
