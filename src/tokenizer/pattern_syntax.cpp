#include "tokenizer/pattern_syntax.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "core/error.h"
#include "tokenizer/utf8.h"

namespace headscope {
namespace {

constexpr std::string_view white_space =
    R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view no_white_space =
    R"(\x{0}-\x{8}\x{E}-\x{1F}\x{21}-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027})"
    R"(\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF})";
// Alphabetic, marks, decimal digits, connectors. The circled and squared letters are the alphabetic symbols. Outside a
// class, Oniguruma's \w also has the digits and fractions of Latin-1.
constexpr std::string_view word_characters =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";
constexpr std::string_view latin_digits = R"(\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";
constexpr std::string_view any_character = R"([\x{0}-\x{10FFFF}])";

constexpr auto categories = std::to_array<std::string_view>(
    {"C",  "Cc", "Cf", "Cn", "Co", "Cs", "L",  "Ll", "Lm", "Lo", "Lt", "Lu", "M",  "Mc", "Me", "Mn", "N",  "Nd", "Nl",
     "No", "P",  "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S",  "Sc", "Sk", "Sm", "So", "Z",  "Zl", "Zp", "Zs"});

struct LongName {
  std::string_view name, category;
};
constexpr auto long_names = std::to_array<LongName>({{"letter", "L"},
                                                     {"uppercaseletter", "Lu"},
                                                     {"lowercaseletter", "Ll"},
                                                     {"titlecaseletter", "Lt"},
                                                     {"modifierletter", "Lm"},
                                                     {"otherletter", "Lo"},
                                                     {"mark", "M"},
                                                     {"number", "N"},
                                                     {"decimalnumber", "Nd"},
                                                     {"punctuation", "P"},
                                                     {"symbol", "S"},
                                                     {"separator", "Z"},
                                                     {"other", "C"}});

// Scripts that both libraries know under this name.
constexpr auto scripts = std::to_array<std::string_view>(
    {"Arabic",    "Armenian", "Bengali",  "Bopomofo", "Common", "Cyrillic", "Devanagari", "Ethiopic",
     "Georgian",  "Greek",    "Gujarati", "Gurmukhi", "Han",    "Hangul",   "Hebrew",     "Hiragana",
     "Inherited", "Kannada",  "Katakana", "Khmer",    "Lao",    "Latin",    "Malayalam",  "Mongolian",
     "Myanmar",   "Oriya",    "Sinhala",  "Tamil",    "Telugu", "Thai",     "Tibetan",    "Yi"});

std::string spelled(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (c != ' ' && c != '_' && c != '-') plain += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return plain;
}

// From 10.40 on PCRE2 takes a bare script for its extensions, too.
bool script_needs_prefix() {
  std::array<char, 64> version{};
  pcre2_config(PCRE2_CONFIG_VERSION, version.data());
  const std::string_view text(version.data());
  const std::size_t dot = text.find('.');
  return text.substr(0, dot) != "10" || std::stoi(std::string(text.substr(dot + 1, 2))) >= 40;
}

std::string hexadecimal(char32_t code_point) {
  return fmt::format("\\x{{{:X}}}", static_cast<std::uint32_t>(code_point));
}

// A set of characters: what stands between [ and ], and expressions that match one character.
struct CharacterSet {
  std::string items;
  std::vector<std::string> others;

  void add(const CharacterSet& set) {
    items += set.items;
    others.insert(others.end(), set.others.begin(), set.others.end());
  }
  [[nodiscard]] std::string expression() const {
    std::string text = items.empty() ? "" : "[" + items + "]";
    for (const std::string& other : others) text += (text.empty() ? "" : "|") + other;
    return others.empty() ? text : "(?:" + text + ")";
  }
};

struct ClassMember {
  std::optional<char32_t> character;
  CharacterSet set;
};

class PatternTranslator {
 public:
  explicit PatternTranslator(std::string_view pattern) : in_(pattern) {}

  TranslatedPattern translate() {
    alternatives(0, /*caseless=*/false);
    if (!at_end()) refuse("a ')' without '('");
    return {std::move(out_), asks_categories_};
  }

