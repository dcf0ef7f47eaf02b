// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "edl/cluster/kubernetes/annotations.hpp"
#include "edl/cluster/kubernetes/cluster_spec.hpp"
#include "edl/cluster/kubernetes/objects.hpp"
#include "edl/cluster/kubernetes/pod_template.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"
#include "edl/core/printable.hpp"

namespace edl::kubernetes {
namespace detail::objects {

using nlohmann::json;

inline constexpr int nobody = 65532;  // by convention the user and group in images without a shell

/// SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGKILL, SIGSEGV, SIGTERM, SIGSYS. A failed probe sends SIGTERM;
/// a deleted pod gets it, too, but its containers are not restarted.
inline constexpr int killed[] = {132, 133, 134, 135, 136, 137, 139, 143, 159};

inline json job_labels(std::string const& job) {
  return {{"app", "elasticdl"}, {"elasticdl-job-name", job}, {"elasticdl_job_name", job}};
}

/// The server expands $(NAME), and turns $$ into $; this escapes text so that it stays as it is.
inline std::string verbatim(std::string const& text) {
  std::string out;
  for (char const c : text) out.append(c == '$' ? 2 : 1, c);
  return out;
}

/// A container's environment: later values replace earlier ones.
class variables {
 public:
  void set(std::string const& name, std::string const& value) {
    put({{"name", name}, {"value", verbatim(value)}});
  }
  void set_field(std::string const& name, char const* path) {
    put({{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}});
  }
  void set_secret(std::string const& name, std::string const& secret, char const* key) {
    put({{"name", name}, {"valueFrom", {{"secretKeyRef", {{"name", secret}, {"key", key}}}}}});
  }
  json take() { return std::move(all_); }

 private:
  void put(json one) {
    for (json& other : all_)
      if (other["name"] == one["name"]) {
        other = std::move(one);
        return;
      }
    all_.push_back(std::move(one));
  }

  json all_ = json::array();
};

/// Volumes of a pod and where its container has them.
class mounts {
 public:
  explicit mounts(std::string pod) : pod_(std::move(pod)) {}

  void add(volume const& v) {
    // Two mounts of the same source share a volume; read-only is a property of the mount.
    auto const same = std::find_if(known_.begin(), known_.end(), [&](volume const& o) {
      return std::tie(o.claim_name, o.host_path, o.type) == std::tie(v.claim_name, v.host_path, v.type);
    });
    auto const n = std::size_t(same - known_.begin());
    std::string const name = volume_name(n);
    if (same == known_.end()) {
      known_.push_back(v);
      json one{{"name", name}};
      if (!v.claim_name.empty())
        one["persistentVolumeClaim"] = {{"claimName", v.claim_name}};
      else
        one["hostPath"] = {{"path", v.host_path}};
      if (!v.type.empty()) one["hostPath"]["type"] = v.type;
      volumes_.push_back(std::move(one));
    }
    json mount{{"name", name}, {"mountPath", v.mount_path}};
    if (!v.sub_path.empty()) mount["subPath"] = v.sub_path;
    if (v.read_only) mount["readOnly"] = true;
    mounts_.push_back(std::move(mount));
  }

  /// Adds an emptyDir unless something is already mounted there.
  void add_own(char const* name, char const* path) {
    for (json const& m : mounts_)
      if (m["mountPath"] == path) return;
    volumes_.push_back({{"name", name}, {"emptyDir", json::object()}});
    mounts_.push_back({{"name", name}, {"mountPath", path}});
  }

  json take_volumes() { return std::move(volumes_); }
  json take_mounts() { return std::move(mounts_); }

 private:
  std::string volume_name(std::size_t n) const {
    std::string const end = fmt::format("-volume-{}", n);
    std::string start = pod_.substr(0, 63 - end.size());
    while (start.ends_with('-')) start.pop_back();
    return start + end;
  }

