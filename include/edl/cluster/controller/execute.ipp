// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "edl/base/net/security/token.hpp"
#include "edl/cluster/controller/execute.hpp"
#include "edl/cluster/controller/job_objects.hpp"
#include "edl/cluster/controller/pod_record.hpp"
#include "edl/cluster/kubernetes/client.hpp"
#include "edl/cluster/kubernetes/errors.hpp"
#include "edl/cluster/kubernetes/fields.hpp"
#include "edl/cluster/kubernetes/objects.hpp"
#include "edl/cluster/kueue/podgroup.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"

namespace edl::controller {
namespace detail {

using kubernetes::api_error;

class executor {
 public:
  executor(api_requests& api, kubernetes::training_job const& job, execute_options& options)
      : api_(api), job_(job), options_(options) {}

  execution run(decision const& what) {
    decision_ = &what;
    for (action const& a : what.actions) {
      std::visit([this](auto const& one) { carry_out(one); }, a);
      if (out_.look_again || out_.job_gone || !out_.stalled.empty()) return std::move(out_);
    }
    return std::move(out_);
  }

 private:
  static bool says(api_error const& e, std::string_view what) {
    return e.message().find(what) != std::string::npos;
  }

  void carry_out(write_status const& w) {
    // Replaces the status as a whole. A merge patch would keep fields that are no longer set.
    nlohmann::json const change{
        {{"op", "replace"}, {"path", "/metadata/resourceVersion"}, {"value", job_.resource_version}},
        {{"op", "add"}, {"path", "/status"}, {"value", status_json(w.status)}}};
    try {
      out_.seen.emplace_back(object_kind::job, api_.patch(path_of(job_) + "/status", change, "json"));
      out_.status_written = true;
    } catch (api_error const& e) {
      if (e.code() == 409) return look_again();
      if (e.code() != 404) throw;
      out_.job_gone = true;
    }
  }

  void look_again() {
    out_.look_again = true;
    try {
      out_.seen.emplace_back(object_kind::job, api_.get(path_of(job_)));
    } catch (api_error const& e) {
      if (e.code() != 404) throw;
      out_.job_gone = true;
    }
  }

  void carry_out(create_master const& how) {
    namespace k8s = kubernetes;
    std::string made = "secret";
    try {
      kubernetes::training_job here = placed(job_, decision_->changes);
      if (!options_.pod_groups.empty()) {
        made = "PodGroup";
        gather(how.alone);
        here.spec.server = kueue::in_pod_group(here.spec.server, job_);
        here.spec.worker = kueue::in_pod_group(here.spec.worker, job_);
        made = "secret";
      }
      auto const spec = spec_of(here, how.workers);
      add("secrets", k8s::token_secret(spec, net::token::random().secret()));
      made = "service";
      if (!add("services", k8s::master_service(spec)) &&
          !owned("services", k8s::pod_name(job_.name, {role::master, 0})))
        return;
      made = "master's pod";
      add_pod(here, how);
    } catch (usage_error const& e) {
      stall("InvalidSpec", e.what(), options_.refused_retry);
    } catch (api_error const& e) {
      if (!refused(e, made)) throw;
    }
  }

  std::string groups() const {
    return fmt::format("/apis/scheduling.k8s.io/{}/namespaces/{}/podgroups", options_.pod_groups, job_.space);
  }

  /// Creates the members' PodGroup. Makes one from an earlier start a gang again if no member is left.
  void gather(bool alone) {
    auto const api = kueue::pod_group_api_called(options_.pod_groups);
    try {
      api_.create(groups(), kueue::pod_group(job_, api));
    } catch (api_error const& e) {
      if (e.code() != 409 || e.reason() != "AlreadyExists") throw;
      if (alone && api.count_changes) set_gang(kueue::gang_size(job_));
    }
  }

  void set_gang(std::uint32_t count) {
    nlohmann::json change;
    change["spec"]["schedulingPolicy"]["gang"]["minCount"] = count;
    api_.patch(groups() + "/" + kueue::pod_group_name(job_), change, "merge");
  }

