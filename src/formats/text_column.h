// One column of texts of a Parquet file, such as `text` in published corpora.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace headscope {

// Calls `on_text` with each row's text, in order, until it returns false; then returns false. Empty texts are left out.
// Memory holds a few pages. Throws Error(Fault::input) naming the file, and the column or row, when the column is not
// there or is not text, a row is null, the file is damaged, or the texts are longer than a file of its size can mean
// (parquet_input.h).
bool for_each_text(const std::filesystem::path& file, const std::string& column,
                   const std::function<bool(std::string_view)>& on_text);

// The same for a file that is in memory already; `origin` is how errors name it.
bool for_each_text(std::span<const std::byte> bytes, const std::string& origin, const std::string& column,
                   const std::function<bool(std::string_view)>& on_text);

}  // namespace headscope
