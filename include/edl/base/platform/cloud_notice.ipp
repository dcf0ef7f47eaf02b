// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "edl/base/http/client/metadata_service.hpp"
#include "edl/base/platform/cloud_notice.hpp"
#include "edl/core/error.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/json.hpp"
#include "edl/core/printable.hpp"
#include "edl/core/text.hpp"

namespace edl::platform {
namespace detail {

/// A text of a JSON object, printable and short; empty: there is none.
inline std::string text_of(nlohmann::json const& from, char const* key) {
  if (!from.is_object()) return {};
  auto const it = from.find(key);
  return it != from.end() && it->is_string() ? printable(it->get_ref<std::string const&>(), 100)
                                             : std::string();
}

/// A value of a metadata service, and what it says.
struct told {
  char const* path;
  std::string (*read)(std::string_view);
};

class aws final : public notice_source {
 public:
  explicit aws(variable_reader const& variable) : service_(variable) {}

  report look(std::function<bool()> const& stopped) override {
    report r;
    for (auto const& [path, read] : {told{"spot/instance-action", read_aws_action},
                                     told{"events/recommendations/rebalance", read_aws_rebalance}}) {
      auto const answer = service_.get(path, stopped);
      if (answer.code == 0 || answer.code == 401) return r;
      if (answer.code == 200) r.notice = read(answer.body);
      r.answered = true;  // 404: there is no notice
      if (!r.notice.empty()) break;
    }
    return r;
  }

  std::chrono::milliseconds interval() const override { return std::chrono::seconds(5); }
  std::string name() const override { return "AWS's metadata service (IMDSv2)"; }

 private:
  http::aws_metadata service_;
};

class gcp final : public notice_source {
 public:
  explicit gcp(variable_reader const& variable)
      : service_(http::metadata_address(variable, "GCE_METADATA_HOST", "http://")) {}

  report look(std::function<bool()> const& stopped) override {
    report r;
    for (auto const& [path, read] :
         {told{"preempted", read_gcp_preempted}, told{"maintenance-event", read_gcp_maintenance}}) {
      auto const answer = service_.ask("GET", fmt::format("/computeMetadata/v1/instance/{}", path),
                                       {{"Metadata-Flavor", "Google"}}, stopped);
      // Another cloud's service answers at the same address.
      if (answer.code == 0 || answer.flavor != "Google") return r;
      if (answer.code == 200) r.notice = read(answer.body);
      r.answered = true;
      if (!r.notice.empty()) break;
    }
    return r;
  }

  std::chrono::milliseconds interval() const override { return std::chrono::seconds(1); }
  std::string name() const override { return "Google Cloud's metadata service"; }

 private:
  http::metadata_service service_;
};

class azure final : public notice_source {
 public:
  explicit azure(variable_reader const& variable)
      : service_(http::metadata_address(variable, "AZURE_POD_IDENTITY_AUTHORITY_HOST")) {}

  report look(std::function<bool()> const& stopped) override {
    http::fields const header{{"Metadata", "true"}};
    if (machine_.empty()) {
      auto const name = service_.ask(
          "GET", "/metadata/instance/compute/name?api-version=2021-02-01&format=text", header, stopped);
      std::string_view const text = trimmed(name.body);
      if (name.code != 200 || text.empty() || text.size() > 256) return {};
      machine_ = text;
    }
    // The service begins when it is first asked, which may take two minutes.
    auto const events =
        service_.ask("GET", "/metadata/scheduledevents?api-version=2020-07-01", header, stopped);
    return {.answered = true, .notice = events.code == 200 ? read_azure_events(events.body, machine_) : ""};
  }

  std::chrono::milliseconds interval() const override { return std::chrono::seconds(1); }
  std::string name() const override { return "Azure's metadata service"; }

 private:
  http::metadata_service service_;
  std::string machine_;  // the name of this one
};

class any_cloud final : public notice_source {
 public:
  explicit any_cloud(variable_reader const& variable) {
    all_.push_back(std::make_unique<aws>(variable));
    all_.push_back(std::make_unique<gcp>(variable));
    all_.push_back(std::make_unique<azure>(variable));
  }

  report look(std::function<bool()> const& stopped) override {
    for (auto& one : all_) {
      if (stopped()) break;
      report r = one->look(stopped);
      if (!r.answered) continue;
      if (all_.size() > 1) {  // a machine stays where it is
        auto found = std::move(one);
        all_.clear();
        all_.push_back(std::move(found));
      }
      return r;
    }
    return {};
  }

  std::chrono::milliseconds interval() const override { return all_.front()->interval(); }
  std::string name() const override {
    return all_.size() > 1 ? "a cloud's metadata service" : all_.front()->name();
  }

 private:
  std::vector<std::unique_ptr<notice_source>> all_;
};

}  // namespace detail

EDL_INLINE std::unique_ptr<notice_source> make_cloud_source(std::string const& name,
                                                            variable_reader const& variable) {
  try {
    if (name == "aws") return std::make_unique<detail::aws>(variable);
    if (name == "gcp") return std::make_unique<detail::gcp>(variable);
    if (name == "azure") return std::make_unique<detail::azure>(variable);
    if (name == "auto") return std::make_unique<detail::any_cloud>(variable);
  } catch (error const& e) {
    throw usage_error(fmt::format("--preemption_notice={}: {}", name, e.what()));
  }
  return nullptr;
}

EDL_INLINE std::string read_aws_action(std::string_view json) {
  nlohmann::json const all = parse_json(json);
  std::string const action = detail::text_of(all, "action"), time = detail::text_of(all, "time");
  if (action != "terminate" && action != "stop" && action != "hibernate") return {};
  return fmt::format("AWS will {} its machine{}{}", action, time.empty() ? "" : " at ", time);
}

EDL_INLINE std::string read_aws_rebalance(std::string_view json) {
  std::string const time = detail::text_of(parse_json(json), "noticeTime");
  if (time.empty()) return {};
  return fmt::format("AWS recommended at {} to leave its machine, which it is likely to take away", time);
}

EDL_INLINE std::string read_gcp_preempted(std::string_view text) {
  return trimmed(text) == "TRUE" ? "Google Cloud preempts its machine" : "";
}

EDL_INLINE std::string read_gcp_maintenance(std::string_view text) {
  return trimmed(text) == "TERMINATE_ON_HOST_MAINTENANCE"
             ? "Google Cloud will terminate its machine for maintenance"
             : "";
}

EDL_INLINE std::string read_azure_events(std::string_view json, std::string_view machine) {
  static constexpr std::array ends{"Preempt", "Terminate", "Redeploy", "Reboot"};
  nlohmann::json const all = parse_json(json);
  if (!all.is_object()) return {};
  auto const events = all.find("Events");
  if (events == all.end() || !events->is_array()) return {};
  for (auto const& one : *events) {
    std::string const type = detail::text_of(one, "EventType"), when = detail::text_of(one, "NotBefore");
    if (std::ranges::find(ends, type) == ends.end()) continue;
    auto const resources = one.find("Resources");
    if (resources == one.end() || !resources->is_array()) continue;
    bool const ours = std::ranges::any_of(*resources, [&](nlohmann::json const& name) {
      return name.is_string() && lower(name.get_ref<std::string const&>()) == lower(machine);
    });
    if (ours)
      return fmt::format("Azure will {} its machine{}{}", lower(type), when.empty() ? "" : ", not before ",
                         when);
  }
  return {};
}

}  // namespace edl::platform