 private:
  static constexpr int deepest = 50;  // of groups and of classes; PCRE2 and this function are recursive
  static constexpr std::size_t no_atom = std::string::npos;

  [[nodiscard]] bool at_end() const { return at_ == in_.size(); }
  [[nodiscard]] bool sees(std::string_view text) const { return in_.substr(at_).starts_with(text); }
  bool take(std::string_view text) {
    if (!sees(text)) return false;
    at_ += text.size();
    return true;
  }
  char32_t take_character() {
    if (at_end()) refuse("its end");
    return next_code_point(in_, at_);
  }
  [[noreturn]] void refuse(std::string_view what) const {
    fail_input("the pattern '{}' is not supported: {} at byte {}", excerpt(in_), what, at_);
  }

  void alternatives(int depth, bool caseless) {
    if (depth > deepest) refuse("deep nesting");
    const std::size_t begin = out_.size();
    atom_ = no_atom;
    previous_ = 0;
    while (!at_end() && !sees(")")) {
      const bool literal = next_part(depth, begin, caseless);
      if (!literal) previous_ = 0;
    }
  }

  // Returns whether it was a plain character.
  bool next_part(int depth, std::size_t begin, bool& caseless) {
    const char c = in_[at_];
    if (c == '|') {
      ++at_;
      out_ += '|';
      atom_ = no_atom;
    } else if (c == '(') {
      group(depth, begin, caseless);
    } else if (c == '[') {
      ++at_;
      const std::string expression = character_class(0).expression();
      begin_atom(expression);
    } else if (take(".")) {
      begin_atom(R"([^\n])");
    } else if (take("^")) {
      begin_atom(R"((?:\A|(?<=\n)(?!\z)))");
    } else if (take("$")) {
      begin_atom(R"((?=\n|\z))");
    } else if (c == '*' || c == '+' || c == '?' || (c == '{' && interval())) {
      quantifier();
    } else if (c == '\\') {
      return escape(caseless);
    } else {
      character(take_character(), caseless);
      return true;
    }
    return false;
  }

  void begin_atom(std::string_view expression) {
    atom_ = out_.size();
    out_ += expression;
  }

  void character(char32_t code_point, bool caseless) {
    // Oniguruma takes one character for these pairs, too, where case does not count: the sharp s, ligatures.
    const auto lower = [](char32_t c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; };
    const std::array<char32_t, 2> pair = {lower(previous_), lower(code_point)};
    for (const std::string_view folded : {"ff", "fi", "fl", "ss", "st"})
      if (caseless && pair[0] == static_cast<char32_t>(folded[0]) && pair[1] == static_cast<char32_t>(folded[1]))
        refuse(fmt::format("'{}' without regard to case", folded));
    previous_ = code_point;
    begin_atom(hexadecimal(code_point));
  }

  void group(int depth, std::size_t begin, bool& caseless) {
    const std::size_t start = out_.size();
    take("(");
    bool inner = caseless;
    if (!sees("?")) {
      out_ += "(?:";  // nothing is captured
    } else {
      const std::string opening = group_opening(inner);
      if (opening.ends_with(')')) {  // an option for the rest of the group
        if (start != begin) refuse("an option in the middle of a group");
        caseless = inner;
        out_ += opening;
        atom_ = no_atom;
        return;
      }
      out_ += opening;
    }
    alternatives(depth + 1, inner);
    if (!take(")")) refuse("a '(' without ')'");
    out_ += ')';
    atom_ = start;
  }

  std::string group_opening(bool& caseless) {
    for (const std::string_view known : {"?:", "?=", "?!", "?<=", "?<!", "?>"})
      if (take(known)) return fmt::format("({}", known);
    for (const std::string_view option : {"?i", "?-i"})
      for (const std::string_view end : {":", ")"})
        if (take(std::string(option) + std::string(end))) {
          caseless = option == "?i";
          return fmt::format("({}{}", option, end);
        }
    refuse("the group '(" + std::string(in_.substr(at_, 3)) + "'");
  }

