// The head that comes nearest to a role, and what it lacks.
#pragma once

#include <cstddef>
#include <optional>

#include "page/report_data.h"

namespace headscope {

// The place of the head in `roles.heads`. Of the heads that have the role it is the clearest one. Without any it is the
// head whose largest gap to a minimum of the role is least (of equal ones, the head with the least sum of gaps: heads
// that read one key head share its scores). Nothing where the scores were not measured.
std::optional<std::size_t> nearest_head(const RolesResult& roles, std::size_t label);

// Since when the head has had its role, or none, without a break; nothing where there is one moment.
std::optional<Moment> role_since(const RoleCourse& course, std::size_t place);

}  // namespace headscope
