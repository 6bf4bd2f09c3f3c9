// Zip archives, as far as .npz needs them: members stored or deflated, with the 64-bit fields (zip64).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/atomic_file.h"

namespace headscope {

struct ZipMember {
  std::string name;
  bool deflated = false;
  std::span<const std::byte> packed;
  std::uint64_t size = 0;      // unpacked, as the archive claims
  std::uint32_t checksum = 0;  // CRC-32 of the unpacked bytes
};

// The members in the order of the archive's directory, views of `bytes`. They lie in the file and do not overlap, and
// none claims more bytes than its packed bytes can give. Names may come twice. Throws Error(Fault::input) naming the
// file (`origin`).
std::vector<ZipMember> parse_zip(std::span<const std::byte> bytes, const std::string& origin);

// The unpacked bytes of a member, piece by piece. All functions throw Error(Fault::input); `where` names the member.
class ZipStream {
 public:
  ZipStream(const ZipMember& member, std::string where);
  ~ZipStream();
  ZipStream(const ZipStream&) = delete;
  ZipStream& operator=(const ZipStream&) = delete;

  // Fills `out`; an error when the member ends before.
  void read(std::span<std::byte> out);
  // An error when bytes are left or when the checksum differs.
  void finish();

 private:
  struct Inflater;

  void read_deflated(std::span<std::byte> out);

  const ZipMember& member_;
  std::string where_;
  std::unique_ptr<Inflater> inflater_;  // of a deflated member
  std::size_t position_ = 0;            // in a stored member
  std::uint32_t checksum_ = 0;
};

// Writes an archive member by member, atomically; the same members give the same bytes. All functions throw
// Error(Fault::runtime) naming the file and the system's reason.
class ZipWriter {
 public:
  explicit ZipWriter(const std::filesystem::path& file) : out_(file) {}

  // The content is `head`, then `body`.
  void add(const std::string& name, std::span<const std::byte> head, std::span<const std::byte> body, bool deflated);
  void commit();

 private:
  AtomicFile out_;
  std::string directory_;
  std::uint64_t members_ = 0;
};

}  // namespace headscope
