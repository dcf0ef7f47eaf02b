// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/patch.hpp"

#include <algorithm>
#include <map>

namespace edl::testing::kubernetes {
namespace {

// By which member the elements of a list are told apart, in the order of preference; from the patchMergeKey
// marks of the published schemas.
std::string merge_key(std::string const& list, json const& elements) {
  static std::map<std::string, std::vector<std::string>> const keys{
      {"containers", {"name"}},        {"initContainers", {"name"}},
      {"volumes", {"name"}},           {"env", {"name"}},
      {"imagePullSecrets", {"name"}},  {"secrets", {"name"}},
      {"volumeMounts", {"mountPath"}}, {"conditions", {"type"}},
      {"ownerReferences", {"uid"}},    {"ports", {"containerPort", "port"}}};
  auto const it = keys.find(list);
  if (it == keys.end() || elements.empty() || !elements[0].is_object()) return "";
  for (std::string const& k : it->second)
    if (std::ranges::all_of(elements, [&](json const& e) { return e.contains(k); })) return k;
  return "";
}

void merge_list(json& into, json const& patch, std::string const& key) {
  for (json element : patch) {
    auto const it =
        std::ranges::find_if(into, [&](json const& e) { return e.value(key, json()) == element[key]; });
    std::string const order = element.value("$patch", "");
    element.erase("$patch");
    if (order == "delete") {
      if (it != into.end()) into.erase(it);
    } else if (it == into.end()) {
      into.push_back(element);
    } else {
      merge_strategically(*it, element);
    }
  }
}

}  // namespace

void merge_strategically(json& into, json const& patch) {
  if (!patch.is_object() || patch.value("$patch", "") == "replace") {
    into = patch;
    if (into.is_object()) into.erase("$patch");
    return;
  }
  if (!into.is_object()) into = json::object();
  for (auto const& [name, value] : patch.items()) {
    if (name.starts_with('$')) continue;  // directives about order
    if (value.is_null()) {
      into.erase(name);
    } else if (value.is_object()) {
      merge_strategically(into[name], value);
    } else if (std::string const key = value.is_array() ? merge_key(name, value) : "";
               !key.empty() && into.contains(name) && into[name].is_array()) {
      merge_list(into[name], value, key);
    } else {
      into[name] = value;
    }
  }
}

json patched(json const& is, std::string const& media_type, std::string const& body) {
  json const patch = json::parse(body, nullptr, false);
  if (patch.is_discarded()) throw bad_request("error decoding patch: invalid character in JSON");
  json out = is;
  if (media_type.starts_with("application/merge-patch+json")) {
    out.merge_patch(patch);
  } else if (media_type.starts_with("application/json-patch+json")) {
    try {
      out = is.patch(patch);
    } catch (json::exception const& e) {
      throw refusal{422, failure(422, "Invalid",
                                 fmt::format("the server rejected our request due to an error in "
                                             "our request: {}",
                                             e.what()))};
    }
  } else if (media_type.starts_with("application/strategic-merge-patch+json") ||
             media_type.starts_with("application/apply-patch+yaml")) {
    merge_strategically(out, patch);
  } else {
    throw unknown_format(
        "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, "
        "application/apply-patch+yaml");
  }
  if (!out.is_object()) throw bad_request("the patched object is no object");
  return out;
}

}  // namespace edl::testing::kubernetes
