#include "tokenizer/json_components.h"

#include <array>

#include "core/config.h"
#include "core/error.h"
#include "tokenizer/utf8.h"

namespace headscope {
namespace {

// Kinds with the function that reads one: the table is the list of what is known.
template <class Steps>
struct ComponentKind {
  const char* name;
  void (*read)(const JsonView& component, Steps& steps);
};

template <class Steps, std::size_t Count>
void read_component(const char* what, const JsonView& component, const std::array<ComponentKind<Steps>, Count>& kinds,
                    Steps& steps) {
  const std::string name = component.text("type");
  std::vector<std::string> known;
  for (const auto& kind : kinds) {
    if (name == kind.name) return kind.read(component, steps);
    known.emplace_back(kind.name);
  }
  fail_input("{}: {} '{}' is not supported; supported are {}", component.place(), what, excerpt(name, 60),
             fmt::join(known, ", "));
}

template <class Steps>
void no_steps(const JsonView&, Steps&) {}

// One character, which the library stores as a text.
std::string one_character(const JsonView& value) {
  std::string text = value.text();
  if (text.empty() || utf8_length(text[0]) != text.size()) value.fail("one character");
  return text;
}

// {"String": "..."} or {"Regex": "..."}
TextPattern pattern_of(const JsonView& component) {
  const JsonView pattern = component.at("pattern");
  const auto literal = pattern.find("String");
  const std::string text = literal ? literal->text() : pattern.text("Regex");
  return at_place(pattern.place(),
                  [&] { return literal ? TextPattern::literal(text) : TextPattern::expression(text); });
}

using Normalizers = std::vector<normalizer::Step>;

template <NormalForm form>
void read_normal_form(const JsonView&, Normalizers& steps) {
  steps.emplace_back(form);
}

constexpr auto normalizer_kinds = std::to_array<ComponentKind<Normalizers>>({
    {"Sequence",
     [](const JsonView& component, Normalizers& steps) {
       for (const JsonView& one : component.at("normalizers").elements()) read_normalizer(one, steps);
     }},
    {"NFC", read_normal_form<NormalForm::nfc>},
    {"NFD", read_normal_form<NormalForm::nfd>},
    {"NFKC", read_normal_form<NormalForm::nfkc>},
    {"NFKD", read_normal_form<NormalForm::nfkd>},
    {"Lowercase", [](const JsonView&, Normalizers& steps) { steps.emplace_back(normalizer::Lowercase{}); }},
    {"Strip",
     [](const JsonView& component, Normalizers& steps) {
       steps.emplace_back(normalizer::Strip{component.flag("strip_left"), component.flag("strip_right")});
     }},
    {"StripAccents", [](const JsonView&, Normalizers& steps) { steps.emplace_back(normalizer::StripAccents{}); }},
    {"Replace",
     [](const JsonView& component, Normalizers& steps) {
       steps.emplace_back(normalizer::Replace{pattern_of(component), component.text("content")});
     }},
    {"Prepend", [](const JsonView& component,
                   Normalizers& steps) { steps.emplace_back(normalizer::Prepend{component.text("prepend")}); }},
    {"ByteLevel", [](const JsonView&, Normalizers& steps) { steps.emplace_back(normalizer::BytesAsCharacters{}); }},
});

using PreTokenizers = std::vector<pre_tokenizer::Step>;

pre_tokenizer::Behavior behavior_of(const JsonView& value) {
  using pre_tokenizer::Behavior;
  struct Named {
    const char* name;
    Behavior behavior;
  };
  constexpr auto behaviors = std::to_array<Named>({{"Removed", Behavior::removed},
                                                   {"Isolated", Behavior::isolated},
                                                   {"Contiguous", Behavior::contiguous},
                                                   {"MergedWithPrevious", Behavior::merged_with_previous},
                                                   {"MergedWithNext", Behavior::merged_with_next}});
  const std::string name = value.text();
  for (const Named& known : behaviors)
    if (name == known.name) return known.behavior;
  value.fail("Removed, Isolated, Contiguous, MergedWithPrevious or MergedWithNext");
}

struct MetaspaceFields {
  std::string replacement;
  pre_tokenizer::PrependScheme prepend = pre_tokenizer::PrependScheme::always;
};

MetaspaceFields metaspace_fields(const JsonView& component) {
  using pre_tokenizer::PrependScheme;
  MetaspaceFields fields{one_character(component.at("replacement"))};
  const auto add_prefix_space = component.find("add_prefix_space");  // older files; newer ones may have both
  const auto scheme = component.find("prepend_scheme");
  if (add_prefix_space && !add_prefix_space->flag()) fields.prepend = PrependScheme::never;
  if (!scheme) return fields;
  const std::string name = scheme->text();
  const bool never = name == "never";
  if (!never && name != "first" && name != "always") scheme->fail("always, never or first");
  if (!never && fields.prepend == PrependScheme::never) scheme->fail("never, since add_prefix_space is false");
  fields.prepend = never ? PrependScheme::never : name == "first" ? PrependScheme::first : PrependScheme::always;
  return fields;
}

constexpr auto pre_tokenizer_kinds = std::to_array<ComponentKind<PreTokenizers>>({
    {"Sequence",
     [](const JsonView& component, PreTokenizers& steps) {
       for (const JsonView& one : component.at("pretokenizers").elements()) read_pre_tokenizer(one, steps);
     }},
    {"ByteLevel",
     [](const JsonView& component, PreTokenizers& steps) {
       steps.emplace_back(
           pre_tokenizer::ByteLevel{component.flag("add_prefix_space"), component.flag("use_regex", true)});
     }},
    {"Metaspace",
     [](const JsonView& component, PreTokenizers& steps) {
       const MetaspaceFields fields = metaspace_fields(component);
       steps.emplace_back(pre_tokenizer::Metaspace{fields.replacement, fields.prepend, component.flag("split", true)});
     }},
    {"Split",
     [](const JsonView& component, PreTokenizers& steps) {
       steps.emplace_back(pre_tokenizer::Split{pattern_of(component), behavior_of(component.at("behavior")),
                                               component.flag("invert")});
     }},
    {"Digits",
     [](const JsonView& component, PreTokenizers& steps) {
       steps.emplace_back(pre_tokenizer::digits(component.flag("individual_digits")));
     }},
    {"Punctuation",
     [](const JsonView& component, PreTokenizers& steps) {
       const auto behavior = component.find("behavior");
       steps.emplace_back(
           pre_tokenizer::punctuation(behavior ? behavior_of(*behavior) : pre_tokenizer::Behavior::isolated));
     }},
    {"Whitespace", [](const JsonView&, PreTokenizers& steps) { steps.emplace_back(pre_tokenizer::words_and_signs()); }},
    {"WhitespaceSplit",
     [](const JsonView&, PreTokenizers& steps) { steps.emplace_back(pre_tokenizer::white_space()); }},
    {"BertPreTokenizer",
     [](const JsonView&, PreTokenizers& steps) {
       steps.emplace_back(pre_tokenizer::white_space());
       steps.emplace_back(pre_tokenizer::punctuation(pre_tokenizer::Behavior::isolated));
     }},
    {"CharDelimiterSplit",
     [](const JsonView& component, PreTokenizers& steps) {
       steps.emplace_back(pre_tokenizer::Split{TextPattern::literal(one_character(component.at("delimiter"))),
                                               pre_tokenizer::Behavior::removed});
     }},
});

using Templates = std::vector<Template>;

constexpr std::uint32_t largest_token_id = most_ids - 1;

Template template_of(const JsonView& component) {
  Template parts;
  for (const JsonView& piece : component.at("single").elements()) {
    if (const auto sequence = piece.find("Sequence")) {
      if (sequence->text("id") != "A") sequence->at("id").fail("\"A\", the one text");
      parts.emplace_back(TemplateText{});
      continue;
    }
    std::vector<std::uint32_t> ids;
    const std::string token = piece.at("SpecialToken").text("id");
    for (const JsonView& id : component.at("special_tokens").at(token).at("ids").elements())
      ids.push_back(id.number(largest_token_id));
    parts.emplace_back(std::move(ids));
  }
  return parts;
}

// ["</s>", 2]
std::uint32_t named_id(const JsonView& value) {
  const auto pair = value.elements();
  if (pair.size() != 2) value.fail("a token and its id");
  return pair[1].number(largest_token_id);
}

void read_two_borders(const JsonView& component, Templates& templates) {
  templates.push_back(
      {std::vector{named_id(component.at("cls"))}, TemplateText{}, std::vector{named_id(component.at("sep"))}});
}

constexpr auto post_processor_kinds = std::to_array<ComponentKind<Templates>>({
    {"Sequence",
     [](const JsonView& component, Templates& templates) {
       for (const JsonView& one : component.at("processors").elements()) read_post_processor(one, templates);
     }},
    {"ByteLevel", no_steps<Templates>},  // moves offsets only
    {"TemplateProcessing",
     [](const JsonView& component, Templates& templates) { templates.push_back(template_of(component)); }},
    {"RobertaProcessing", read_two_borders},
    {"BertProcessing", read_two_borders},
});

using Decoders = std::vector<decoder::Step>;

constexpr auto decoder_kinds = std::to_array<ComponentKind<Decoders>>({
    {"Sequence",
     [](const JsonView& component, Decoders& steps) {
       for (const JsonView& one : component.at("decoders").elements()) read_decoder(one, steps);
     }},
    {"ByteLevel", [](const JsonView&, Decoders& steps) { steps.emplace_back(decoder::ByteLevel{}); }},
    {"ByteFallback", [](const JsonView&, Decoders& steps) { steps.emplace_back(decoder::ByteFallback{}); }},
    {"Fuse", [](const JsonView&, Decoders& steps) { steps.emplace_back(decoder::Fuse{}); }},
    {"Metaspace",
     [](const JsonView& component, Decoders& steps) {
       const MetaspaceFields fields = metaspace_fields(component);
       steps.emplace_back(
           decoder::Metaspace{fields.replacement, fields.prepend != pre_tokenizer::PrependScheme::never});
     }},
    {"Replace",
     [](const JsonView& component, Decoders& steps) {
       steps.emplace_back(decoder::Replace{pattern_of(component), component.text("content")});
     }},
    {"Strip",
     [](const JsonView& component, Decoders& steps) {
       constexpr std::uint32_t most = 1 << 30;
       steps.emplace_back(decoder::Strip{one_character(component.at("content")), component.number("start", most),
                                         component.number("stop", most)});
     }},
    {"BPEDecoder", [](const JsonView& component,
                      Decoders& steps) { steps.emplace_back(decoder::WordEnd{component.text("suffix")}); }},
});

}  // namespace

void read_normalizer(const JsonView& component, std::vector<normalizer::Step>& steps) {
  read_component("normalizer", component, normalizer_kinds, steps);
}

void read_pre_tokenizer(const JsonView& component, std::vector<pre_tokenizer::Step>& steps) {
  read_component("pre-tokenizer", component, pre_tokenizer_kinds, steps);
}

void read_post_processor(const JsonView& component, std::vector<Template>& templates) {
  read_component("post-processor", component, post_processor_kinds, templates);
}

void read_decoder(const JsonView& component, std::vector<decoder::Step>& steps) {
  read_component("decoder", component, decoder_kinds, steps);
}

}  // namespace headscope
