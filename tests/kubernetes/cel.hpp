// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace edl::testing::kubernetes::cel {

using json = nlohmann::json;

/// What makes a rule no rule (`parse`, `check`), or its evaluation fail.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One node of an expression. `name`: of an identifier, a member, a function, a method or an operator.
struct expression {
  enum class kind { literal, list, name, member, has, index, call, method, loop, operation };
  kind form;
  std::string name{};
  json value{};
  std::vector<expression>
      parts{};             ///< the target of a member, method or loop first; a loop: its predicate second
  std::string variable{};  ///< of a loop
};

/// The part of the Common Expression Language that rules of CustomResourceDefinitions here use: literals,
/// members, has(), operators, lists, size, contains, startsWith, endsWith, matches, all, exists.
/// Throws error for the rest.
expression parse(std::string const& rule);

/// Whether the rule holds for `self`. Throws error: "no such key: replicas". `old_self` null: none.
bool holds(expression const& rule, json const& self, json const* old_self);

/// Whether the rule compares with what was before.
bool uses_old_self(expression const& rule);

/// Throws error where the rule names a member that the schema of `self` does not declare.
void check(expression const& rule, json const& schema);

/// What a server would estimate, or more: the cost of one evaluation with texts and lists as long as the
/// schema allows. A text or list without a bound is as long as a request.
double cost(expression const& rule, json const& schema);

/// The longest that a list, map or text of this schema can be.
double longest(json const& schema);

}  // namespace edl::testing::kubernetes::cel