  // Whether {n}, {n,}, {,m} or {n,m} begins here; other braces are plain characters.
  [[nodiscard]] bool interval() const {
    const std::size_t end = in_.find('}', at_);
    if (end == std::string_view::npos) return false;
    const std::string_view inside = in_.substr(at_ + 1, end - at_ - 1);
    const bool digits = inside.find_first_not_of("0123456789,") == std::string_view::npos;
    return digits && inside.find_first_of("0123456789") != std::string_view::npos &&
           std::count(inside.begin(), inside.end(), ',') <= 1;
  }

  void quantifier() {
    if (atom_ == no_atom) refuse("nothing to repeat");
    if (!sees("{")) {
      out_ += in_[at_++];
      if (sees("?") || sees("+")) out_ += in_[at_++];
    } else {
      const std::size_t end = in_.find('}', at_);
      std::string inside(in_.substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
      const bool exact = inside.find(',') == std::string::npos;
      if (inside.starts_with(',')) inside = "0" + inside;
      out_ += "{" + inside + "}";
      if (sees("+")) {  // to Oniguruma this repeats the repetition
        out_.insert(atom_, "(?:");
        out_ += ")";
        out_ += in_[at_++];
      } else if (sees("?")) {
        if (exact) refuse("'{n}?'");
        out_ += in_[at_++];
      }
    }
    if (sees("*") || sees("+") || sees("?") || (sees("{") && interval())) refuse("a repetition of a repetition");
    atom_ = no_atom;
  }

  bool escape(bool caseless) {
    const std::string word = fmt::format("[{}]", word_items(/*in_class=*/false));
    if (take("\\b") || take("\\B")) {
      asks_categories_ = true;
      const bool boundary = in_[at_ - 1] == 'b';
      begin_atom(boundary ? fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", word)
                          : fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0}))", word));
      return false;
    }
    if (take("\\A") || take("\\z")) {
      begin_atom(in_.substr(at_ - 2, 2));
      return false;
    }
    const ClassMember member = escaped(/*in_class=*/false);
    if (!member.character) {
      begin_atom(member.set.expression());
      return false;
    }
    character(*member.character, caseless);
    return true;
  }

  // What a backslash means in a class and outside.
  ClassMember escaped(bool in_class) {
    take("\\");
    const std::size_t place = at_;
    const char32_t c = take_character();
    switch (c) {
      case 't':
        return {U'\t', {}};
      case 'n':
        return {U'\n', {}};
      case 'r':
        return {U'\r', {}};
      case 'f':
        return {U'\f', {}};
      case 'v':
        return {U'\v', {}};
      case 'a':
        return {U'\a', {}};
      case 'e':
        return {char32_t{0x1B}, {}};
      case 's':
        return {{}, {std::string(white_space), {}}};
      case 'S':
        return {{}, {std::string(no_white_space), {}}};
      case 'd':
        return {{}, category("Nd", false)};
      case 'D':
        return {{}, category("Nd", true)};
      case 'w':
        asks_categories_ = true;
        return {{}, {word_items(in_class), {}}};
      case 'W':
        asks_categories_ = true;
        return {{}, {"", {"[^" + word_items(in_class) + "]"}}};
      case 'h':
        return {{}, {"0-9A-Fa-f", {}}};
      case 'p':
      case 'P':
        return {{}, property(c == 'P')};
      case 'x':
        return {sees("{") ? braced_code_point() : code_point_of(2, 0x7F), {}};
      case 'u':
        return {code_point_of(4, 0xFFFF), {}};
      default:
        break;
    }
    const bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (!letter) return {c, {}};
    at_ = place;
    refuse(fmt::format("'\\{}'", static_cast<char>(c)));
  }

  static std::string word_items(bool in_class) {
    return std::string(word_characters) + std::string(in_class ? "" : latin_digits);
  }

  CharacterSet category(std::string_view name, bool negated) {
    asks_categories_ = true;
    return {fmt::format("\\{}{{{}}}", negated ? 'P' : 'p', name), {}};
  }