  void carry_out(open_gang const&) {
    if (options_.pod_groups.empty() || !kueue::pod_group_api_called(options_.pod_groups).count_changes)
      return;
    try {
      set_gang(1);
    } catch (api_error const& e) {
      if (e.code() != 404) throw;  // the job was started without
    }
  }

  /// Returns false if an object of this name exists already.
  bool add(std::string const& plural, nlohmann::json const& object) {
    try {
      auto created = api_.create(core_path(job_.space, plural), object);
      if (plural == "pods") out_.seen.emplace_back(object_kind::pod, std::move(created));
      return true;
    } catch (api_error const& e) {
      if (e.code() != 409 || e.reason() != "AlreadyExists") throw;
      return false;
    }
  }

  void add_pod(kubernetes::training_job const& here, create_master const& how) {
    std::string const name = kubernetes::pod_name(job_.name, {role::master, 0});
    bool made = false;
    try {
      made = add("pods", master_of(here, how, options_.restart_rules));
    } catch (api_error const& e) {
      if (!options_.restart_rules || !kubernetes::refuses_restart_rules(e)) throw;
      made = add("pods", master_of(here, how, false));
      options_.restart_rules = false;
    }
    if (!made) owned("pods", name);
  }

  /// Whether the existing object belongs to this job; if not, records how to resolve that.
  bool owned(std::string const& plural, std::string const& name) {
    nlohmann::json existing;
    try {
      existing = api_.get(core_path(job_.space, plural, name));
    } catch (api_error const& e) {
      if (e.code() != 404) throw;
      out_.look_again = true;  // it was deleted meanwhile
      return false;
    }
    if (plural == "pods") out_.seen.emplace_back(object_kind::pod, existing);
    using kubernetes::field;
    auto const& owners = field(existing, {"metadata", "ownerReferences"});
    std::string other = "no TrainingJob";
    bool earlier = false;
    if (owners.is_array())
      for (auto const& o : owners) {
        if (kubernetes::text(field(o, {"uid"})) == job_.uid) return true;
        other = kubernetes::text(field(o, {"kind"})) + " " + kubernetes::text(field(o, {"name"}));
        earlier = earlier || other == "TrainingJob " + job_.name;
      }
    bool const going = field(existing, {"metadata", "deletionTimestamp"}).is_string();
    stall("NameTaken",
          earlier ? fmt::format("{} {} belongs to the earlier {}, and goes with it", plural, name, other)
                  : fmt::format(
                        "{} {} already exists and belongs to {}: {}", plural, name, other,
                        going ? "it is being removed"
                              : "delete it (`edl delete` for a job), or create this job under another name"),
          going || earlier ? 2 : options_.short_retry);
    return false;
  }

  void stall(std::string reason, std::string why, double retry_after) {
    out_.stalled = std::move(reason);
    out_.why = std::move(why);
    out_.retry_after = retry_after;
  }

  /// Whether the reply refuses this job's object, rather than reporting trouble with the server.
  bool refused(api_error const& e, std::string const& what) {
    if (e.code() == 404 || e.code() == 409)
      return stall("Refused", fmt::format("no {}: {}", what, e.what()), 2), true;
    if (e.code() == 400 || e.code() == 413 || e.code() == 422)
      return stall("Refused", fmt::format("the API server rejects the {}: {}", what, e.what()),
                   options_.refused_retry),
             true;
    if (e.code() != 403) return false;
    std::string_view const reason = says(e, "exceeded quota")   ? "QuotaExceeded"
                                    : says(e, "serviceaccount") ? "ServiceAccountMissing"
                                    : says(e, "cannot ")        ? "NotAllowed"
                                                                : "Refused";
    std::string why = fmt::format("the API server rejects the {}: {}", what, e.what());
    if (reason == "ServiceAccountMissing") {
      auto const like = nlohmann::json::parse(job_.spec.master, nullptr, false);
      std::string const named = kubernetes::text(kubernetes::field(like, {"spec", "serviceAccountName"}));
      why += fmt::format(
          "; `edl rbac --apply --namespace={} --service_account={}` makes it, or name another in "
          "spec.master.template",
          job_.space, named.empty() ? usual_account : named);
    }
    stall(std::string(reason), why, options_.short_retry);
    return true;
  }

