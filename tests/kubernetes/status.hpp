// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace edl::testing::kubernetes {

using json = nlohmann::json;

/// Whether an object is being deleted.
inline bool is_leaving(json const& object) { return object["metadata"].contains("deletionTimestamp"); }

/// What a refused request is answered with; thrown.
struct refusal {
  int code;
  json body;            ///< a Status object
  int retry_after = 0;  ///< seconds; 0: not said
};

inline json failure(int code, std::string const& reason, std::string const& message,
                    json const& details = {}) {
  json body{{"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", json::object()},
            {"status", "Failure"}, {"message", message}, {"reason", reason},
            {"code", code}};
  if (!details.is_null()) body["details"] = details;
  return body;
}

/// One kind of object that the server keeps, and how it answers for it.
struct type {
  std::string group, version, plural, kind;
  bool namespaced = true;
  bool answers_deleted = false;  ///< DELETE answers with the object instead of a Status
  bool has_status = false;       ///< status is written by its own path only
  std::vector<std::string> subresources{}, short_names{}, categories{};
  bool needs_version = false;  ///< PUT has to say which version it replaces
  bool served = true;
  std::string singular{};  ///< empty: the kind in lower case

  // Of a kind that a CustomResourceDefinition defines:
  json schema = nullptr;                                       ///< openAPIV3Schema
  json columns = json::array();                                ///< additionalPrinterColumns
  std::string spec_replicas{}, status_replicas{}, selector{};  ///< of the subresource scale: ".spec.replicas"

  bool is_custom() const { return !schema.is_null(); }

  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  std::string qualified() const { return group.empty() ? plural : plural + "." + group; }  ///< in messages

  json details(std::string const& name, bool by_kind = false) const {
    json d{{"kind", by_kind ? kind : plural}};
    if (!name.empty()) d["name"] = name;
    if (!group.empty()) d["group"] = group;
    return d;
  }
};

inline refusal not_found(type const& of, std::string const& name) {
  return {404, failure(404, "NotFound", fmt::format("{} \"{}\" not found", of.qualified(), name),
                       of.details(name))};
}

inline refusal no_such_path() {
  return {404, failure(404, "NotFound", "the server could not find the requested resource", json::object())};
}

inline refusal already_exists(type const& of, std::string const& name) {
  return {409, failure(409, "AlreadyExists", fmt::format("{} \"{}\" already exists", of.qualified(), name),
                       of.details(name))};
}

inline refusal conflict(type const& of, std::string const& name, std::string const& why) {
  return {409,
          failure(409, "Conflict",
                  fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", of.qualified(), name, why),
                  of.details(name))};
}

inline refusal stale(type const& of, std::string const& name) {
  return conflict(
      of, name,
      "the object has been modified; please apply your changes to the latest version and try again");
}

inline refusal bad_request(std::string const& message) { return {400, failure(400, "BadRequest", message)}; }

inline refusal unknown_format(std::string const& accepted) {
  return {415, failure(415, "UnsupportedMediaType",
                       "the body of the request was in an unknown format - accepted media types include: " +
                           accepted)};
}

inline refusal forbidden(type const& of, std::string const& name, std::string const& why) {
  std::string const what = name.empty() ? of.qualified() : fmt::format("{} \"{}\"", of.qualified(), name);
  return {403, failure(403, "Forbidden", fmt::format("{} is forbidden: {}", what, why), of.details(name))};
}

/// One thing wrong in an object: "FieldValueInvalid", "FieldValueRequired", "FieldValueForbidden", ….
struct cause {
  std::string reason, field, message;
};

inline refusal invalid(type const& of, std::string const& name, std::vector<cause> const& causes) {
  std::string all;
  json list = json::array();
  for (cause const& c : causes) {
    all += fmt::format("{}{}: {}", all.empty() ? "" : ", ", c.field, c.message);
    list.push_back({{"reason", c.reason}, {"message", c.message}, {"field", c.field}});
  }
  if (causes.size() > 1) all = "[" + all + "]";
  std::string const kind = of.group.empty() ? of.kind : of.kind + "." + of.group;
  json details = of.details(name, true);
  details["causes"] = list;
  return {422, failure(422, "Invalid", fmt::format("{} \"{}\" is invalid: {}", kind, name, all), details)};
}

inline json expired(std::string const& message) { return failure(410, "Expired", message); }

}  // namespace edl::testing::kubernetes
