// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "kubernetes/double.hpp"
#include "kubernetes/store.hpp"

namespace edl::testing::kubernetes {

/// The kind that a CustomResourceDefinition defines, as its version that is stored.
type defined_by(json const& crd);

/// Makes the kind of that definition known, or as the definition has become, and says so in its conditions
/// NamesAccepted and Established.
void establish(store& in, std::string const& crd);

/// Whether a definition's kind is there.
bool is_established(json const& crd);

/// Establishes definitions some time after they are made. Thread safety: on one thread.
class definitions {
 public:
  definitions(store& s, options const& o) : store_(s), options_(o) {}

  /// Returns when to come again.
  clock::time_point pass();

 private:
  store& store_;
  options const& options_;
  std::map<std::string, clock::time_point> made_;  // by uid
};

/// The value at a path as subresources and printer columns have it: ".spec.workers.replicas",
/// ".status.records[0].reason"; null: there is none.
json at_path(json const& o, std::string const& path);

/// The Scale object of a custom resource; throws refusal as a server's GET does where it has no replicas and
/// `strict`.
json scale_of(type const& of, json const& o, bool strict);

/// Sets what the path of the subresource scale names.
void set_scale(type const& of, json& o, json const& replicas);

}  // namespace edl::testing::kubernetes
