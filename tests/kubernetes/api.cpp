// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/api.hpp"

#include <algorithm>
#include <sstream>

#include "kubernetes/admission.hpp"
#include "kubernetes/custom.hpp"
#include "kubernetes/patch.hpp"
#include "kubernetes/quantity.hpp"
#include "kubernetes/structural.hpp"
#include "kubernetes/table.hpp"
#include "kubernetes/types.hpp"

namespace edl::testing::kubernetes {
namespace {

std::string verb_of(request const& r, bool named) {
  if (r.method == "GET") return r.is_set("watch") ? "watch" : named ? "get" : "list";
  if (r.method == "POST") return "create";
  if (r.method == "PUT") return "update";
  if (r.method == "PATCH") return "patch";
  return named ? "delete" : "deletecollection";
}

bool wants_table(request const& r) { return r.accept.find("as=Table") != r.accept.npos; }

std::uint64_t number(std::string const& version) {
  if (version.empty() || !std::ranges::all_of(version, [](char c) { return c >= '0' && c <= '9'; }))
    throw bad_request(
        fmt::format("resourceVersion: Invalid value: \"{}\": strconv.ParseUint: parsing \"{}\": invalid "
                    "syntax",
                    version, version));
  return std::stoull(version.substr(0, 18));
}

json scale_for(type const& of, json const& d, bool strict = false) {
  json const& meta = d["metadata"];
  if (of.is_custom()) {
    json out = scale_of(of, d, strict);
    for (char const* same : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"})
      out["metadata"][same] = meta[same];
    return out;
  }
  json const labels = d["spec"].value("selector", json::object()).value("matchLabels", json::object());
  std::string selector;
  for (auto const& [k, v] : labels.items())
    selector += (selector.empty() ? "" : ",") + k + "=" + v.get<std::string>();
  json out{{"kind", "Scale"},
           {"apiVersion", "autoscaling/v1"},
           {"spec", {{"replicas", d["spec"]["replicas"]}}},
           {"status",
            {{"replicas", d.value("status", json::object()).value("replicas", 0)}, {"selector", selector}}}};
  for (char const* same : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"})
    out["metadata"][same] = meta[same];
  return out;
}

// Drops what the schema of a custom resource does not know, which is an error if the request is strict, and
// fills in defaults.
void shape(request const& r, type const& of, json& o) {
  if (!of.is_custom()) return;
  std::vector<std::string> const gone = prune(of.schema, o);
  if (!gone.empty() && r.parameter("fieldValidation") == "Strict") {
    std::string all;
    for (std::string const& path : gone)
      all += fmt::format("{}unknown field \"{}\"", all.empty() ? "" : ", ", path);
    throw bad_request(
        fmt::format("{0} in version \"{1}\" cannot be handled as a {0}: strict decoding error: {2}", of.kind,
                    of.version, all));
  }
  fill_defaults(of.schema, o);
}

// What a strict server before 1.35 says of a pod with fields that it does not know.
void refuse_newer(type const& of, json const& o) {
  if (of.plural != "pods") return;
  for (json const& c : o.value("/spec/containers"_json_pointer, json::array()))
    if (c.contains("restartPolicy") || c.contains("restartPolicyRules"))
      throw bad_request(
          "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field "
          "\"spec.containers[0].restartPolicyRules\"");
}

// Custom resources are selected by name and namespace, and by no field besides.
void check_fields(request const& r, type const& of) {
  std::string const selector = r.parameter("fieldSelector");
  if (!of.is_custom() || selector.empty()) return;
  std::istringstream in(selector);
  for (std::string one; std::getline(in, one, ',');)
    if (std::string const field = one.substr(0, one.find_first_of("!="));
        field != "metadata.name" && field != "metadata.namespace")
      throw bad_request("field label not supported: " + field);
}

// What counts for the generation: of a custom resource all but metadata and status.
json spec_of(type const& of, json o) {
  if (!of.is_custom()) return o.value("spec", json());
  o.erase("metadata");
  if (of.has_status) o.erase("status");
  return o;
}

// An object that is being deleted gets no new finalizers.
void keep_finalizers_falling(type const& of, json const& is, json const& next) {
  if (!is_leaving(is)) return;
  json const old = is["metadata"].value("finalizers", json::array());
  std::string fresh;
  for (json const& f : next["metadata"].value("finalizers", json::array()))
    if (std::ranges::find(old, f) == old.end()) fresh += (fresh.empty() ? "" : ", ") + f.dump();
  if (!fresh.empty())
    throw invalid(of, is["metadata"]["name"],
                  {{"FieldValueForbidden", "metadata.finalizers",
                    fmt::format("Forbidden: no new finalizers can be added if the object is being deleted, "
                                "found new finalizers []string{{{}}}",
                                fresh)}});
}

}  // namespace

bool has_finalizers(json const& o) {
  json const list = o["metadata"].value("finalizers", json());
  return list.is_array() && !list.empty();
}

json request::object() const {
  if (content_type.starts_with("application/vnd.kubernetes.protobuf"))
    throw unknown_format("application/json");
  json o = json::parse(body, nullptr, false);
  if (!o.is_object())
    throw bad_request("couldn't get version/kind; json parse error: invalid character in body");
  return o;
}

bool request::is_dry() const {
  std::string const how = parameter("dryRun");
  if (how.empty() || how == "All") return !how.empty();
  throw bad_request(fmt::format("dryRun: Unsupported value: \"{}\": supported values: \"All\"", how));
}

filter request::selector() const {
  filter const labels = label_filter(parameter("labelSelector")),
               fields = field_filter(parameter("fieldSelector"));
  return [=](json const& o) { return labels(o) && fields(o); };
}

json event_of(watch const& w, store::change const& c) {
  json const& any = c.after ? *c.after : *c.before;
  if (c.resource != w.resource || (!w.space.empty() && any["metadata"].value("namespace", "") != w.space))
    return nullptr;
  bool const was = c.before && w.which(*c.before), is = c.after && w.which(*c.after);
  if (!was && !is) return nullptr;
  json o = is ? *c.after : *c.before;
  o["metadata"]["resourceVersion"] = std::to_string(c.version);
  return {{"type", was && is ? "MODIFIED" : is ? "ADDED" : "DELETED"}, {"object", o}};
}

api::target api::find_target(std::string const& path) const {
  std::vector<std::string> steps;
  std::istringstream in(path);
  for (std::string s; std::getline(in, s, '/');)
    if (!s.empty()) steps.push_back(s);
  bool const core = steps.size() > 2 && steps[0] == "api" && steps[1] == "v1";
  if (!core && (steps.size() < 4 || steps[0] != "apis")) throw no_such_path();
  std::string const group = core ? "" : steps[1], version = core ? "v1" : steps[2];
  steps.erase(steps.begin(), steps.begin() + (core ? 2 : 3));
  target t{};
  if (steps[0] == "namespaces" && steps.size() > 2 && steps[2] != "status" && steps[2] != "finalize") {
    t.space = steps[1];
    steps.erase(steps.begin(), steps.begin() + 2);
  }
  t.resource = store_.find_type(group, steps[0]);
  if (!t.resource || t.resource->version != version || steps.size() > 3) throw no_such_path();
  if (steps.size() > 1) t.name = steps[1];
  if (steps.size() > 2) t.subresource = steps[2];
  if (!t.subresource.empty() &&
      std::ranges::find(t.resource->subresources, t.subresource) == t.resource->subresources.end())
    throw no_such_path();
  return t;
}

bool api::allowed(std::string const& verb, std::string const& resource, std::string const& space,
                  std::string const& user) const {
  auto const is = [](std::string const& pattern, std::string const& value) {
    return pattern == "*" || pattern == value;
  };
  std::lock_guard const lock(mutex_);
  return std::ranges::none_of(forbidden_, [&](rule const& f) {
    return is(f.verb, verb) && is(f.resource, resource) && is(f.space, space) && is(f.user, user);
  });
}

void api::forbid(std::vector<rule> rules) {
  std::lock_guard const lock(mutex_);
  forbidden_ = std::move(rules);
}

void api::authorize(request const& r, target const& t) const {
  std::string const resource = t.resource->plural + (t.subresource.empty() ? "" : "/" + t.subresource);
  std::string const verb = verb_of(r, !t.name.empty());
  if (!r.user.empty() && allowed(verb, resource, t.space, r.user)) return;
  throw forbidden(
      *t.resource, t.name,
      fmt::format("User \"{}\" cannot {} resource \"{}\" in API group \"{}\" {}",
                  r.user.empty() ? "system:anonymous" : r.user, verb, resource, t.resource->group,
                  t.space.empty() ? "at the cluster scope" : "in the namespace \"" + t.space + "\""));
}

response api::handle(request const& r) try {
  if (json const known = discovery(store_, r.path, options_.minor); !known.is_null()) {
    if (r.user.empty() && r.path != "/version")
      throw refusal{403, failure(403, "Forbidden",
                                 fmt::format("forbidden: User \"system:anonymous\" cannot get path "
                                             "\"{}\"",
                                             r.path),
                                 json::object())};
    return answer{200, known.dump()};
  }
  if (r.path == "/healthz" || r.path == "/livez" || r.path == "/readyz")
    return answer{200, "ok", "text/plain"};
  target const t = find_target(r.path);
  authorize(r, t);
  auto const held = store_.lock();
  if (r.method == "GET") return read(r, t);
  if (r.method == "POST") return t.name.empty() ? create(r, t) : post_to(r, t);
  if (r.method == "PUT" || r.method == "PATCH") return change(r, t);
  if (r.method == "DELETE") return t.name.empty() ? remove_all(r, t) : remove(r, t);
  throw refusal{
      405, failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource",
                   json::object())};
} catch (refusal const& no) {
  return answer{no.code, no.body.dump(), "application/json", no.retry_after};
} catch (json::exception const& e) {
  return answer{400,
                bad_request(fmt::format("the object provided is unrecognized: {}", e.what())).body.dump()};
}

object api::find(target const& t) const {
  object const o = store_.find(*t.resource, t.space, t.name);
  if (!o) throw not_found(*t.resource, t.name);
  return o;
}

response api::read(request const& r, target const& t) {
  if (t.name.empty() || r.is_set("watch")) {
    if (r.is_set("watch")) return follow(r, t);
    return list(r, t);
  }
  object const o = find(t);
  if (t.subresource == "log") {
    log_request l{t.space, t.name, r.parameter("container"), r.is_set("previous"), r.is_set("follow"), {}};
    if (std::string const n = r.parameter("tailLines"); !n.empty()) l.tail = number(n);
    if (r.is_set("timestamps")) l.begun = o->value("/status/startTime"_json_pointer, "1970-01-01T00:00:00Z");
    return l;
  }
  if (t.subresource == "scale") return answer{200, scale_for(*t.resource, *o, true).dump()};
  return answer{200, (wants_table(r) ? table(*t.resource, {o}) : *o).dump()};
}

answer api::list(request const& r, target const& t) {
  check_fields(r, *t.resource);
  std::string const at = r.parameter("resourceVersion"), match = r.parameter("resourceVersionMatch");
  std::string const place = r.parameter("continue"), limit = r.parameter("limit");
  if (match == "Exact" && number(at) <= store_.oldest() && number(at) != store_.version())
    throw refusal{410, expired("The resourceVersion for the provided list is too old.")};
  std::string after;
  if (!place.empty()) {
    auto const dot = place.find('.');
    if (number(place.substr(0, dot)) < store_.oldest())
      throw refusal{
          410, expired("The provided continue parameter is too old to display a consistent list result. You "
                       "can start a new list without the continue parameter, or use the continue token in "
                       "this response to retrieve the remainder of the results.")};
    after = place.substr(dot + 1);
  }
  filter const which = r.selector();
  auto const key = [](json const& o) {
    return o["metadata"].value("namespace", "") + "/" + o["metadata"]["name"].get<std::string>();
  };
  std::vector<object> found = store_.list(
      *t.resource, t.space, [&](json const& o) { return which(o) && (after.empty() || key(o) > after); });
  json meta{{"resourceVersion", std::to_string(store_.version())}};
  if (!limit.empty() && number(limit) > 0 && found.size() > number(limit)) {
    if (r.parameter("labelSelector").empty() && r.parameter("fieldSelector").empty())
      meta["remainingItemCount"] = found.size() - number(limit);
    found.resize(number(limit));
    meta["continue"] = fmt::format("{}.{}", store_.version(), key(*found.back()));
  }
  if (wants_table(r)) {
    json rows = table(*t.resource, found);
    rows["metadata"] = meta;
    return {200, rows.dump()};
  }
  json items = json::array();
  for (object const& o : found) {
    items.push_back(*o);
    if (!t.resource->is_custom()) items.back().erase("kind"), items.back().erase("apiVersion");
  }
  return {200, json{{"kind", t.resource->kind + "List"},
                    {"apiVersion", t.resource->api_version()},
                    {"metadata", meta},
                    {"items", items}}
                   .dump()};
}

watch api::follow(request const& r, target const& t) {
  check_fields(r, *t.resource);
  filter which = r.selector();
  if (!t.name.empty())
    which = [which, name = t.name](json const& o) { return o["metadata"]["name"] == name && which(o); };
  watch w{t.resource, t.space, which, store_.version()};
  w.bookmarks = r.is_set("allowWatchBookmarks");
  w.as_table = wants_table(r);
  w.timeout = std::chrono::duration_cast<std::chrono::seconds>(options_.longest_watch);
  if (std::string const s = r.parameter("timeoutSeconds"); !s.empty())
    w.timeout = std::chrono::seconds(number(s));
  std::string const from = r.parameter("resourceVersion");
  if (from.empty() || from == "0") {
    for (object const& o : store_.list(*t.resource, t.space, which))
      w.first.push_back({{"type", "ADDED"}, {"object", *o}});
  } else {
    w.from = number(from);
  }
  return w;
}

answer api::create(request const& r, target const& t) {
  json o = r.object();
  if (t.resource->plural.ends_with("subjectaccessreviews")) return review(r, t.space);
  if (o.value("kind", t.resource->kind) != t.resource->kind ||
      o.value("apiVersion", t.resource->api_version()) != t.resource->api_version())
    throw bad_request(
        fmt::format("{} in version \"{}\" cannot be handled as a {}: no kind \"{}\" is registered",
                    o.value("kind", ""), o.value("apiVersion", ""), t.resource->kind, o.value("kind", "")));
  o["kind"] = t.resource->kind;
  o["apiVersion"] = t.resource->api_version();
  json& meta = o["metadata"];
  if (!meta.is_object()) meta = json::object();
  if (t.resource->namespaced) {
    if (meta.value("namespace", t.space) != t.space)
      throw bad_request(
          "the namespace of the provided object does not match the namespace sent on the request");
    meta["namespace"] = t.space;
    type const& spaces = store_.kind("namespaces");
    if (!store_.find(spaces, "", t.space)) throw not_found(spaces, t.space);
  }
  if (meta.value("name", "").empty()) {
    std::string const prefix = meta.value("generateName", "");
    if (prefix.empty())
      throw invalid(
          *t.resource, "",
          {{"FieldValueRequired", "metadata.name", "Required value: name or generateName is required"}});
    meta["name"] = prefix + random_suffix(5);
  }
  if (t.resource->has_status) o.erase("status");
  shape(r, *t.resource, o);
  if (t.resource->is_custom() || (o.contains("spec") && t.resource->plural != "services"))
    meta["generation"] = 1;
  if (options_.minor < 35) refuse_newer(*t.resource, o);
  if (store_.find(*t.resource, t.space, meta["name"])) throw already_exists(*t.resource, meta["name"]);
  admit(store_, *t.resource, o, nullptr);
  if (r.is_dry()) {
    meta.update({{"uid", "00000000-0000-4000-a000-000000000000"}, {"creationTimestamp", timestamp()}});
    return {201, o.dump()};
  }
  object const made = store_.add(*t.resource, std::move(o));
  if (t.resource->plural == "customresourcedefinitions" && options_.establish_delay.count() == 0)
    establish(store_, (*made)["metadata"]["name"]);
  return {201, made->dump()};
}

answer api::change(request const& r, target const& t) {
  object is = store_.find(*t.resource, t.space, t.name);
  bool const apply = r.content_type.starts_with("application/apply-patch+yaml") && t.subresource.empty();
  if (!is && apply) {
    request fresh = r;
    fresh.method = "POST";
    json o = r.object();
    o["metadata"]["name"] = t.name;
    fresh.body = o.dump();
    target at = t;
    at.name.clear();
    return create(fresh, at);
  }
  if (!is) throw not_found(*t.resource, t.name);
  bool const scale = t.subresource == "scale";
  json const base = scale ? scale_for(*t.resource, *is) : *is;
  json o = r.method == "PUT" ? r.object() : patched(base, r.content_type, r.body);
  std::string const seen = o.value("metadata", json::object()).value("resourceVersion", "");
  if (!seen.empty() && (*is)["metadata"]["resourceVersion"] != seen) throw stale(*t.resource, t.name);
  // Another object of that name is not what was meant.
  if (std::string const uid = o.value("/metadata/uid"_json_pointer, "");
      !uid.empty() && (*is)["metadata"]["uid"] != uid)
    throw stale(*t.resource, t.name);
  json next = *is;
  if (scale) {
    json const wanted = o.value("spec", json::object()).value("replicas", json(0));
    if (t.resource->is_custom())
      set_scale(*t.resource, next, wanted), shape(r, *t.resource, next),
          admit(store_, *t.resource, next, is.get());
    else
      next["spec"]["replicas"] = wanted;
  } else if (t.subresource == "status") {
    next.erase("status");
    if (o.contains("status")) next["status"] = o["status"];
    if (t.resource->is_custom()) shape(r, *t.resource, next), admit(store_, *t.resource, next, is.get());
  } else if (t.subresource == "resize") {
    for (std::size_t i = 0; i < next["spec"]["containers"].size(); ++i)
      next["spec"]["containers"][i]["resources"] =
          o["spec"]["containers"].at(i).value("resources", json::object());
  } else {
    if (r.method == "PUT" && t.resource->needs_version && seen.empty())
      throw invalid(*t.resource, t.name,
                    {{"FieldValueInvalid", "metadata.resourceVersion",
                      "Invalid value: 0x0: must be specified for an update"}});
    if (std::string const uid = o["metadata"].value("uid", "");
        !uid.empty() && (*is)["metadata"]["uid"] != uid)
      throw conflict(*t.resource, t.name,
                     fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}", uid,
                                 (*is)["metadata"]["uid"].get<std::string>()));
    for (char const* fixed : {"uid", "creationTimestamp", "name", "namespace", "generation",
                              "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"})
      if ((*is)["metadata"].contains(fixed)) o["metadata"][fixed] = (*is)["metadata"][fixed];
    o["kind"] = t.resource->kind;
    o["apiVersion"] = t.resource->api_version();
    if (t.resource->has_status) o.erase("status");
    if (t.resource->has_status && is->contains("status")) o["status"] = (*is)["status"];
    next = o;
    shape(r, *t.resource, next);
    keep_finalizers_falling(*t.resource, *is, next);
    admit(store_, *t.resource, next, is.get());
  }
  if (spec_of(*t.resource, next) != spec_of(*t.resource, *is) && next["metadata"].contains("generation"))
    next["metadata"]["generation"] = next["metadata"]["generation"].get<int>() + 1;
  if (r.is_dry()) {
    is = std::make_shared<json const>(std::move(next));
  } else if (is_leaving(next) && !has_finalizers(next) && has_finalizers(*is) &&
             t.resource->plural != "pods") {
    store_.remove(*t.resource, t.space, t.name);  // that was the last of them
    is = std::make_shared<json const>(std::move(next));
  } else {
    is = store_.put(*t.resource, std::move(next));
    if (t.resource->plural == "customresourcedefinitions" && t.subresource.empty() && is_established(*is))
      establish(store_, t.name);
  }
  return {200, (scale ? scale_for(*t.resource, *is) : *is).dump()};
}

answer api::review(request const& r, std::string const& space) const {
  json o = r.object();
  json const asked = o["spec"].value("resourceAttributes", json::object());
  std::string const sub = asked.value("subresource", "");
  std::string const resource = asked.value("resource", "") + (sub.empty() ? "" : "/" + sub);
  std::string const user = o["spec"].value("user", r.user);
  o["status"] = {
      {"allowed", allowed(asked.value("verb", ""), resource, asked.value("namespace", space), user)}};
  return {201, o.dump()};
}

}  // namespace edl::testing::kubernetes
