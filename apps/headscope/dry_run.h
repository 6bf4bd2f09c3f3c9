// What --dry-run says, of one training and of a study.
#pragma once

#include "command.h"
#include "settings/setup.h"

namespace headscope {

// Refuses what the run would refuse at its start, then prints what it would take. `runs`: the number of trainings.
// `of`: which trainings these are, "QK,NoQK of seeds 42"; empty where there is one. `at_once`: side by side.
int dry_run(const Setup& setup, const std::string& theme, std::int64_t runs, const std::string& of,
            std::int64_t at_once, const CommonFlags& common);

}  // namespace headscope
