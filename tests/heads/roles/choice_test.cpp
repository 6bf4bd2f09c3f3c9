#include "heads/roles/choice.h"

#include <gmock/gmock.h>

#include "core/missing.h"

namespace headscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t x = 0, y = 1, z = 2, mixed = 3;  // labels

RolesResult with_labels(const std::vector<std::pair<std::size_t, double>>& heads) {
  RolesResult roles;
  for (const char* name : {"x", "y", "z"}) roles.definition.roles.push_back({name, {}});
  for (const auto& [label, clarity] : heads) roles.heads.push_back({label, clarity, {}});
  return roles;
}

TEST(HeadChoice, SharesTheRoomAmongRolesAndTakesTheClearest) {
  const RolesResult roles =
      with_labels({{x, 0.5}, {mixed, missing}, {x, 0.9}, {x, 0.7}, {y, 0.1}, {x, 0.8}, {z, 0.6}, {z, 0.65}});
  const auto chosen = [&](std::size_t most) { return choose_heads(roles, most).heads; };
  EXPECT_THAT(chosen(3), ElementsAre(2, 4, 7));           // the clearest of each
  EXPECT_THAT(chosen(5), ElementsAre(2, 4, 5, 6, 7));     // y has no second
  EXPECT_THAT(chosen(6), ElementsAre(2, 3, 4, 5, 6, 7));  // only x has a third
  EXPECT_THAT(chosen(7), ElementsAre(0, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(chosen(99), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(choose_heads(roles, 3).with_role, 3U);
  EXPECT_EQ(choose_heads(roles, 3).all_with_role, 7U);
  EXPECT_EQ(choose_heads(roles, 99).with_role, 7U);
}

TEST(HeadChoice, FillsUpWithOthersAtEqualDistances) {
  std::vector<std::pair<std::size_t, double>> heads(20, {mixed, missing});
  heads[7] = {y, 0.5};
  const HeadChoice choice = choose_heads(with_labels(heads), 4);
  EXPECT_THAT(choice.heads, ElementsAre(0, 7, 10, 19));  // the first, the middle and the last of the other 19
  EXPECT_EQ(choice.with_role, 1U);
  EXPECT_THAT(choose_heads(with_labels(heads), 2).heads, ElementsAre(7, 10));
  EXPECT_THAT(choose_heads(with_labels(heads), 1).heads, ElementsAre(7));
  EXPECT_THAT(choose_heads(with_labels({}), 64).heads, IsEmpty());
}

TEST(HeadChoice, IsMadeAmongTheHeadsThatAreGiven) {
  const RolesResult roles = with_labels({{x, 0.9}, {x, 0.5}, {y, 0.5}, {mixed, missing}, {mixed, missing}});
  const std::size_t among[] = {1, 3, 4};
  EXPECT_THAT(choose_heads(roles, among, 2).heads, ElementsAre(1, 4));
  EXPECT_EQ(choose_heads(roles, among, 2).all_with_role, 1U);
}

TEST(HeadChoice, OfEquallyClearHeadsTakesTheFirst) {
  EXPECT_THAT(choose_heads(with_labels({{mixed, missing}, {x, 0.5}, {x, 0.5}, {y, 0.5}}), 2).heads, ElementsAre(1, 3));
}

}  // namespace
}  // namespace headscope
