// What is said of a command line that cannot be understood.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace headscope {

// One line: the word that no one knows with the nearest one that is known, or CLI11's own message.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace headscope
