// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "kubernetes/status.hpp"

namespace edl::testing::kubernetes {

/// What an API server does to custom resources by the structural schema of their definition.

/// A cause in the server's words.
inline cause invalid_value(std::string const& field, json const& value, std::string const& why) {
  return {"FieldValueInvalid", field, fmt::format("Invalid value: {}: {}", value.dump(), why)};
}

/// What keeps a server from taking the schema of a definition. Examples are fields without types, lists
/// without keys, and defaults where none may be. Rules that it cannot read, that name no field or that may
/// cost too much are others. `field`: the schema's place, for the causes.
std::vector<cause> schema_errors(json const& schema, std::string const& field = "openAPIV3Schema");

/// Drops the fields that the schema does not know, at any depth; returns their paths: "spec.workrs".
std::vector<std::string> prune(json const& schema, json& o);

/// Fills in the schema's defaults.
void fill_defaults(json const& schema, json& o);

/// What is wrong with an object, in the server's words. `before`: what it replaces, or null. Rules are asked
/// only where nothing is wrong that they could stumble over.
std::vector<cause> object_errors(json const& schema, json const& o, json const* before);

/// All rules of a schema with the paths of the fields that they are about, and their estimated cost in the
/// whole object: "spec.workers".
struct rule_cost {
  std::string field, rule;
  double cost;
};
std::vector<rule_cost> rule_costs(json const& schema);

/// What a server allows a rule, and a definition, to cost.
inline constexpr double most_rule_cost = 1e7, most_definition_cost = 1e8;

}  // namespace edl::testing::kubernetes
