#include "data/corpus.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/bounds.h"
#include "core/error.h"
#include "data/documents.h"
#include "data/language.h"
#include "data/split.h"
#include "data/text_tokenizer.h"
#include "data/token_file.h"
#include "formats/content_hash.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

// What is read of one source.
struct ReadOptions {
  WantedTokens wanted;
  double validation_share = 0;
  std::int64_t most_read = std::numeric_limits<std::int64_t>::max();  // tokens, also those that are left out
};

// Documents, and those of them that are longer than the range.
class DocumentCount {
 public:
  explicit DocumentCount(std::int64_t range) : range_(range) {}

  // `tokens`: without the one that ends it.
  void add(std::int64_t tokens) {
    ++all_;
    if (range_ != 0 && tokens > range_) ++beyond_;
  }
  void write(Corpus& corpus) const {
    corpus.documents_read = all_;
    corpus.documents_beyond_range = beyond_;
  }

 private:
  std::int64_t range_, all_ = 0, beyond_ = 0;
};

// Where each piece begins when they lie one after another.
std::vector<std::int64_t> starts_of(std::span<const TokenRange> ranges) {
  std::vector<std::int64_t> starts;
  std::int64_t next = 0;
  for (const TokenRange& range : ranges) {
    starts.push_back(next);
    next += range.count;
  }
  return starts;
}

// The two parts as views of the store.
Corpus corpus_of(std::shared_ptr<const void> owner, TokenSpan store, SplitRanges& split, const std::string& origin,
                 bool cut) {
  if (!cut) split.finish(origin);
  Corpus corpus;
  corpus.cut = cut;
  corpus.train = Tokens(owner, store, split.train());
  corpus.validation = Tokens(std::move(owner), store, split.validation());
  corpus.train_documents = static_cast<std::int64_t>(split.train().size());
  corpus.validation_starts = starts_of(split.validation());
  corpus.source = origin;
  return corpus;
}

// Documents of text, packed into a buffer and split.
class TextPacker {
 public:
  TextPacker(const ReadOptions& reading, TextTokenizer& tokenizer)
      : tokenizer_(tokenizer),
        split_(reading.validation_share, reading.wanted),
        buffer_(std::make_shared<TokenBuffer>(tokenizer.vocabulary())),
        left_to_read_(reading.most_read),
        count_(reading.wanted.range) {}

  void add(std::string_view document, const DocumentPlace& place) {
    tokens_.clear();
    tokenizer_.encode_document(document, place, tokens_);
    left_to_read_ -= static_cast<std::int64_t>(tokens_.size());
    count_.add(static_cast<std::int64_t>(tokens_.size()) - 1);
    const std::uint64_t hash = split_hash(document);
    std::span<const std::uint32_t> left = tokens_;
    for (std::uint64_t piece = 0; !left.empty(); ++piece) {
      const auto taken = left.first(std::min<std::size_t>(left.size(), longest_piece));
      left = left.subspan(taken.size());
      const std::uint64_t piece_of_hash = piece_hash(hash, piece);
      const TokenRange range{buffer_->size(), static_cast<std::int64_t>(taken.size())};
      if (split_.wants(piece_of_hash)) buffer_->append(taken);
      split_.add(piece_of_hash, range);
    }
  }

  [[nodiscard]] const SplitRanges& split() const { return split_; }
  [[nodiscard]] bool wants_more() const { return !split_.full() && left_to_read_ > 0; }

  // `ended`: there are no further documents.
  Corpus finish(const std::string& origin, bool ended) {
    Corpus corpus = corpus_of(buffer_, buffer_->span(), split_, origin, /*cut=*/!ended && !split_.full());
    corpus.tokenizer = tokenizer_.name();
    corpus.vocabulary = tokenizer_.vocabulary();
    corpus.text_vocabulary = tokenizer_.text_vocabulary();
    count_.write(corpus);
    return corpus;
  }

 private:
  TextTokenizer& tokenizer_;
  SplitRanges split_;
  std::shared_ptr<TokenBuffer> buffer_;
  std::int64_t left_to_read_;
  DocumentCount count_;
  std::vector<std::uint32_t> tokens_;
};

std::string language_origin(std::uint64_t seed) {
  return fmt::format("embedded language, seed {}", seed);
}

