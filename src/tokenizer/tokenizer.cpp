#include "tokenizer/tokenizer.h"

#include <algorithm>

#include "core/error.h"
#include "tokenizer/utf8.h"

namespace headscope {
namespace {

// The same token again, which is no contradiction. Ids are given to it, and do not count.
bool said_twice(const AddedToken& a, const AddedToken& b) {
  return a.special == b.special && a.single_word == b.single_word && a.strip_left == b.strip_left &&
         a.strip_right == b.strip_right && a.normalized == b.normalized;
}

}  // namespace

Tokenizer::Tokenizer(TokenizerParts parts, std::string name)
    : name_(std::move(name)),
      bpe_(parts.bpe),
      normalizer_(std::move(parts.normalizer)),
      pre_tokenizer_(std::move(parts.pre_tokenizer)),
      templates_(std::move(parts.templates)),
      decoder_(std::move(parts.decoder)),
      warnings_(std::move(parts.warnings)) {
  vocabulary_ = text_vocabulary_ = std::int64_t{bpe_.largest_id()} + 1;
  add_tokens(std::move(parts.added));
  build_finders();
  check_templates();
  begin_of_text_ = border(parts.begin_of_text);
  end_of_text_ = border(parts.end_of_text);
}

// Ids are given as the tokenizers library gives them: that of the piece with the same content, or the next free one
// behind the count of pieces. Where the file says another id, that is a warning.
void Tokenizer::add_tokens(std::vector<AddedToken> added) {
  added_.reserve(added.size());
  auto next = static_cast<std::uint32_t>(bpe_.size());
  std::unordered_map<std::uint32_t, const AddedToken*> said;
  for (AddedToken& token : added) {
    if (token.content.empty()) continue;
    if (const auto same = by_content_.find(token.content); same != by_content_.end()) {
      if (!said_twice(added_[same->second], token))
        fail_input("the added token '{}' is there twice", excerpt(token.content, 60));
      continue;
    }
    const auto [other, first] = said.emplace(token.id, &token);
    if (!first)
      fail_input("the added tokens '{}' and '{}' both have id {}", excerpt(other->second->content, 60),
                 excerpt(token.content, 60), token.id);
    const auto known = bpe_.id_of(token.content);
    const std::uint32_t id = known ? *known : next++;
    if (id != token.id)
      warnings_.push_back(
          fmt::format("the added token '{}' has id {} in the file; by its place in the vocabulary it is {}",
                      excerpt(token.content, 60), token.id, id));
    if (!known && bpe_.piece(id))
      fail_input("the added token '{}' has id {}, which is that of the piece '{}'", excerpt(token.content, 60), id,
                 excerpt(*bpe_.piece(id), 60));
    added_.push_back(token);
    added_.back().id = id;
    by_content_.emplace(added_.back().content, added_.size() - 1);
    by_id_.emplace(id, added_.size() - 1);
    vocabulary_ = std::max(vocabulary_, std::int64_t{id} + 1);
    if (!token.special) text_vocabulary_ = std::max(text_vocabulary_, std::int64_t{id} + 1);
  }
}

void Tokenizer::build_finders() {
  std::vector<const AddedToken*> plain, normalized;
  std::vector<std::string> plain_contents, normalized_contents;
  for (const AddedToken& token : added_) {
    NormalizedText content{token.content, true};
    if (token.normalized) normalize(normalizer_, content);
    written_.push_back(content.text);
    (token.normalized ? normalized : plain).push_back(&token);
    (token.normalized ? normalized_contents : plain_contents).push_back(std::move(content.text));
  }
  in_text_ = AddedTokenFinder(plain, plain_contents);
  in_normalized_ = AddedTokenFinder(normalized, normalized_contents);
}

void Tokenizer::check_templates() const {
  for (const Template& parts : templates_)
    for (const TemplatePart& part : parts)
      if (const auto* ids = std::get_if<std::vector<std::uint32_t>>(&part))
        for (const std::uint32_t id : *ids)
          if (id >= vocabulary_)
            fail_input("the post-processor adds the id {}; expected less than {}", id, vocabulary_);
}

std::optional<std::uint32_t> Tokenizer::border(std::string_view content) {
  const auto id = content.empty() ? std::nullopt : id_of(content);
  if (!id && !content.empty())
    warnings_.push_back(fmt::format("'{}', named as the begin or end of a text, is not a token", excerpt(content, 60)));
  return id;
}

std::vector<std::uint32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) {
  std::vector<std::uint32_t> ids;
  encode(text, ids, options);
  return ids;
}