  void carry_out(annotate_master const& a) {
    nlohmann::json notes = nlohmann::json::object();
    for (auto const& [name, value] : a.notes) notes[name] = value ? nlohmann::json(*value) : nlohmann::json();
    try {
      // The patch includes the uid, which is immutable, so a successor of the same name refuses the patch.
      out_.seen.emplace_back(object_kind::pod,
                             api_.patch(core_path(job_.space, "pods", a.name),
                                        {{"metadata", {{"uid", a.uid}, {"annotations", notes}}}}, "merge"));
    } catch (api_error const& e) {
      if (!vanished(e)) throw;
    }
  }

  void carry_out(delete_pod const& d) {
    nlohmann::json how{{"preconditions", {{"uid", d.uid}}}};
    if (d.force) how["gracePeriodSeconds"] = 0;
    try {
      api_.remove(core_path(job_.space, "pods", d.name), how);
    } catch (api_error const& e) {
      if (!vanished(e)) throw;
    }
  }

  void carry_out(release_pod const& r) {
    std::string const path = core_path(job_.space, "pods", r.name);
    try {
      // Other controllers may also hold the pod; a finalizer that they add meanwhile causes a conflict.
      auto const existing = api_.get(path);
      using kubernetes::field;
      if (kubernetes::text(field(existing, {"metadata", "uid"})) != r.uid) return;
      auto holders = field(existing, {"metadata", "finalizers"});
      if (!holders.is_array()) return;
      holders.erase(std::remove(holders.begin(), holders.end(), recorded_finalizer), holders.end());
      api_.patch(path,
                 {{"metadata",
                   {{"resourceVersion", field(existing, {"metadata", "resourceVersion"})},
                    {"finalizers", holders}}}},
                 "merge");
    } catch (api_error const& e) {
      if (!vanished(e)) throw;
      out_.look_again = e.code() == 409;
    }
  }

  void carry_out(delete_job const&) {
    try {
      api_.remove(path_of(job_),
                  {{"preconditions", {{"uid", job_.uid}}}, {"propagationPolicy", "Background"}});
    } catch (api_error const& e) {
      if (e.code() != 404 && e.code() != 409) throw;
    }
    out_.job_gone = true;
  }

  void carry_out(ask_kueue const& a) {
    kueue::api_write const& r = a.write;
    std::string const all = fmt::format("/apis/{}/namespaces/{}/workloads", kueue::api_version, r.space);
    std::string const path = all + "/" + r.name;
    auto const body = nlohmann::json::parse(r.body);
    try {
      using verb = kueue::api_write::verb;
      if (r.action == verb::create)
        out_.workloads.push_back(api_.create(all, body));
      else if (r.action == verb::remove)
        api_.remove(path, body);
      else if (r.action == verb::patch)
        out_.workloads.push_back(api_.patch(path, body, "json"));
      else
        out_.workloads.push_back(api_.patch(path + "/status", body, "merge"));
    } catch (api_error const& e) {
      // Another client changed the object first: read it again and decide anew.
      if (e.code() == 409 || e.code() == 404) return read_workload(path);
      if (e.code() != 403 && e.code() != 400 && e.code() != 422) throw;
      stall("KueueRefused",
            fmt::format("the API server rejects a change of Workload {}: {}", r.name, e.what()),
            options_.short_retry);
    }
  }

  void read_workload(std::string const& path) {
    out_.look_again = true;
    try {
      out_.workloads.push_back(api_.get(path));
    } catch (api_error const& e) {
      if (e.code() != 404) throw;
    }
  }

  /// The pod is gone, or another has its name; the watch will report that.
  static bool vanished(api_error const& e) {
    return e.code() == 404 || e.code() == 409 || (e.code() == 422 && says(e, "uid"));
  }

  api_requests& api_;
  kubernetes::training_job const& job_;
  execute_options& options_;
  decision const* decision_ = nullptr;
  execution out_;
};

}  // namespace detail

EDL_INLINE execution execute(api_requests& api, kubernetes::training_job const& job, decision const& what,
                             execute_options& options) {
  return detail::executor(api, job, options).run(what);
}

}  // namespace edl::controller
