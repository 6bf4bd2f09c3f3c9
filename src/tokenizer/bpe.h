// Byte pair encoding: a word becomes the ids of its characters, and neighbours are merged, the pair with the lowest
// rank first, until no pair is in the list of merges.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace headscope {

struct BpePiece {
  std::string text;
  std::uint32_t id = 0;
};

struct BpeParts {
  std::vector<BpePiece> pieces;                             // texts and ids are unique; ids may have gaps
  std::vector<std::pair<std::string, std::string>> merges;  // by rank; of a pair that comes twice the last one counts
  std::optional<std::string> unknown;  // the piece for a character that is none; without it such characters vanish
  bool fuse_unknown = false;           // one unknown piece for several unknown characters in a row
  bool byte_fallback = false;          // a character that is no piece becomes the pieces <0xNN> of its bytes
  bool ignore_merges = false;          // a word that is a piece is that piece, whatever the merges say
  std::string continuing_prefix;       // before every character but the first of a word
  std::string end_suffix;              // behind the last character of a word
};

// Ids of larger vocabularies are not ids: no model has an embedding of that size.
inline constexpr std::uint32_t most_ids = 1U << 24;

class Bpe {
 public:
  // Throws Error(Fault::input) when two pieces have one text or one id, a piece is not UTF-8, an id is not below
  // most_ids, or a merge or the unknown piece names what is no piece.
  explicit Bpe(const BpeParts& parts);
  Bpe(Bpe&&) = default;
  Bpe& operator=(Bpe&&) = default;

  // Appends the ids of a word, which is valid UTF-8 of less than 2 GiB. n log n in its length.
  void encode(std::string_view word, std::vector<std::uint32_t>& ids);

  [[nodiscard]] std::optional<std::uint32_t> id_of(std::string_view piece) const;
  [[nodiscard]] std::optional<std::string_view> piece(std::uint32_t id) const;
  [[nodiscard]] std::size_t size() const { return ids_.size(); }
  [[nodiscard]] std::uint32_t largest_id() const { return static_cast<std::uint32_t>(pieces_.size()) - 1; }
  // Characters so far that are no piece and vanished, because there is no unknown piece.
  [[nodiscard]] std::int64_t vanished() const { return vanished_; }

 private:
  struct Merge {
    std::uint32_t rank = 0, id = 0;
  };
  // Merges by pair of ids: open addressing, since a word of n characters asks about 3 n times.
  class MergeTable {
   public:
    explicit MergeTable(std::size_t count);
    void insert(std::uint32_t left, std::uint32_t right, Merge merge);
    [[nodiscard]] const Merge* find(std::uint32_t left, std::uint32_t right) const;

   private:
    struct Slot {
      std::uint64_t pair = empty;
      Merge merge;
    };
    static constexpr std::uint64_t empty = ~std::uint64_t{0};
    [[nodiscard]] std::size_t place_of(std::uint64_t pair) const;
    std::vector<Slot> slots_;
  };
  struct Symbol {
    std::uint32_t id = 0;  // `merged`: it is part of one before
    std::int32_t previous = -1, next = -1;
  };
  static constexpr std::uint32_t merged = ~std::uint32_t{0};
  struct Candidate {
    std::uint32_t rank = 0, id = 0;
    std::int32_t place = 0;
  };
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct CachedWord {
    std::string word;
    std::vector<std::uint32_t> ids;
  };

  void add_pieces(const BpeParts& parts);
  void add_merges(const BpeParts& parts);
  void start(std::string_view word);
  [[nodiscard]] std::optional<std::uint32_t> id_of_character(std::string_view character) const;
  void start_character(std::string_view character, bool first, bool last);
  bool fall_back_to_bytes(std::string_view text);
  void add_unknown();
  void merge_all();
  void push(std::int32_t left, std::int32_t right);

  std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> ids_;
  std::vector<const std::string*> pieces_;  // by id; null in a gap. They point into ids_, which does not move them
  MergeTable merges_;
  bool fuse_unknown_, byte_fallback_, ignore_merges_;
  std::string continuing_prefix_, end_suffix_;
  std::optional<std::uint32_t> unknown_;
  std::vector<std::optional<std::uint32_t>> bytes_;  // ids of <0x00> to <0xFF>
  // Ids of single characters of the first plane, by code point; `merged` where one is no piece.
  std::vector<std::uint32_t> characters_;

  // Working memory of one word.
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
  std::string affixed_;
  bool unknown_pending_ = false;
  std::int64_t vanished_ = 0;
  std::vector<CachedWord> cache_;  // by hash
};

// The merges of a sentencepiece vocabulary, which gives scores instead: every way to cut a piece into two pieces, the
// piece with the highest score first, as published conversions do. Throws Error(Fault::input) when a score is not a
// number or a piece is very long.
std::vector<std::pair<std::string, std::string>> merges_by_score(const std::vector<BpePiece>& pieces,
                                                                 const std::vector<float>& scores);

}  // namespace headscope
