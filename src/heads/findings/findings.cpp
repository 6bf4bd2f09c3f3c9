#include "heads/findings/findings.h"

#include <array>

#include "heads/findings/wording.h"

namespace headscope {
namespace {

constexpr std::size_t label_width = 14, line_width = 100;

// Characters as a terminal shows them: bytes that continue a UTF-8 sequence take no place.
std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (const char byte : text) width += (static_cast<unsigned char>(byte) & 0xC0) == 0x80 ? 0 : 1;
  return width;
}

// "Label         words words", continued under the words.
std::string paragraph(std::string_view label, std::string_view text) {
  std::string lines = fmt::format("{:<{}}", label, label_width);
  std::size_t column = label_width;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::string_view word = text.substr(start, end - start);
    start = end + 1;
    const std::size_t width = width_of(word);
    if (column > label_width && column + 1 + width > line_width) {
      lines += '\n';
      lines.append(label_width, ' ');
      column = label_width;
    }
    if (column > label_width) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += width;
  }
  return lines + "\n";
}

}  // namespace

Findings find(const RunTracks& run) {
  DipTester tester;
  Findings findings;
  findings.counts = run.finest().counts;
  findings.norm_split = find_norm_split(run, tester);
  findings.norm_entropy = find_norm_entropy(run, tester);
  findings.rank_collapse = find_rank_collapse(run);
  findings.volume_knob = find_volume_knob(run);
  findings.key_evolution = find_key_evolution(run);
  return findings;
}

std::string to_terminal(const Findings& findings) {
  return paragraph("Heads split", findings.norm_split.sentence) +
         paragraph("Sharpness", findings.norm_entropy.sentence) + paragraph("Rank", findings.rank_collapse.sentence) +
         paragraph("Volume knob", findings.volume_knob.sentence) +
         paragraph("Key evolution", findings.key_evolution.sentence);
}

}  // namespace headscope