void Tokenizer::encode(std::string_view text, std::vector<std::uint32_t>& ids, const EncodeOptions& options) {
  if (const auto wrong = first_invalid_utf8(text))
    fail_input("{}: byte {} is not UTF-8; expected a text in UTF-8", options.place, *wrong);
  if (pre_tokenizer_.asks_categories()) newer_count_ += newer_.count(text);
  std::vector<std::uint32_t> of_text;
  std::vector<AddedTokenMatch> parts;
  in_text_.split(text, parts);
  for (const AddedTokenMatch& part : parts) {
    if (part.token != nullptr)
      of_text.push_back(part.token->id);
    else
      encode_normalized({std::string(text.substr(part.range.begin, part.range.end - part.range.begin)),
                         /*at_start=*/part.range.begin == 0},
                        of_text);
  }
  if (of_text.size() > options.most) of_text.resize(options.most);
  if (options.add_special) {
    const std::size_t added = added_by_templates();
    of_text.resize(std::min(of_text.size(), options.most > added ? options.most - added : 0));
  }
  for (const Template& one : templates_) {
    std::vector<std::uint32_t> filled;
    for (const TemplatePart& part : one) {
      const auto* added = std::get_if<std::vector<std::uint32_t>>(&part);
      if (added != nullptr && !options.add_special) continue;
      const auto& source = added != nullptr ? *added : of_text;
      filled.insert(filled.end(), source.begin(), source.end());
    }
    of_text = std::move(filled);
  }
  ids.insert(ids.end(), of_text.begin(), of_text.end());
}

std::size_t Tokenizer::added_by_templates() const {
  std::size_t added = 0;
  for (const Template& one : templates_)
    for (const TemplatePart& part : one)
      if (const auto* ids = std::get_if<std::vector<std::uint32_t>>(&part)) added += ids->size();
  return added;
}

void Tokenizer::encode_normalized(NormalizedText text, std::vector<std::uint32_t>& ids) {
  normalize(normalizer_, text);
  std::vector<AddedTokenMatch> parts;
  in_normalized_.split(text.text, parts);
  if (parts.size() == 1 && parts[0].token == nullptr) {  // the usual case, without a copy
    encode_words(std::move(text), ids);
    return;
  }
  for (const AddedTokenMatch& part : parts) {
    if (part.token != nullptr)
      ids.push_back(part.token->id);
    else
      encode_words({text.text.substr(part.range.begin, part.range.end - part.range.begin),
                    text.at_start && part.range.begin == 0},
                   ids);
  }
}

void Tokenizer::encode_words(NormalizedText text, std::vector<std::uint32_t>& ids) {
  pre_tokenizer_.cut(text, words_);
  for (const TextRange& word : words_)
    bpe_.encode(std::string_view(text.text).substr(word.begin, word.end - word.begin), ids);
}

std::string Tokenizer::decode(std::span<const std::uint32_t> ids, bool skip_special) {
  std::vector<std::string> pieces;
  for (const std::uint32_t id : ids) {
    const auto by_id = by_id_.find(id);
    const auto text = by_id != by_id_.end() ? std::optional<std::string_view>(written_[by_id->second]) : bpe_.piece(id);
    if (!text) continue;
    const auto added = by_content_.find(*text);
    if (skip_special && added != by_content_.end() && added_[added->second].special) continue;
    pieces.emplace_back(*text);
  }
  if (decoder_) return decode_pieces(*decoder_, std::move(pieces));
  return fmt::format("{}", fmt::join(pieces, " "));
}

std::optional<std::uint32_t> Tokenizer::id_of(std::string_view piece) const {
  const auto added = by_content_.find(piece);
  return added != by_content_.end() ? std::optional(added_[added->second].id) : bpe_.id_of(piece);
}

std::optional<std::string> Tokenizer::token_bytes(std::uint32_t id) const {
  const auto text = piece(id);
  if (!text) return std::nullopt;
  if (by_id_.contains(id) || !decoder_) return std::string(*text);
  return bytes_of_piece(*decoder_, std::string(*text));
}

std::optional<std::string_view> Tokenizer::piece(std::uint32_t id) const {
  const auto added = by_id_.find(id);
  return added != by_id_.end() ? std::optional<std::string_view>(added_[added->second].content) : bpe_.piece(id);
}

EncodeCounts Tokenizer::counts() const {
  return {newer_count_, bpe_.vanished()};
}

}  // namespace headscope
