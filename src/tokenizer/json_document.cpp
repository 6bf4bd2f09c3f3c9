#include "tokenizer/json_document.h"

#include "core/error.h"

namespace headscope {
namespace {

using nlohmann::json;

// Builds the document while the parser reads. What is wrong ends the parse at once.
class DocumentReader : public nlohmann::json_sax<json> {
 public:
  explicit DocumentReader(const std::string& origin) : origin_(origin) {}

  TokenizerDocument take() {
    if (!document_.rest.is_object()) fail_input("{}: is not a JSON object; expected a tokenizer", origin_);
    return std::move(document_);
  }

  bool null() override { return value(nullptr); }
  bool boolean(bool flag) override { return value(flag); }
  bool number_integer(number_integer_t number) override { return value(number); }
  bool number_unsigned(number_unsigned_t number) override {
    if (place_ == Place::pieces) return add_piece(number);
    return value(number);
  }
  bool number_float(number_float_t number, const string_t&) override { return value(number); }
  bool binary(binary_t&) override { return value("binary data"); }
  bool string(string_t& text) override {
    if (place_ == Place::merges) return add_merge(text);
    if (place_ == Place::pair) return pair_.push_back(std::move(text)), true;
    return value(std::move(text));
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::skipped) return ++skipped_depth_, true;
    if (is_model_key("vocab")) {
      document_.has_pieces = true;
      return move_to(Place::pieces);
    }
    return open(json::object());
  }
  bool key(string_t& name) override {
    if (place_ == Place::skipped) return true;
    key_ = std::move(name);
    if (place_ == Place::pieces) return true;
    if (open_.back()->contains(key_)) fail_input("{}: the key '{}' comes twice", origin_, excerpt(key_, 60));
    if (open_.size() == 1) part_ = key_;
    if (open_.size() == 2 && part_ == "model" &&
        ((key_ == "vocab" && (document_.has_pieces || document_.vocabulary_is_list)) ||
         (key_ == "merges" && document_.has_merges)))
      fail_input("{}: the key '{}' comes twice", origin_, key_);
    return true;
  }
  bool end_object() override {
    if (place_ == Place::skipped) return --skipped_depth_, true;
    if (place_ == Place::pieces) return move_to(Place::rest);
    return close();
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::skipped) return ++skipped_depth_, true;
    if (place_ == Place::merges) {
      pair_.clear();
      return move_to(Place::pair);
    }
    if (is_model_key("vocab")) {
      document_.vocabulary_is_list = true;
      skipped_depth_ = 1;
      return move_to(Place::skipped);
    }
    if (is_model_key("merges")) {
      document_.has_merges = true;
      return move_to(Place::merges);
    }
    return open(json::array());
  }
  bool end_array() override {
    if (place_ == Place::skipped) return --skipped_depth_ > 0 || move_to(Place::rest);
    if (place_ == Place::pair) {
      if (pair_.size() != 2) fail_merge();
      document_.merges.emplace_back(std::move(pair_[0]), std::move(pair_[1]));
      return move_to(Place::merges);
    }
    if (place_ == Place::merges) return move_to(Place::rest);
    return close();
  }

  bool parse_error(std::size_t byte, const std::string&, const nlohmann::detail::exception&) override {
    fail_input("{}: not valid JSON at byte {}: the file is damaged or incomplete", origin_, byte);
  }

 private:
  enum class Place { rest, pieces, merges, pair, skipped };

  bool move_to(Place place) {
    place_ = place;
    return true;
  }
  // Whether the value that begins now is that of model.NAME.
  [[nodiscard]] bool is_model_key(std::string_view name) const {
    return place_ == Place::rest && open_.size() == 2 && part_ == "model" && open_.back()->is_object() && key_ == name;
  }

  bool value(json value) {
    if (place_ == Place::skipped) return true;
    if (place_ == Place::pieces)
      fail_input("{}: model.vocab: '{}' is {}; expected an id, a whole number from 0 on", origin_, excerpt(key_, 60),
                 excerpt(value.dump(-1, ' ', true, json::error_handler_t::replace), 40));
    if (place_ == Place::merges || place_ == Place::pair) fail_merge();
    add(std::move(value));
    return true;
  }

  // Puts a value into the innermost open object or list.
  json& add(json value) {
    if (open_.empty()) return document_.rest = std::move(value);
    json& parent = *open_.back();
    if (!parent.is_array()) return parent[key_] = std::move(value);
    parent.push_back(std::move(value));
    return parent.back();
  }

  bool open(json container) {
    constexpr std::size_t deepest = 64;
    if (place_ != Place::rest) return value(std::move(container));
    if (open_.size() == deepest) fail_input("{}: nested deeper than {} values", origin_, deepest);
    open_.push_back(&add(std::move(container)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  bool add_piece(std::uint64_t id) {
    if (id >= most_ids)
      fail_input("{}: model.vocab: '{}' has id {}; expected less than {}", origin_, excerpt(key_, 60), id, most_ids);
    document_.pieces.push_back({std::move(key_), static_cast<std::uint32_t>(id)});
    return true;
  }

  // "left right", as older files have it.
  bool add_merge(const std::string& text) {
    if (text.starts_with("#version")) return true;
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) fail_merge();
    document_.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    return true;
  }

  [[noreturn]] void fail_merge() const {
    fail_input("{}: model.merges[{}] is not a pair of pieces; expected \"left right\" or [\"left\", \"right\"]",
               origin_, document_.merges.size());
  }

  const std::string& origin_;
  TokenizerDocument document_;
  Place place_ = Place::rest;
  std::vector<json*> open_;  // a container does not move while one inside it is open
  std::string key_, part_;   // the last key, and that of the outermost object
  std::vector<std::string> pair_;
  std::size_t skipped_depth_ = 0;
};

}  // namespace

TokenizerDocument parse_tokenizer_document(std::string_view text, const std::string& origin) {
  // The library takes a zero byte for the end.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    fail_input("{}: is not JSON: it holds a zero byte at byte {}", origin, zero);
  DocumentReader reader(origin);
  json::sax_parse(text, &reader);
  return reader.take();
}

}  // namespace headscope
