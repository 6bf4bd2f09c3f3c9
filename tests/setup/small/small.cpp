// One line from every package.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <arrow/api.h>
#include <fmt/format.h>
#include <pcre2.h>
#include <utf8proc.h>
#include <xxhash.h>
#include <yaml-cpp/yaml.h>
#include <zlib.h>

#include <CLI/CLI.hpp>
#include <Eigen/Dense>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

int main(int argc, char** argv) {
  CLI::App app;
  std::string text;
  app.add_option("--text", text);
  CLI11_PARSE(app, argc, argv);
  const YAML::Node list = YAML::Load(text);
  Eigen::Matrix2d matrix;
  matrix << list[0].as<double>(), list[1].as<double>(), list[2].as<double>(), list[3].as<double>();
  double determinant = 0;
  std::thread([&] { determinant = matrix.determinant(); }).join();
  nlohmann::json result;
  result["determinant"] = determinant;
  result["hash"] = fmt::format("{:016x}", XXH64("abc", 3, 0));
  result["checksum"] = fmt::format("{:08x}", crc32(0, reinterpret_cast<const Bytef*>("abc"), 3));
  result["arrow"] = arrow::int64()->ToString();
  std::uint32_t units = 0;
  pcre2_config(PCRE2_CONFIG_COMPILED_WIDTHS, &units);
  result["pcre2"] = (units & 1) == 1;
  result["lower"] = utf8proc_tolower(0xC4);
  std::puts(result.dump().c_str());
}