  std::string pod_;
  std::vector<volume> known_;
  json volumes_ = json::array(), mounts_ = json::array();
};

inline json probe(std::uint16_t port, int period, int failures) {
  return {{"tcpSocket", {{"port", port}}},
          {"periodSeconds", period},
          {"timeoutSeconds", 5},
          {"failureThreshold", failures}};
}

inline std::uint16_t port_of(role what) {
  return what == role::master ? master_port : what == role::server ? server_port : worker_port;
}

/// The common part of all pods.
inline json pod(job_spec const& s, process_id const& who, json env, resources const& request,
                resources const& limit) {
  bool const master = who.role == role::master;
  std::string const name = pod_name(s.name, who);
  mounts where(name);
  for (volume const& v : s.volumes) where.add(v);
  where.add_own("tmp", "/tmp");
  if (master) where.add_own("journal", "/var/run/edl");

  json command = json::array();
  for (std::string const& word : s.command) command.push_back(verbatim(word));
  json container{
      {"name", name},
      {"image", master || s.worker_image.empty() ? s.image : s.worker_image},
      {"imagePullPolicy", s.image_pull_policy},
      {"command", std::move(command)},
      {"env", std::move(env)},
      {"ports", {{{"name", to_string(who.role)}, {"containerPort", port_of(who.role)}, {"protocol", "TCP"}}}},
      {"volumeMounts", where.take_mounts()},
      // The API server shows the last lines of the log as the reason of a failure.
      {"terminationMessagePolicy", "FallbackToLogsOnError"},
      {"securityContext",
       {{"allowPrivilegeEscalation", false},
        {"readOnlyRootFilesystem", true},
        {"capabilities", {{"drop", {"ALL"}}}}}}};
  resources const most = limit_of(request, limit);
  if (!request.empty()) container["resources"]["requests"] = request;
  if (!most.empty()) container["resources"]["limits"] = most;

  json labels = member_labels(s.name, who.role);
  labels["elasticdl-replica-index"] = std::to_string(who.id);
  json spec{{"restartPolicy", s.restart_policy},
            {"terminationGracePeriodSeconds", s.grace_seconds},
            {"enableServiceLinks", false},
            {"automountServiceAccountToken", master},
            {"securityContext",
             {{"runAsNonRoot", true},
              {"runAsUser", nobody},
              {"runAsGroup", nobody},
              {"fsGroup", nobody},
              // Otherwise the kubelet would change the owner of every file of a claim whenever a pod starts.
              {"fsGroupChangePolicy", "OnRootMismatch"},
              {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
            {"containers", json::array({std::move(container)})},
            {"volumes", where.take_volumes()}};
  for (std::string const& secret : s.image_pull_secrets)
    spec["imagePullSecrets"].push_back({{"name", secret}});
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", name}, {"namespace", s.space}, {"labels", std::move(labels)}}},
          {"spec", std::move(spec)}};
}

/// Variables of every container. Users cannot set reserved ones.
inline variables basics(job_spec const& s, role what) {
  variables v;
  // Only /tmp is writable.
  v.set("HOME", "/tmp");
  v.set("XDG_CACHE_HOME", "/tmp");
  for (auto const& [name, value] : s.variables)
    if (!reserved_variable(name)) v.set(name, value);
  v.set("EDL_ROLE", to_string(what));
  v.set("EDL_PORT", std::to_string(port_of(what)));
  v.set("EDL_JOB_NAME", s.name);
  v.set_secret("EDL_JOB_TOKEN", secret_name(s), "token");
  v.set("WORKER_NUM", std::to_string(s.num_workers));
  v.set_field("MY_POD_NAME", "metadata.name");
  v.set_field("MY_POD_NAMESPACE", "metadata.namespace");
  v.set_field("MY_POD_UID", "metadata.uid");
  v.set_field("MY_POD_IP", "status.podIP");
  return v;
}

/// `controls`: the owner replaces lost objects; `kubectl drain` requires that. `blocks`: deleting the owner
/// in the foreground waits for this object. Some servers allow that only to accounts that may write the
/// owner's finalizers, which a master need not.
inline json reference(owner const& by, bool controls, bool blocks = true) {
  json out{{"apiVersion", by.api_version}, {"kind", by.kind}, {"name", by.name}, {"uid", by.uid}};
  out["controller"] = controls;
  if (blocks) out["blockOwnerDeletion"] = true;
  return out;
}

inline void own(json& object, owner const& by) {
  if (!by.empty()) object["metadata"]["ownerReferences"] = json::array({reference(by, true)});
}

inline json master_pod(job_spec const& s, json const* like, bool restart_rules) {
  variables env = basics(s, role::master);
  env.set("EDL_PLATFORM", "kubernetes");
  env.set("EDL_JOURNAL", journal_file);
  env.set("EDL_JOB", to_json(s));
  json out = pod(s, {role::master, 0}, env.take(), s.master.request, s.master.limit);
  out["metadata"]["labels"]["status"] = "Pending";
  own(out, s.by);
  if (!s.service_account.empty()) out["spec"]["serviceAccountName"] = s.service_account;
  if (!s.master.priority.empty()) out["spec"]["priorityClassName"] = s.master.priority;

  json& container = out["spec"]["containers"][0];
  // Indexing many records takes long before the master listens. After that it either responds, or has been
  // without its socket for a minute.
  container["startupProbe"] = probe(master_port, 2, 900);
  container["readinessProbe"] = probe(master_port, 5, 3);
  container["livenessProbe"] = probe(master_port, 10, 6);
  if (restart_rules && s.restart_policy == "Never") {
    // A failed job (exit code 1) stays as it is. A killed master is restarted in the same pod, with the same
    // address, and still owns the same members.
    container["restartPolicy"] = "Never";
    container["restartPolicyRules"] =
        json::array({{{"action", "Restart"}, {"exitCodes", {{"operator", "In"}, {"values", killed}}}}});
  }
  if (like) out = by_template(std::move(out), *like, {}, {});
  customise_pod(out, s.cluster_spec, role::master);
  return out;
}

/// Spreads pods over nodes and zones as far as possible. A user's own constraint replaces this one.
inline json spread(std::map<std::string, std::string> const& labels) {
  json all = json::array();
  for (char const* over : {"kubernetes.io/hostname", "topology.kubernetes.io/zone"})
    all.push_back({{"maxSkew", 1},
                   {"topologyKey", over},
                   {"whenUnsatisfiable", "ScheduleAnyway"},
                   {"labelSelector",
                    {{"matchLabels",
                      {{"elasticdl-job-name", labels.at("elasticdl-job-name")},
                       {"elasticdl-replica-type", labels.at("elasticdl-replica-type")}}}}}});
  return all;
}

}  // namespace detail::objects

EDL_INLINE std::map<std::string, std::string> member_labels(std::string const& job, role what) {
  auto all = detail::objects::job_labels(job).get<std::map<std::string, std::string>>();
  all["elasticdl-replica-type"] = all["elasticdl_replica_type"] = to_string(what);
  return all;
}

EDL_INLINE std::string master_address(job_spec const& s) {
  return fmt::format("{}.{}.svc:{}", pod_name(s.name, {role::master, 0}), s.space, master_port);
}

EDL_INLINE nlohmann::json master_pod(job_spec const& s, bool restart_rules) {
  return detail::objects::master_pod(s, nullptr, restart_rules);
}

EDL_INLINE nlohmann::json master_pod(job_spec const& s, nlohmann::json const& like, bool restart_rules) {
  return detail::objects::master_pod(s, &like, restart_rules);
}

EDL_INLINE nlohmann::json member_pod(job_spec const& s, process_id const& who, std::uint32_t index,
                                     resources const& request, resources const& limit, owner const& by) {
  using namespace detail::objects;
  bool const server = who.role == role::server;
  variables env = basics(s, who.role);
  env.set("MASTER_ADDR", master_address(s));
  env.set(server ? "PS_ID" : "WORKER_ID", std::to_string(who.id));
  json out = pod(s, who, env.take(), request, limit);
  // If the members have another owner, they survive the loss of the master's node.
  out["metadata"]["ownerReferences"] =
      json::array({s.by.empty() ? reference(by, true) : reference(s.by, true, false)});
  if (!server) out["metadata"]["labels"]["elasticdl-original-index"] = std::to_string(index);
  std::string const priority =
      server ? s.server.priority : worker_priority(s.worker.priority, index, s.num_workers);
  if (!priority.empty()) out["spec"]["priorityClassName"] = priority;
  // Members have no liveness probe. The master detects silent members within seconds and replaces them; a
  // kubelet that also restarted them would interfere.
  if (server) out["spec"]["containers"][0]["readinessProbe"] = probe(server_port, 5, 3);
  // The loss of a node must not take all copies of a part of the model.
  if (server && s.server_copies > 1)
    out["spec"]["topologySpreadConstraints"] = spread(member_labels(s.name, role::server));
  if (std::string const& like = server ? s.server_template : s.worker_template; !like.empty())
    out = by_template(std::move(out), json::parse(like), request, limit);
  customise_pod(out, s.cluster_spec, who.role);
  return out;
}

EDL_INLINE void avoid_nodes(nlohmann::json& pod, std::vector<std::string> const& nodes) {
  if (nodes.empty()) return;
  auto& terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
                   ["nodeSelectorTerms"];
  if (terms.empty()) terms.push_back(nlohmann::json::object());  // at least one term must hold
  for (auto& term : terms)
    for (std::string const& node : nodes)
      term["matchFields"].push_back(nlohmann::json{
          {"key", "metadata.name"}, {"operator", "NotIn"}, {"values", nlohmann::json::array({node})}});
}

EDL_INLINE void put_in_pool(nlohmann::json& pod, std::string const& pool) {
  if (pool.empty()) return;
  nlohmann::json const labels = parse_json(pool);
  if (!labels.is_object())
    throw error(fmt::format("the annotation {}={} of the master's pod is not a JSON object", annotation::pool,
                            printable(pool, 200)));
  pod["metadata"]["annotations"][annotation::pool] = pool;
  auto& selector = pod["spec"]["nodeSelector"];
  for (auto const& [key, value] : labels.items()) selector[key] = value;
}

EDL_INLINE nlohmann::json master_service(job_spec const& s) {
  using namespace detail::objects;
  json selector = job_labels(s.name);
  selector["elasticdl-replica-type"] = "master";
  // A headless Service resolves to the pod's own address. So no proxy has to learn it first, and connections
  // go to the pod directly. It also resolves before the master is ready, because members may start earlier,
  // and survives a restart of the master, which happens in the same pod.
  json out{
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata",
       {{"name", pod_name(s.name, {role::master, 0})},
        {"namespace", s.space},
        {"labels", job_labels(s.name)}}},
      {"spec",
       {{"clusterIP", "None"},
        {"publishNotReadyAddresses", true},
        {"selector", std::move(selector)},
        {"ports",
         {{{"name", "master"}, {"port", master_port}, {"targetPort", master_port}, {"protocol", "TCP"}}}}}}};
  own(out, s.by);
  customise_service(out, s.cluster_spec);
  return out;
}

EDL_INLINE std::string secret_name(job_spec const& s) {
  return s.secret.empty() ? "elasticdl-" + s.name : s.secret;
}

EDL_INLINE std::string secret_name(owner const& by) {
  return fmt::format("elasticdl-{}-{}", by.name, by.uid.substr(0, 8));
}

EDL_INLINE nlohmann::json token_secret(job_spec const& s, std::string const& token) {
  using namespace detail::objects;
  json out{{"apiVersion", "v1"},
           {"kind", "Secret"},
           {"metadata", {{"name", secret_name(s)}, {"namespace", s.space}, {"labels", job_labels(s.name)}}},
           {"type", "Opaque"},
           {"stringData", {{"token", token}}}};
  own(out, s.by);
  return out;
}

EDL_INLINE nlohmann::json owned_by(owner const& by) {
  using namespace detail::objects;
  return {{"metadata", {{"ownerReferences", json::array({reference(by, false)})}}}};
}

}  // namespace edl::kubernetes
