#include "formats/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/atomic_file.h"
#include "formats/npy_header.h"
#include "formats/safetensors.h"
#include "support/expect_error.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;
using ::testing::ElementsAre;

const std::filesystem::path npz_oracles = HEADSCOPE_ORACLES;

std::span<const std::byte> npz_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// numpy wrote the archives; tests/oracle/make_formats_oracles.py has a safetensors writer of its own.
TEST(Npz, EveryArrayOfNumpyComesBackRowByRow) {
  const Safetensors expected(npz_oracles / "npz.safetensors");
  for (const char* name : {"stored.npz", "deflated.npz", "zip64.npz"}) {
    const Npz file(npz_oracles / name);
    EXPECT_EQ(file.names().size(), expected.tensors().size());
    for (const TensorView& tensor : expected.tensors()) {
      SCOPED_TRACE(fmt::format("{} of {}", tensor.name, name));
      ASSERT_TRUE(file.contains(tensor.name));
      const NumpyArray array = file.get(tensor.name);
      EXPECT_EQ(array.name, tensor.name);
      EXPECT_EQ(array.type, tensor.type);
      EXPECT_EQ(array.shape, tensor.shape);
      EXPECT_TRUE(std::equal(array.bytes.begin(), array.bytes.end(), tensor.bytes.begin(), tensor.bytes.end()));
    }
  }
}

TEST(Npz, AnAbsentArrayIsNamedWithTheNearest) {
  const Npz file(npz_oracles / "stored.npz");
  expect_error(Fault::input, "stored.npz: there is no array 'vectors'; did you mean 'vector'?",
               [&] { (void)file.get("vectors"); });
}

std::string random_bytes(std::size_t count) {
  std::string bytes;
  std::uint64_t state = 1;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    bytes += static_cast<char>(state >> 56);
  }
  return bytes;
}

TEST(Npz, WhatIsWrittenComesBackAndTheSameBytesAreWrittenAgain) {
  const TemporaryFolder folder;
  const std::string values = random_bytes(1 << 20) + std::string(1 << 20, 'z');
  const std::vector<TensorView> arrays = {{"a/ü", TensorType::f64, {1 << 17, 2}, npz_bytes(values)},
                                          {"one", TensorType::boolean, {}, npz_bytes(values).first(1)},
                                          {"none", TensorType::u16, {0, 5}, {}}};
  for (const NpzPacking packing : {NpzPacking::stored, NpzPacking::deflated}) {
    write_npz(folder / "a.npz", arrays, packing);
    write_npz(folder / "b.npz", arrays, packing);
    EXPECT_EQ(read_file(folder / "a.npz"), read_file(folder / "b.npz"));
    EXPECT_EQ(std::filesystem::file_size(folder / "a.npz") < values.size(), packing == NpzPacking::deflated);
    const Npz file(folder / "a.npz");
    EXPECT_THAT(file.names(), ElementsAre("a/ü", "one", "none"));
    for (const TensorView& array : arrays) {
      const NumpyArray read = file.get(array.name);
      EXPECT_EQ(read.type, array.type);
      EXPECT_EQ(read.shape, array.shape);
      EXPECT_TRUE(std::equal(read.bytes.begin(), read.bytes.end(), array.bytes.begin(), array.bytes.end()));
    }
  }
  expect_error(Fault::runtime, "NumPy has no name for the type BF16", [&] {
    write_npz(folder / "c.npz", std::vector<TensorView>{{"x", TensorType::bf16, {1}, npz_bytes("ab")}});
  });
  expect_error(Fault::runtime, "array 'one' comes twice", [&] {
    write_npz(folder / "c.npz", std::vector<TensorView>{arrays[1], arrays[1]});
  });
  EXPECT_FALSE(std::filesystem::exists(folder / "c.npz"));
  const test::FileSizeLimit limit(1 << 20);
  expect_error(Fault::runtime, "File too large", [&] { write_npz(folder / "c.npz", arrays); });
}

// The bytes of a .npy file made by hand.
std::string npy(const std::string& dictionary, const std::string& values, char version = 1) {
  std::string bytes = std::string("\x93NUMPY") + version + '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) bytes += static_cast<char>(dictionary.size() >> (8 * i) & 255);
  return bytes + dictionary + values;
}