  CharacterSet property(bool negated) {
    if (!take("{")) refuse("'\\p' without '{'");
    if (take("^")) negated = !negated;
    const std::size_t end = in_.find('}', at_);
    if (end == std::string_view::npos) refuse("'\\p{' without '}'");
    const std::string_view name = in_.substr(at_, end - at_);
    const std::string plain = spelled(name);
    at_ = end + 1;
    for (const std::string_view known : categories)
      if (spelled(known) == plain) return category(known, negated);
    for (const LongName& known : long_names)
      if (known.name == plain) return category(known.category, negated);
    static const std::string prefix = script_needs_prefix() ? "sc:" : "";
    for (const std::string_view known : scripts)
      if (spelled(known) == plain) return category(prefix + std::string(known), negated);
    if (plain == "space" || plain == "whitespace") return {std::string(negated ? no_white_space : white_space), {}};
    refuse(fmt::format("the property '{}'", excerpt(name, 40)));
  }

  char32_t code_point_of(std::size_t digits, char32_t most) {
    const std::string_view text = in_.substr(at_, digits);
    if (text.size() < digits) refuse("a short '\\x' or '\\u'");
    const char32_t value = hexadecimal_value(text);
    if (value > most) refuse("'\\x' of a byte that is not ASCII");
    at_ += digits;
    return value;
  }

  char32_t braced_code_point() {
    const std::size_t end = in_.find('}', at_);
    if (end == std::string_view::npos || end - at_ < 2 || end - at_ > 7) refuse("'\\x{'");
    const char32_t value = hexadecimal_value(in_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }

  [[nodiscard]] char32_t hexadecimal_value(std::string_view digits) const {
    char32_t value = 0;
    for (const char c : digits) {
      const std::size_t digit =
          std::string_view("0123456789abcdef").find(c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c);
      if (digit == std::string_view::npos) refuse("a wrong hexadecimal digit");
      value = value * 16 + static_cast<char32_t>(digit);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) refuse("a number that is not a code point");
    return value;
  }

  // Behind '['. An intersection looks ahead with all parts but the last.
  CharacterSet character_class(int depth) {
    if (depth > deepest) refuse("deep nesting");
    const bool negated = take("^");
    std::vector<CharacterSet> parts(1);
    if (sees("]")) refuse("'[]'");
    while (!take("]")) {
      if (at_end()) refuse("a '[' without ']'");
      if (take("&&"))
        parts.emplace_back();
      else
        add_member(parts.back(), depth);
    }
    for (const CharacterSet& part : parts)
      if (part.items.empty() && part.others.empty()) refuse("an empty part of '&&'");
    if (parts.size() == 1 && !negated) return parts[0];
    if (parts.size() == 1 && parts[0].others.empty()) return {"", {"[^" + parts[0].items + "]"}};
    std::string expression;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) expression += "(?=" + parts[i].expression() + ")";
    expression += parts.back().expression();
    if (negated) expression = fmt::format("(?!{}){}", expression, any_character);
    return {"", {"(?:" + expression + ")"}};
  }

  void add_member(CharacterSet& set, int depth) {
    const ClassMember first = class_member(depth);
    if (!first.character) {
      set.add(first.set);
      return;
    }
    set.items += hexadecimal(*first.character);
    if (!sees("-") || sees("-]")) return;
    take("-");
    const ClassMember last = class_member(depth);
    if (!last.character || *last.character < *first.character) refuse("a range that does not end behind its start");
    set.items += fmt::format("-{}", hexadecimal(*last.character));
  }

  ClassMember class_member(int depth) {
    if (sees("\\")) {
      if (sees("\\b")) refuse("'\\b' in a class");
      return escaped(/*in_class=*/true);
    }
    if (sees("[:")) refuse("a POSIX class");
    if (take("[")) return {{}, character_class(depth + 1)};
    return {take_character(), {}};
  }

  std::string_view in_;
  std::size_t at_ = 0;
  std::string out_;
  std::size_t atom_ = no_atom;  // where the expression before a quantifier begins in out_
  char32_t previous_ = 0;       // the plain character before
  bool asks_categories_ = false;
};

}  // namespace

TranslatedPattern translate_pattern(std::string_view pattern) {
  constexpr std::size_t longest = 20'000;  // the longest published ones have a few hundred bytes
  if (pattern.size() > longest) fail_input("a pattern of {} bytes; expected at most {}", pattern.size(), longest);
  return PatternTranslator(pattern).translate();
}

}  // namespace headscope
