// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/admission.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <regex>

#include "kubernetes/quantity.hpp"
#include "kubernetes/structural.hpp"

namespace edl::testing::kubernetes {
namespace {

void default_to(json& o, char const* name, json const& value) {
  if (!o.contains(name)) o[name] = value;
}

cause missing(std::string const& field) { return {"FieldValueRequired", field, "Required value"}; }

void check_name(type const& of, std::string const& name) {
  // Services are DNS labels; the rest may have dots.
  bool const is_label = of.plural == "services" || of.plural == "namespaces";
  static std::regex const subdomain("[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*");
  static std::regex const label("[a-z]([-a-z0-9]*[a-z0-9])?");
  std::size_t const longest = is_label ? 63 : 253;
  if (of.group == "rbac.authorization.k8s.io") return;  // path segments
  if (name.size() > longest)
    throw invalid(
        of, name,
        {invalid_value("metadata.name", name, fmt::format("must be no more than {} bytes", longest))});
  if (is_label && !std::regex_match(name, label))
    throw invalid(
        of, name,
        {invalid_value("metadata.name", name,
                       "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start "
                       "with an alphabetic "
                       "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
                       "regex used for "
                       "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')")});
  if (!is_label && !std::regex_match(name, subdomain))
    throw invalid(
        of, name,
        {invalid_value(
            "metadata.name", name,
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must "
            "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")});
}

void check_labels(type const& of, std::string const& name, json const& meta) {
  static std::regex const value("(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?");
  json const labels = meta.value("labels", json::object());
  for (auto const& [k, v] : labels.items()) {
    if (!v.is_string())
      throw bad_request(
          fmt::format("{} in version \"{}\" cannot be handled as a {}: json: cannot "
                      "unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
                      of.kind, of.version, of.kind));
    std::string const text = v;
    if (text.size() > 63)
      throw invalid(of, name, {invalid_value("metadata.labels", v, "must be no more than 63 bytes")});
    if (!std::regex_match(text, value))
      throw invalid(
          of, name,
          {invalid_value("metadata.labels", v,
                         "a valid label must be an empty string or consist of alphanumeric characters, "
                         "'-', '_' or '.', and must "
                         "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
                         "or '12345', regex used for "
                         "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")});
  }
}

void check_quantities(type const& of, json const& pod) {
  static std::regex const form("([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)");
  for (json const& c : pod["spec"]["containers"])
    for (json const& list : c.value("resources", json::object()))
      for (json const& value : list) {
        if (!value.is_string() || quantity(value.get<std::string>())) continue;
        throw bad_request(fmt::format("{0} in version \"{1}\" cannot be handled as a {0}: {2}", of.kind,
                                      of.version,
                                      std::regex_match(value.get<std::string>(), form)
                                          ? "unable to parse quantity's suffix"
                                          : "quantities must match the regular expression "
                                            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"));
      }
}

void check_containers(type const& of, json const& pod, std::vector<cause>& wrongs) {
  json const none = json::array();
  json const& volumes = pod["spec"].contains("volumes") ? pod["spec"]["volumes"] : none;
  std::size_t i = 0;
  for (json const& c : pod["spec"]["containers"]) {
    std::string const at = fmt::format("spec.containers[{}].", i++);
    if (c.value("name", "").empty()) wrongs.push_back(missing(at + "name"));
    if (c.value("image", "").empty()) wrongs.push_back(missing(at + "image"));
    json const given = c.value("resources", json::object());
    json const limits = given.value("limits", json::object()),
               wanted = given.value("requests", json::object());
    for (auto const& [name, value] : wanted.items())
      if (limits.contains(name) && quantity(limits[name]) < quantity(value))
        wrongs.push_back(invalid_value(at + "resources.requests", value,
                                       fmt::format("must be less than or equal to {} limit of {}", name,
                                                   limits[name].get<std::string>())));
    std::size_t j = 0;
    for (json const& m : c.value("volumeMounts", none)) {
      std::string const field = fmt::format("{}volumeMounts[{}].", at, j++);
      if (m.value("mountPath", "").empty()) wrongs.push_back(missing(field + "mountPath"));
      if (std::ranges::none_of(volumes, [&](json const& v) { return v.value("name", json()) == m["name"]; }))
        wrongs.push_back(
            {"FieldValueNotFound", field + "name", fmt::format("Not found: {}", m["name"].dump())});
    }
  }
  static_cast<void>(of);
}

void check_quota(store const& in, type const& of, json const& pod) {
  std::string const space = pod["metadata"]["namespace"], name = pod["metadata"]["name"];
  amounts const wanted = requests(pod);
  auto const amount = [](amounts const& of_pod, std::string const& resource) {
    std::string const key = resource.starts_with("requests.") ? resource.substr(9) : resource;
    auto const it = of_pod.find(key);
    return it == of_pod.end() ? std::optional<double>() : it->second;
  };
  for (object const& quota : in.list(in.kind("resourcequotas"), space)) {
    std::string requested, used, limited;
    json const hard = (*quota)["spec"].value("hard", json::object());
    for (auto const& [resource, limit] : hard.items()) {
      if (resource.starts_with("limits.") || resource.starts_with("count/")) continue;
      auto const ask = amount(wanted, resource);
      if (!ask)
        throw forbidden(of, name,
                        fmt::format("failed quota: {}: must specify {} for: {}",
                                    (*quota)["metadata"]["name"].get<std::string>(), resource,
                                    pod["spec"]["containers"][0]["name"].get<std::string>()));
      double now = 0;
      for (object const& p : in.list(of, space, [](json const& p) { return !is_over(p); }))
        now += amount(requests(*p), resource).value_or(0);
      if (now + *ask <= quantity(limit)) continue;
      for (auto const& [text, value] :
           {std::pair{&requested, to_text(*ask)},
            {&used, to_text(now)},
            {&limited, limit.is_string() ? limit.get<std::string>() : limit.dump()}})
        *text += fmt::format("{}{}={}", text->empty() ? "" : ",", resource, value);
    }
    if (!requested.empty())
      throw forbidden(of, name,
                      fmt::format("exceeded quota: {}, requested: {}, used: {}, limited: {}",
                                  (*quota)["metadata"]["name"].get<std::string>(), requested, used, limited));
  }
}

void default_pod(store const& in, type const& of, json& pod) {
  json& spec = pod["spec"];
  if (spec.value("priorityClassName", "").empty())
    for (object const& c : in.list(in.kind("priorityclasses")))
      if (c->value("globalDefault", false)) spec["priorityClassName"] = (*c)["metadata"]["name"];
  std::string const priority = spec.value("priorityClassName", "");
  object const its_class = priority.empty() ? nullptr : in.find(in.kind("priorityclasses"), "", priority);
  if (its_class)
    spec["priority"] = (*its_class)["value"];
  else if (!priority.empty())
    throw forbidden(of, pod["metadata"]["name"],
                    fmt::format("no PriorityClass with name {} was found", priority));
  else
    spec["priority"] = 0;

  std::string const who = spec.value("serviceAccountName", "default"), space = pod["metadata"]["namespace"];
  if (who != "default" && !in.find(in.kind("serviceaccounts"), space, who))  // every namespace has that one
    throw forbidden(of, pod["metadata"]["name"],
                    fmt::format("error looking up service account {0}/{1}: serviceaccount \"{1}\" not found",
                                space, who));
  std::string const account = "/var/run/secrets/kubernetes.io/serviceaccount";
  std::string const volume = "kube-api-access-" + random_suffix(5);
  if (spec.value("automountServiceAccountToken", true))
    spec["volumes"].push_back(
        {{"name", volume},
         {"projected",
          {{"defaultMode", 420},
           {"sources", {{{"serviceAccountToken", {{"expirationSeconds", 3607}, {"path", "token"}}}}}}}}});
  bool requested = false, limited = true;
  for (json& c : spec["containers"]) {
    if (spec.value("automountServiceAccountToken", true))
      c["volumeMounts"].push_back({{"name", volume}, {"readOnly", true}, {"mountPath", account}});
    default_to(c, "resources", json::object());
    json& given = c["resources"];
    if (given.contains("limits")) {
      json wanted = given["limits"];
      wanted.update(given.value("requests", json::object()));
      given["requests"] = wanted;
    }
    requested |= given.contains("requests");
    limited &= given.contains("limits") && given["limits"].contains("cpu") &&
               given["limits"].contains("memory") && given["limits"] == given["requests"];
    std::string const image = c["image"];
    bool const latest = image.ends_with(":latest") || image.find(':', image.rfind('/') + 1) == image.npos;
    default_to(c, "imagePullPolicy", latest ? "Always" : "IfNotPresent");
    default_to(c, "terminationMessagePath", "/dev/termination-log");
    default_to(c, "terminationMessagePolicy", "File");
  }
  default_to(spec, "restartPolicy", "Always");
  default_to(spec, "terminationGracePeriodSeconds", 30);
  default_to(spec, "dnsPolicy", "ClusterFirst");
  default_to(spec, "serviceAccountName", "default");
  default_to(spec, "serviceAccount", spec["serviceAccountName"]);
  default_to(spec, "securityContext", json::object());
  default_to(spec, "schedulerName", "default-scheduler");
  default_to(spec, "enableServiceLinks", true);
  default_to(spec, "preemptionPolicy", "PreemptLowerPriority");
  for (char const* trouble : {"not-ready", "unreachable"})
    spec["tolerations"].push_back({{"key", fmt::format("node.kubernetes.io/{}", trouble)},
                                   {"operator", "Exists"},
                                   {"effect", "NoExecute"},
                                   {"tolerationSeconds", 300}});
  pod["status"] = {{"phase", "Pending"},
                   {"qosClass", limited     ? "Guaranteed"
                                : requested ? "Burstable"
                                            : "BestEffort"}};
}

void admit_pod(store const& in, type const& of, json& pod, json const* before) {
  std::string const name = pod["metadata"]["name"];
  if (!pod["spec"].is_object() || !pod["spec"].contains("containers") || pod["spec"]["containers"].empty())
    throw invalid(of, name, {missing("spec.containers")});
  check_quantities(of, pod);
  std::vector<cause> wrongs;
  check_containers(of, pod, wrongs);
  std::string const restart = pod["spec"].value("restartPolicy", "Always");
  if (restart != "Always" && restart != "OnFailure" && restart != "Never")
    wrongs.push_back(
        {"FieldValueNotSupported", "spec.restartPolicy",
         fmt::format("Unsupported value: \"{}\": supported values: \"Always\", \"OnFailure\", \"Never\"",
                     restart)});
  if (!wrongs.empty()) throw invalid(of, name, wrongs);
  if (!before) {
    default_pod(in, of, pod);
    check_quota(in, of, pod);
    return;
  }
  json a = (*before)["spec"], b = pod["spec"];
  for (json* spec : {&a, &b}) {
    for (char const* field : {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"})
      spec->erase(field);
    for (json& c : (*spec)["containers"]) c.erase("image"), c.erase("resources");  // resources: by /resize
  }
  if (a != b)
    throw invalid(of, name,
                  {{"FieldValueForbidden", "spec",
                    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
                    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
                    "additions to existing "
                    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
                    "previously negative)"}});
}

void admit_service(store const& in, type const& of, json& service, json const* before) {
  json& spec = service["spec"];
  if (!spec.is_object() || !spec.contains("ports") || spec["ports"].empty())
    if (spec.value("clusterIP", "") != "None")
      throw invalid(of, service["metadata"]["name"], {missing("spec.ports")});
  for (json& p : spec["ports"]) {
    default_to(p, "protocol", "TCP");
    default_to(p, "targetPort", p.value("port", 0));
  }
  default_to(spec, "type", "ClusterIP");
  default_to(spec, "sessionAffinity", "None");
  default_to(spec, "internalTrafficPolicy", "Cluster");
  default_to(spec, "ipFamilies", {"IPv4"});
  default_to(spec, "ipFamilyPolicy", "SingleStack");
  std::uint64_t const n = in.version();
  default_to(spec, "clusterIP",
             before ? (*before)["spec"]["clusterIP"]
                    : json(fmt::format("10.96.{}.{}", n / 250 % 250 + 1, n % 250 + 1)));
  spec["clusterIPs"] = json::array({spec["clusterIP"]});
  if (!before) service["status"] = {{"loadBalancer", json::object()}};
}

void admit_deployment(type const& of, json& deployment) {
  json& spec = deployment["spec"];
  std::string const name = deployment["metadata"]["name"];
  default_to(spec, "replicas", 1);
  if (!spec.contains("selector")) throw invalid(of, name, {missing("spec.selector")});
  json const labels = spec.value("/template/metadata/labels"_json_pointer, json::object());
  if (!has_labels(labels, spec["selector"].value("matchLabels", json::object())))
    throw invalid(of, name,
                  {invalid_value("spec.template.metadata.labels", labels,
                                 "`selector` does not match template `labels`")});
  if (spec.value("/template/spec/containers"_json_pointer, json::array()).empty())
    throw invalid(of, name, {missing("spec.template.spec.containers")});
}

std::string base64(std::string const& text) {
  std::string out((text.size() + 2) / 3 * 4 + 1, '\0');
  int const n = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                reinterpret_cast<unsigned char const*>(text.data()), int(text.size()));
  out.resize(std::size_t(n));
  return out;
}

void admit_definition(type const& of, json& crd, json const* before) {
  json& spec = crd["spec"];
  std::string const name = crd["metadata"]["name"], group = spec.value("group", "");
  default_to(spec["names"], "listKind", spec["names"].value("kind", "") + "List");
  default_to(spec, "conversion", {{"strategy", "None"}});
  std::vector<cause> wrongs;
  if (name != spec["names"].value("plural", "") + "." + group)
    wrongs.push_back(invalid_value("metadata.name", name, "must be spec.names.plural+\".\"+spec.group"));
  std::size_t i = 0;
  for (json const& version : spec.value("versions", json::array())) {
    std::string const field = fmt::format("spec.versions[{}].schema.openAPIV3Schema", i++);
    json const schema = version.value("schema", json::object()).value("openAPIV3Schema", json());
    if (schema.is_object())
      std::ranges::copy(schema_errors(schema, field), std::back_inserter(wrongs));
    else
      wrongs.push_back({"FieldValueRequired", field, "Required value: schemas are required"});
  }
  if (!wrongs.empty()) throw invalid(of, name, wrongs);
  if (!before) crd["status"] = {{"storedVersions", {"v1"}}};
}

}  // namespace

void admit(store const& in, type const& of, json& o, json const* before) {
  std::string const name = o["metadata"]["name"];
  if (!before) check_name(of, name);
  check_labels(of, name, o["metadata"]);
  if (of.plural == "pods") admit_pod(in, of, o, before);
  if (of.plural == "services") admit_service(in, of, o, before);
  if (of.plural == "secrets") {
    json const plain = o.value("stringData", json::object());
    for (auto const& [key, value] : plain.items()) o["data"][key] = base64(value.get<std::string>());
    o.erase("stringData");
    default_to(o, "type", "Opaque");
  }
  if (of.plural == "namespaces") o["status"] = {{"phase", "Active"}};
  if (of.plural == "persistentvolumeclaims") o["status"] = {{"phase", "Bound"}};
  if (of.plural == "priorityclasses") {
    default_to(o, "preemptionPolicy", "PreemptLowerPriority");
    default_to(o, "value", 0);
  }
  if (of.plural == "resourcequotas") default_to(o, "spec", json::object());
  if (of.plural == "deployments") admit_deployment(of, o);
  if (of.plural == "customresourcedefinitions") admit_definition(of, o, before);
  if (of.is_custom())
    if (auto const wrongs = object_errors(of.schema, o, before); !wrongs.empty())
      throw invalid(of, name, wrongs);
}

}  // namespace edl::testing::kubernetes