NumpyArray parse_array(const std::string& bytes) {
  return parse_npy(npz_bytes(bytes), "x", "x.npy");
}

TEST(Npz, TheHeaderOfAnArrayMayBeWrittenInSeveralWays) {
  for (const char version : {'\1', '\2', '\3'}) {
    const auto array =
        parse_array(npy("{\"shape\":(2L,1),  'fortran_order':True,\n'descr':'>u2'}   \n", "abcd", version));
    EXPECT_EQ(array.type, TensorType::u16);
    EXPECT_THAT(array.shape, ElementsAre(2, 1));
    EXPECT_THAT(read_integers(array.view()), ElementsAre(0x6162, 0x6364));
  }
  EXPECT_THAT(
      parse_array(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", std::string("\0\1\2", 3))).shape,
      ElementsAre(3));
  EXPECT_THAT(parse_array(npy("{'descr': '|i1', 'fortran_order': False, 'shape': ()}", "a")).shape, ElementsAre());
}

TEST(Npz, ADamagedArrayIsRefusedInOneLine) {
  const auto refused = [](const std::string& bytes, const std::string& message) {
    SCOPED_TRACE(message);
    expect_error(Fault::input, message, [&] { parse_array(bytes); });
    expect_error(Fault::input, "x.npy: ", [&] { parse_array(bytes); });
  };
  const auto with = [](const std::string& descr, const std::string& shape) {
    return npy("{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }\n", "abcd");
  };
  EXPECT_EQ(parse_array(with("'<f4'", "(1,)")).bytes.size(), 4U);
  refused("", "0 bytes are too few");
  refused(std::string(20, 'x'), "is not an array of NumPy");
  refused(npy("{}", "", 4), "has version 4.0 of the .npy format");
  refused(std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12), "claims a header of 4294967295 bytes");
  refused(std::string("\x93NUMPY\1\0\xff\x7f", 10), "ends after 10 bytes");
  refused(with("'<f4'", "(2,)"), "its shape [2] of F32 does not fit 4 bytes");
  refused(with("'<f4'", "(4294967296, 4294967296)"), "does not fit 4 bytes");
  refused(with("'<f4'", "(4611686018427387905,)"), "does not fit 4 bytes");
  refused(with("'<f4'", "(9223372036854775808,)"), "expected a dimension from 0 to 2^63 - 1");
  refused(with("'<f4'", "(-1,)"), "expected a dimension");
  refused(with("'<f4'", "(1 1)"), "expected ','");
  refused(with("'<f4'", "[1]"), "expected '('");
  refused(with("'|O'", "(1,)"), "is of NumPy's type '|O' (Python objects)");
  refused(with("'<c8'", "(1,)"), "is of NumPy's type '<c8'; expected");
  refused(with("'?f4'", "(1,)"), "is of NumPy's type '?f4'");
  refused(with("''", "(1,)"), "is of NumPy's type ''");
  refused(with("[('a', '<f4')]", "(1,)"), "is an array of records");
  refused(npy("{'descr': '<f4", ""), "its header is damaged at character 10; expected a text in quotes");
  refused(npy("{'descr': '<f4', 'shape': (1,)}", "abcd"), "lacks descr, fortran_order or shape");
  refused(npy("{'descr': '<f4', 'descr': '<f4'}", "abcd"), "has an unexpected 'descr'");
  refused(npy("{'x': 1}", "abcd"), "has an unexpected 'x'");
  refused(npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "abcd"), "expected True or False");
  refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "abcd"), "expected the end");
  std::string ones = "(";
  for (int i = 0; i < 65; ++i) ones += "1,";
  refused(with("'<f4'", ones + ")"), "at most 64 dimensions");
}

std::string small_npz(NpzPacking packing) {
  const TemporaryFolder folder;
  write_npz(folder / "a",
            std::vector<TensorView>{{"a", TensorType::i8, {4}, npz_bytes("aaaa")},
                                    {"b", TensorType::i8, {2, 2}, npz_bytes("abcd")}},
            packing);
  return read_file(folder / "a");
}

void read_all(const std::string& bytes) {
  for (const ZipMember& member : parse_npz(npz_bytes(bytes), "x.npz")) unpack_array(member, "x.npz");
}