Corpus load_language(std::uint64_t seed, const ReadOptions& reading) {
  const Language language(seed);
  TextTokenizer bytes(byte_tokenizer::name);
  TextPacker packer(reading, bytes);
  double nats = 0;
  for (std::uint64_t index = 0; !packer.split().full(); ++index) {
    const LanguageDocument document = language.document(index);
    const std::size_t before = packer.split().validation().size();
    packer.add(document.text, {});
    if (packer.split().validation().size() > before) nats += document.nats;
  }
  Corpus corpus = packer.finish(language_origin(seed), /*ended=*/false);
  corpus.unigram_entropy = language_unigram_entropy();
  if (corpus.validation.size() > 0) corpus.true_entropy = nats / static_cast<double>(corpus.validation.size());
  return corpus;
}

Corpus load_texts(const fs::path& path, const DataOptions& options, const ReadOptions& reading,
                  TextTokenizer& tokenizer) {
  TextPacker packer(reading, tokenizer);
  bool any = false;
  const auto add = [&](std::string_view document, const DocumentPlace& place) {
    any = true;
    packer.add(document, place);
    return packer.wants_more();
  };
  bool ended = true;
  for (const fs::path& file : document_files(std::array{path})) {
    ended = for_each_document(file, options.text_column, add);
    if (!ended) break;
  }
  if (!any) fail_input("{}: holds no text", path.string());
  return packer.finish(path.string(), ended);
}

// Splits the documents of a token file and reads no more of them than needed.
class TokenFileSplit {
 public:
  TokenFileSplit(TokenFile file, const ReadOptions& reading)
      : file_(std::move(file)),
        split_(reading.validation_share, reading.wanted),
        most_read_(reading.most_read),
        count_(reading.wanted.range) {}

  Corpus load() {
    const bool whole = std::visit([&](auto tokens) { return scan(tokens); }, file_.tokens);
    if (whole && file_.info.documents && *file_.info.documents != documents_)
      fail_input("{}: holds {} documents; {} says {}", file_.origin, documents_,
                 token_info_file(file_.origin).filename().string(), *file_.info.documents);
    Corpus corpus = corpus_of(file_.mapped, file_.tokens, split_, file_.origin, /*cut=*/!whole && !split_.full());
    corpus.tokenizer = file_.info.tokenizer;
    corpus.vocabulary = corpus.text_vocabulary = file_.info.vocabulary;
    if (unended_ > 0) count_.add(unended_);
    count_.write(corpus);
    return corpus;
  }

 private:
  // True when it came to the end.
  template <class Id>
  bool scan(std::span<const Id> tokens) {
    const auto end = static_cast<std::int64_t>(tokens.size());
    for (std::int64_t first = 0; first < end;) {
      if (split_.full() || first >= most_read_) return false;
      const auto longest = tokens.subspan(static_cast<std::size_t>(first),
                                          static_cast<std::size_t>(std::min(longest_piece, end - first)));
      const auto mark = std::find(longest.begin(), longest.end(), static_cast<Id>(file_.info.end_of_text));
      const std::int64_t count = mark - longest.begin() + (mark == longest.end() ? 0 : 1);
      unended_ += count;
      if (mark != longest.end() || first + count == end) ++documents_;
      if (mark != longest.end()) count_.add(std::exchange(unended_, 0) - 1);
      add({first, count}, longest.first(static_cast<std::size_t>(count)));
      first += count;
    }
    return true;
  }

  template <class Id>
  void add(TokenRange range, std::span<const Id> tokens) {
    check_token_ids(file_, range);
    piece_.assign(tokens.begin(), tokens.end());
    split_.add(split_hash(piece_), range);
  }

  TokenFile file_;
  SplitRanges split_;
  std::int64_t most_read_;
  DocumentCount count_;
  std::vector<std::uint32_t> piece_;
  std::int64_t documents_ = 0;
  std::int64_t unended_ = 0;  // tokens since the last mark
};

// Tokens of a file are what they are; a tokenizer that is named all the same must be theirs.
Corpus load_tokens(const std::string& path, const ReadOptions& reading, const TextTokenizer& tokenizer) {
  TokenFile file = open_token_file(path);
  if (tokenizer.name() != byte_tokenizer::name && file.info.tokenizer != tokenizer.name())
    fail_input("{}: has tokens of '{}', data.tokenizer is '{}'; leave data.tokenizer out for a token file", path,
               file.info.tokenizer, tokenizer.name());
  return TokenFileSplit(std::move(file), reading).load();
}

Corpus load_path(const std::string& path, const DataOptions& options, const ReadOptions& reading,
                 TextTokenizer& tokenizer) {
  std::error_code ignored;
  if (fs::path(path).extension() == ".bin" && !fs::is_directory(path, ignored))
    return load_tokens(path, reading, tokenizer);
  return load_texts(path, options, reading, tokenizer);
}

