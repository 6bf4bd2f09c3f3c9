#include "tokenizer/text_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "core/error.h"
#include "tokenizer/pattern_syntax.h"
#include "tokenizer/utf8.h"

namespace headscope {
namespace {

std::string pcre_message(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

// Kibibytes that the interpreter may take: about a kilobyte for each byte of a word of a megabyte.
constexpr std::uint32_t most_heap = 1 << 20;
// Bytes of the compiled code's stack. Where it is not enough, the interpreter takes over.
constexpr std::size_t small_stack = 32 << 10, large_stack = 8 << 20;

}  // namespace

struct TextPattern::Compiled {
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
    void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
  };
  template <class T>
  using Pcre = std::unique_ptr<T, Free>;

  Pcre<pcre2_code> code;
  Pcre<pcre2_match_context> context;
  Pcre<pcre2_match_data> data;
  Pcre<pcre2_jit_stack> stack;  // null: the interpreter matches

  template <class T>
  static Pcre<T> owned(T* made) {
    if (made == nullptr) fail_runtime("PCRE2: out of memory");
    return Pcre<T>(made);
  }
};

TextPattern TextPattern::literal(std::string text) {
  if (text.empty()) fail_input("the pattern is empty; expected some text");
  TextPattern pattern;
  pattern.source_ = std::move(text);
  return pattern;
}

TextPattern TextPattern::expression(std::string_view source) {
  const TranslatedPattern translated = translate_pattern(source);
  const auto context = Compiled::owned(pcre2_compile_context_create(nullptr));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE place = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.text.data()), translated.text.size(),
                                   PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &error, &place, context.get());
  if (code == nullptr) fail_input("the pattern '{}' is not supported: {}", excerpt(source), pcre_message(error));
  TextPattern pattern;
  pattern.source_ = source;
  pattern.asks_categories_ = translated.asks_categories;
  auto compiled = std::make_shared<Compiled>();
  compiled->code.reset(code);
  compiled->context = Compiled::owned(pcre2_match_context_create(nullptr));
  compiled->data = Compiled::owned(pcre2_match_data_create_from_pattern(code, nullptr));
  pcre2_set_heap_limit(compiled->context.get(), most_heap);
  pcre2_set_depth_limit(compiled->context.get(), std::numeric_limits<std::uint32_t>::max());
  // A system may forbid memory that is written and run: then the interpreter matches.
  if (pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0) {
    compiled->stack = Compiled::owned(pcre2_jit_stack_create(small_stack, large_stack, nullptr));
    pcre2_jit_stack_assign(compiled->context.get(), nullptr, compiled->stack.get());
  }
  pattern.compiled_ = std::move(compiled);
  return pattern;
}

void TextPattern::find(std::string_view text, std::vector<TextRange>& matches) {
  matches.clear();
  if (text.empty()) return;
  if (!compiled_) {
    find_literal(text, matches);
    return;
  }
  TextRange found;
  for (std::size_t from = 0; from <= text.size() && match(text, from, found);) {
    const bool repeats = found.begin == found.end && !matches.empty() && matches.back().end == found.end;
    if (repeats) {
      from += from < text.size() ? utf8_length(text[from]) : 1;
    } else {
      matches.push_back(found);
      from = found.end;
    }
  }
}

void TextPattern::find_literal(std::string_view text, std::vector<TextRange>& matches) const {
  for (std::size_t begin = text.find(source_); begin != std::string_view::npos;
       begin = text.find(source_, matches.back().end))
    matches.push_back({begin, begin + source_.size()});
}

bool TextPattern::match(std::string_view text, std::size_t from, TextRange& found) {
  const Compiled& compiled = *compiled_;
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  // A step or two a byte is usual; a pattern that tries all ways to cut a word is stopped.
  constexpr std::size_t least_steps = 10'000'000, steps_per_byte = 16;
  const std::size_t steps =
      std::min<std::size_t>(least_steps + steps_per_byte * text.size(), std::numeric_limits<std::uint32_t>::max());
  pcre2_set_match_limit(compiled.context.get(), static_cast<std::uint32_t>(steps));
  int outcome = PCRE2_ERROR_JIT_STACKLIMIT;
  // The text is valid: checking it again for every match would take quadratic time.
  if (compiled.stack)
    outcome = pcre2_jit_match(compiled.code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK, compiled.data.get(),
                              compiled.context.get());
  if (outcome == PCRE2_ERROR_JIT_STACKLIMIT)
    outcome = pcre2_match(compiled.code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                          compiled.data.get(), compiled.context.get());
  if (outcome == PCRE2_ERROR_NOMATCH) return false;
  if (outcome < 0)
    fail_input("the pattern '{}' fails on a text of {} bytes: {}", excerpt(source_), text.size(),
               pcre_message(outcome));
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(compiled.data.get());
  found = {ends[0], ends[1]};
  return true;
}

std::string pattern_unicode_version() {
  std::array<char, 64> version{};
  pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version.data());
  return version.data();
}

std::string with_replaced(std::string_view text, std::span<const TextRange> matches, std::string_view content) {
  std::string out;
  std::size_t done = 0;
  for (const TextRange& match : matches) {
    out += text.substr(done, match.begin - done);
    out += content;
    done = match.end;
  }
  out += text.substr(done);
  return out;
}

}  // namespace headscope
