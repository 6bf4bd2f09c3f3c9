#include "tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "core/error.h"
#include "tokenizer/utf8.h"

namespace headscope {
namespace {

constexpr std::size_t cached_words = 1 << 15;    // some megabytes
constexpr std::size_t longest_cached_word = 64;  // bytes; longer ones seldom come again

}  // namespace

Bpe::MergeTable::MergeTable(std::size_t count) : slots_(std::bit_ceil(2 * count + 1)) {}

std::size_t Bpe::MergeTable::place_of(std::uint64_t pair) const {
  const std::size_t mask = slots_.size() - 1;
  std::uint64_t hash = pair * 0x9E3779B97F4A7C15U;
  auto place = static_cast<std::size_t>(hash ^ hash >> 32) & mask;
  while (slots_[place].pair != empty && slots_[place].pair != pair) place = (place + 1) & mask;
  return place;
}

void Bpe::MergeTable::insert(std::uint32_t left, std::uint32_t right, Merge merge) {
  const std::uint64_t pair = std::uint64_t{left} << 32 | right;
  slots_[place_of(pair)] = {pair, merge};
}

const Bpe::Merge* Bpe::MergeTable::find(std::uint32_t left, std::uint32_t right) const {
  const std::uint64_t pair = std::uint64_t{left} << 32 | right;
  const Slot& slot = slots_[place_of(pair)];
  return slot.pair == pair ? &slot.merge : nullptr;
}

Bpe::Bpe(const BpeParts& parts)
    : merges_(parts.merges.size()),
      fuse_unknown_(parts.fuse_unknown),
      byte_fallback_(parts.byte_fallback),
      ignore_merges_(parts.ignore_merges),
      continuing_prefix_(parts.continuing_prefix),
      end_suffix_(parts.end_suffix),
      cache_(cached_words) {
  if (parts.pieces.empty()) fail_input("the vocabulary is empty");
  add_pieces(parts);
  add_merges(parts);
  if (parts.unknown) {
    unknown_ = id_of(*parts.unknown);
    if (!unknown_) fail_input("the unknown piece '{}' is not in the vocabulary", excerpt(*parts.unknown, 60));
  }
  if (byte_fallback_)
    for (int byte = 0; byte < 256; ++byte) bytes_.push_back(id_of(fmt::format("<0x{:02X}>", byte)));
}

void Bpe::add_pieces(const BpeParts& parts) {
  ids_.reserve(parts.pieces.size());
  std::uint32_t largest = 0;
  for (const BpePiece& piece : parts.pieces) {
    if (piece.id >= most_ids)
      fail_input("the piece '{}' has id {}; expected less than {}", excerpt(piece.text, 60), piece.id, most_ids);
    if (first_invalid_utf8(piece.text)) fail_input("the piece with id {} is not UTF-8", piece.id);
    largest = std::max(largest, piece.id);
  }
  pieces_.resize(std::size_t{largest} + 1);
  characters_.assign(0x10000, merged);
  for (const BpePiece& piece : parts.pieces) {
    const auto [place, added] = ids_.emplace(piece.text, piece.id);
    if (!added) fail_input("the piece '{}' is twice in the vocabulary", excerpt(piece.text, 60));
    const std::string*& at_id = pieces_[piece.id];
    if (at_id != nullptr)
      fail_input("the pieces '{}' and '{}' both have id {}", excerpt(*at_id, 60), excerpt(piece.text, 60), piece.id);
    at_id = &place->first;
    std::size_t end = 0;
    const char32_t first = piece.text.empty() ? 0 : next_code_point(piece.text, end);
    if (end > 0 && end == piece.text.size() && first < characters_.size()) characters_[first] = piece.id;
  }
}

void Bpe::add_merges(const BpeParts& parts) {
  const auto id_in = [&](std::size_t rank, std::string_view text) {
    const auto id = id_of(text);
    if (!id)
      fail_input("merge {} ('{}' and '{}') names '{}', which is not in the vocabulary", rank,
                 excerpt(parts.merges[rank].first, 60), excerpt(parts.merges[rank].second, 60), excerpt(text, 60));
    return *id;
  };
  std::string whole;
  for (std::size_t rank = 0; rank < parts.merges.size(); ++rank) {
    const auto& [left, right] = parts.merges[rank];
    const std::uint32_t left_id = id_in(rank, left), right_id = id_in(rank, right);
    if (right.size() < continuing_prefix_.size())
      fail_input("merge {}: '{}' is shorter than the prefix '{}' of pieces inside words", rank, excerpt(right, 60),
                 excerpt(continuing_prefix_, 60));
    whole = left;
    whole += std::string_view(right).substr(continuing_prefix_.size());
    merges_.insert(left_id, right_id, {static_cast<std::uint32_t>(rank), id_in(rank, whole)});
  }
}

std::optional<std::uint32_t> Bpe::id_of(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string_view> Bpe::piece(std::uint32_t id) const {
  if (id >= pieces_.size() || pieces_[id] == nullptr) return std::nullopt;
  return *pieces_[id];
}

void Bpe::encode(std::string_view word, std::vector<std::uint32_t>& ids) {
  if (word.empty()) return;
  constexpr std::size_t longest_word = (std::size_t{1} << 31) - 1;
  if (word.size() > longest_word) fail_input("a word of {} bytes; expected at most {}", word.size(), longest_word);
  if (ignore_merges_)
    if (const auto whole = id_of(word)) {
      ids.push_back(*whole);
      return;
    }
  const bool cached = word.size() <= longest_cached_word;
  CachedWord& entry = cache_[std::hash<std::string_view>()(word) % cache_.size()];
  if (cached && entry.word == word) {
    ids.insert(ids.end(), entry.ids.begin(), entry.ids.end());
    return;
  }
  const std::int64_t vanished_before = vanished_;
  start(word);
  merge_all();
  const std::size_t before = ids.size();
  for (const Symbol& symbol : symbols_)
    if (symbol.id != merged) ids.push_back(symbol.id);
  if (!cached || vanished_ != vanished_before) return;  // what vanishes is counted each time
  entry.word = word;
  entry.ids.assign(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end());
}

void Bpe::start(std::string_view word) {
  symbols_.clear();
  unknown_pending_ = false;
  for (std::size_t begin = 0; begin < word.size();) {
    const std::size_t length = utf8_length(word[begin]);
    start_character(word.substr(begin, length), begin == 0, begin + length == word.size());
    begin += length;
  }
  add_unknown();
  const auto count = static_cast<std::int32_t>(symbols_.size());
  for (std::int32_t i = 0; i < count; ++i) {
    symbols_[static_cast<std::size_t>(i)].previous = i - 1;
    symbols_[static_cast<std::size_t>(i)].next = i + 1 < count ? i + 1 : -1;
  }
}

std::optional<std::uint32_t> Bpe::id_of_character(std::string_view character) const {
  std::size_t place = 0;
  const char32_t code_point = next_code_point(character, place);
  if (place != character.size() || code_point >= characters_.size()) return id_of(character);
  const std::uint32_t id = characters_[code_point];
  return id == merged ? std::nullopt : std::optional(id);
}

void Bpe::start_character(std::string_view character, bool first, bool last) {
  const bool prefixed = !first && !continuing_prefix_.empty(), suffixed = last && !end_suffix_.empty();
  if (prefixed || suffixed) {
    affixed_ = prefixed ? continuing_prefix_ : "";
    affixed_ += character;
    if (suffixed) affixed_ += end_suffix_;
    character = affixed_;
  }
  if (const auto id = id_of_character(character)) {
    add_unknown();
    symbols_.push_back({.id = *id});
  } else if (byte_fallback_ && fall_back_to_bytes(character)) {
    // An unknown piece that waits stays behind these, as in the tokenizers library.
  } else if (unknown_) {
    if (!fuse_unknown_) add_unknown();
    unknown_pending_ = true;
  } else {
    ++vanished_;
  }
}

bool Bpe::fall_back_to_bytes(std::string_view text) {
  const auto id_at = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
  if (!std::all_of(text.begin(), text.end(), [&](char byte) { return id_at(byte).has_value(); })) return false;
  for (const char byte : text) symbols_.push_back({.id = *id_at(byte)});
  return true;
}

void Bpe::add_unknown() {
  if (unknown_pending_) symbols_.push_back({.id = *unknown_});
  unknown_pending_ = false;
}

// A heap of candidates and a list of symbols linked both ways: each merge adds two candidates at most.
void Bpe::merge_all() {
  const auto later = [](const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.place > b.place;
  };
  const auto symbol_at = [&](std::int32_t place) -> Symbol& { return symbols_[static_cast<std::size_t>(place)]; };
  heap_.clear();
  for (std::int32_t i = 0; i + 1 < static_cast<std::int32_t>(symbols_.size()); ++i) push(i, i + 1);
  std::make_heap(heap_.begin(), heap_.end(), later);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Candidate best = heap_.back();
    heap_.pop_back();
    Symbol& left = symbol_at(best.place);
    if (left.id == merged || left.next < 0) continue;
    Symbol& right = symbol_at(left.next);
    const Merge* merge = merges_.find(left.id, right.id);
    if (merge == nullptr || merge->id != best.id) continue;  // the pair has changed since
    left.id = best.id;
    left.next = right.next;
    right.id = merged;
    if (left.next >= 0) symbol_at(left.next).previous = best.place;
    for (const auto& [first, second] : {std::pair(left.previous, best.place), std::pair(best.place, left.next)}) {
      if (first < 0 || second < 0) continue;
      const std::size_t before = heap_.size();
      push(first, second);
      if (heap_.size() > before) std::push_heap(heap_.begin(), heap_.end(), later);
    }
  }
}

void Bpe::push(std::int32_t left, std::int32_t right) {
  const Merge* merge =
      merges_.find(symbols_[static_cast<std::size_t>(left)].id, symbols_[static_cast<std::size_t>(right)].id);
  if (merge != nullptr) heap_.push_back({merge->rank, merge->id, left});
}

std::vector<std::pair<std::string, std::string>> merges_by_score(const std::vector<BpePiece>& pieces,
                                                                 const std::vector<float>& scores) {
  constexpr std::size_t longest_scored_piece = 1024;  // every cut is tried; published ones have a few dozen bytes
  HEADSCOPE_CHECK(pieces.size() == scores.size(), "{} pieces, {} scores", pieces.size(), scores.size());
  std::unordered_map<std::string_view, std::uint32_t> ids;
  for (const BpePiece& piece : pieces) ids.emplace(piece.text, piece.id);
  struct Cut {
    float score;
    std::uint32_t left_id, right_id;
    std::string_view left, right;
  };
  std::vector<Cut> cuts;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::string_view whole = pieces[i].text;
    if (whole.size() > longest_scored_piece || first_invalid_utf8(whole))
      fail_input("piece {} has {} bytes; expected UTF-8 of at most {}", pieces[i].id, whole.size(),
                 longest_scored_piece);
    if (std::isnan(scores[i])) fail_input("the score of piece {} is not a number", pieces[i].id);
    std::vector<Cut> of_piece;
    for (std::size_t at = 0; at < whole.size(); at += utf8_length(whole[at])) {
      const auto left = ids.find(whole.substr(0, at)), right = ids.find(whole.substr(at));
      if (at > 0 && left != ids.end() && right != ids.end())
        of_piece.push_back({scores[i], left->second, right->second, left->first, right->first});
    }
    std::sort(of_piece.begin(), of_piece.end(), [](const Cut& a, const Cut& b) {
      return std::pair(a.left_id, a.right_id) < std::pair(b.left_id, b.right_id);
    });
    cuts.insert(cuts.end(), of_piece.begin(), of_piece.end());
  }
  std::stable_sort(cuts.begin(), cuts.end(), [](const Cut& a, const Cut& b) { return a.score > b.score; });
  std::vector<std::pair<std::string, std::string>> merges;
  merges.reserve(cuts.size());
  for (const Cut& cut : cuts) merges.emplace_back(cut.left, cut.right);
  return merges;
}

}  // namespace headscope