Corpus load_two(const DataOptions& options, const ReadOptions& reading, TextTokenizer& tokenizer) {
  const WantedTokens& wanted = reading.wanted;
  const ReadOptions of_train{.wanted = {.train = wanted.train}, .most_read = reading.most_read};
  const ReadOptions of_validation{
      .wanted = {.validation = std::max(wanted.validation, wanted.most_validation), .range = wanted.range},
      .validation_share = 1,
      .most_read = reading.most_read};
  Corpus corpus = load_path(options.path, options, of_train, tokenizer);
  Corpus other = load_path(options.validation, options, of_validation, tokenizer);
  if (other.tokenizer != corpus.tokenizer || other.vocabulary != corpus.vocabulary)
    fail_input("{} has tokenizer '{}' and vocabulary {}; {} has '{}' and {}: expected the same", options.validation,
               other.tokenizer, other.vocabulary, options.path, corpus.tokenizer, corpus.vocabulary);
  corpus.validation = std::move(other.validation);
  corpus.validation_starts = std::move(other.validation_starts);
  if (options.path != options.validation) corpus.source += ", validation " + other.source;
  corpus.cut = corpus.cut || other.cut;
  corpus.documents_read = other.documents_read;
  corpus.documents_beyond_range = other.documents_beyond_range;
  return corpus;
}

Corpus load_files(const DataOptions& options, const ReadOptions& reading, Console* console) {
  TextTokenizer tokenizer(options.tokenizer);
  Corpus corpus = options.validation.empty() ? load_path(options.path, options, reading, tokenizer)
                                             : load_two(options, reading, tokenizer);
  if (console != nullptr) tokenizer.warn(*console);
  return corpus;
}

std::string hash_of(const Corpus& corpus) {
  ContentHash hash;
  std::vector<std::int64_t> some(1 << 14);
  for (const Tokens* tokens : {&corpus.train, &corpus.validation}) {
    const std::int64_t size = tokens->size();
    hash.add(std::as_bytes(std::span(&size, 1)));  // the border of the two parts counts, too
    for (std::int64_t first = 0; first < size; first += static_cast<std::int64_t>(some.size())) {
      const std::int64_t count = std::min(static_cast<std::int64_t>(some.size()), size - first);
      tokens->copy(first, count, some.data());
      hash.add(std::as_bytes(std::span(some).first(static_cast<std::size_t>(count))));
    }
  }
  return hash.hex();
}

}  // namespace

std::vector<std::filesystem::path> inputs_of(const DataOptions& options) {
  std::vector<std::filesystem::path> inputs;
  for (const std::string& input : {options.path, options.validation})
    if (!input.empty()) inputs.emplace_back(input);
  if (options.tokenizer != byte_tokenizer::name) inputs.emplace_back(options.tokenizer);
  return inputs;
}

void validate(const DataOptions& options) {
  check_ranges(options);
  if (options.text_column.empty()) fail_input("data.text_column is empty; expected a name");
  if (options.path.empty() && !options.validation.empty())
    fail_input("data.validation is '{}' and data.path is empty: the embedded language has validation of its own",
               options.validation);
  if (options.path.empty() && options.tokenizer != byte_tokenizer::name)
    fail_input("data.tokenizer is '{}' and data.path is empty: the embedded language is made of bytes",
               options.tokenizer);
}

Corpus load_corpus(const DataOptions& options, const WantedTokens& wanted, Console& console) {
  validate(options);
  const ReadOptions reading{.wanted = wanted, .validation_share = options.validation_share};
  Corpus corpus =
      options.path.empty() ? load_language(options.language_seed, reading) : load_files(options, reading, &console);
  corpus.sampled = options.validation_sample;
  corpus.hash = hash_of(corpus);
  console.detail(fmt::format("data: {}: {} tokens of {} documents for training, {} of {} for validation", corpus.source,
                             corpus.train.size(), corpus.train_documents, corpus.validation.size(),
                             corpus.validation_starts.size()));
  return corpus;
}

Corpus start_of_corpus(const DataOptions& options, const WantedTokens& wanted) {
  constexpr std::int64_t most_read = 1 << 24;  // a fraction of a second
  validate(options);
  if (!options.path.empty())
    return load_files(options, {.wanted = wanted, .validation_share = options.validation_share, .most_read = most_read},
                      nullptr);
  Corpus language;
  language.tokenizer = byte_tokenizer::name;
  language.vocabulary = language.text_vocabulary = byte_tokenizer::vocabulary;
  language.source = language_origin(options.language_seed);
  language.cut = true;
  return language;
}

}  // namespace headscope