TEST(Npz, ACutArchiveIsRefusedAtEveryLength) {
  for (const NpzPacking packing : {NpzPacking::stored, NpzPacking::deflated}) {
    const std::string whole = small_npz(packing);
    read_all(whole);
    for (std::size_t length = 0; length < whole.size(); ++length)
      expect_error(Fault::input, "x.npz: ", [&] { read_all(whole.substr(0, length)); });
  }
}

// A changed byte is refused, or it stands where nothing depends on it: dates, versions and attributes.
TEST(Npz, AChangedByteChangesNoValue) {
  for (const NpzPacking packing : {NpzPacking::stored, NpzPacking::deflated}) {
    const std::string whole = small_npz(packing);
    std::size_t refused = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ 0x55);
      try {
        for (const ZipMember& member : parse_npz(npz_bytes(changed), "x.npz")) {
          const NumpyArray array = unpack_array(member, "x.npz");
          const std::string values(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
          EXPECT_EQ(values, array.name == "a" ? "aaaa" : "abcd") << "byte " << i;
        }
      } catch (const Error& error) {
        EXPECT_EQ(error.fault(), Fault::input);
        ++refused;
      }
    }
    EXPECT_GT(refused, whole.size() / 2);
  }
}

// Where the directory's entry of the first member begins.
std::size_t first_entry(const std::string& bytes) {
  return bytes.find("PK\1\2");
}

TEST(Npz, DamagedArchivesAreRefusedBeforeMemoryIsTaken) {
  const auto refused = [](const std::string& bytes, const std::string& message) {
    SCOPED_TRACE(message);
    expect_error(Fault::input, message, [&] { read_all(bytes); });
    expect_error(Fault::input, "x.npz: ", [&] { read_all(bytes); });
  };
  const auto with = [](std::string bytes, std::size_t place, std::string_view replacement) {
    return bytes.replace(place, replacement.size(), replacement);
  };
  const std::string stored = small_npz(NpzPacking::stored), deflated = small_npz(NpzPacking::deflated);
  const std::size_t entry = first_entry(stored), second = stored.find("PK\1\2", entry + 1);
  const std::string huge(7, '\xff'), eight_zeros(8, '\0');
  refused("PK", "damaged or not a zip archive");
  refused(std::string(100, 'x'), "it has no directory at its end");
  refused(with(stored, entry + 8, "\1"), "'a.npy' is encrypted");
  refused(with(stored, entry + 10, "\x0c"), "'a.npy' is packed by method 12");
  refused(with(stored, entry + 16, "\1"), "array 'a': its bytes have the checksum");
  refused(with(stored, entry + 46, "b"), "member 'b.npy' has another name at its place");
  // The 64-bit sizes stand behind the name and four bytes.
  const std::size_t sizes = entry + 46 + 5 + 4;
  refused(with(stored, sizes, huge), "member 'a.npy' is stored in");
  refused(with(stored, sizes + 8, huge), "member 'a.npy' at byte");
  refused(with(stored, sizes + 16, huge), "member 'a.npy' is said to be at byte 72057594037927935");
  refused(with(deflated, first_entry(deflated) + 46 + 5 + 4, "\xff\xff\xff\xff"),
          "member 'a.npy' claims 4294967295 bytes, more than");
  refused(with(deflated, first_entry(deflated) + 46 + 5 + 4, "\xff"), "array 'a': its shape [4] of I8 does not fit");
  // Both entries point at the first member: under its own name, or under the other's.
  std::string same = with(stored, second + 46 + 5 + 4 + 16, eight_zeros);
  refused(same, "member 'b.npy' has another name at its place");
  same = with(same, second + 46, "a");
  refused(same, "the members 'a.npy' and 'a.npy' overlap");
  std::string twice = with(stored, second + 46, "a");
  twice = with(twice, stored.find("b.npy"), "a");
  refused(twice, "array 'a' comes twice");
  const std::size_t end64 = stored.find("PK\6\6");
  refused(with(stored, end64 + 32, huge), "it claims 72057594037927935 members");
  refused(with(stored, end64 + 40, huge), "its directory of 72057594037927935 bytes is said to be");
  refused(with(stored, end64 + 48, huge), "is said to be at byte 72057594037927935");
  refused(with(stored, end64 + 32, "\1"), "bytes follow the last entry of its directory");
}

}  // namespace
}  // namespace headscope
