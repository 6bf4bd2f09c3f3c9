// The components of a tokenizer.json: each object names its kind under "type".
#pragma once

#include <vector>

#include "tokenizer/json_view.h"
#include "tokenizer/tokenizer.h"

namespace headscope {

// Each appends the steps of one component, those of a Sequence one after another. Throws Error(Fault::input) with the
// place, also for a kind that is not known, which it names.
void read_normalizer(const JsonView& component, std::vector<normalizer::Step>& steps);
void read_pre_tokenizer(const JsonView& component, std::vector<pre_tokenizer::Step>& steps);
void read_post_processor(const JsonView& component, std::vector<Template>& templates);
void read_decoder(const JsonView& component, std::vector<decoder::Step>& steps);

}  // namespace headscope
