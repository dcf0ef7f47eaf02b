// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "edl/base/platform/notice_source.hpp"

namespace edl::platform {

/// Notices of clouds that take spot instances away. A cloud's metadata service answers on each of its
/// machines, at an address that no other machine can reach. Each function returns null for another cloud's
/// name.
///
/// - "aws": IMDSv2, `spot/instance-action` and `events/recommendations/rebalance`, each 5 s, as its guide
///   advises. AWS_EC2_METADATA_SERVICE_ENDPOINT replaces its address, as in AWS's SDKs.
/// - "gcp": `instance/preempted` and `instance/maintenance-event`, each second. Its address is that in
///   GCE_METADATA_HOST, if it is set, as in Google's libraries.
/// - "azure": Scheduled Events of this machine that end its processes, each second.
///   AZURE_POD_IDENTITY_AUTHORITY_HOST replaces its address, as in Azure's SDKs.
/// - "auto": the first of them that answers.
///
/// Requests are never sent through a proxy, take a second at most, and replies of more than 64 KiB count as
/// none. Throws usage_error if the replaced address is none.
std::unique_ptr<notice_source> make_cloud_source(std::string const& name, variable_reader const& variable);

// What the services' replies say: who takes the machine, and when; empty: nobody. They accept any bytes.

/// {"action": "terminate", "time": "2026-11-20T10:39:00Z"}; "stop" and "hibernate" end processes, too.
std::string read_aws_action(std::string_view json);
/// {"noticeTime": "2026-11-20T10:39:00Z"}
std::string read_aws_rebalance(std::string_view json);
/// "TRUE" or "FALSE"
std::string read_gcp_preempted(std::string_view text);
/// "NONE", "MIGRATE_ON_HOST_MAINTENANCE" (processes live on) or "TERMINATE_ON_HOST_MAINTENANCE"
std::string read_gcp_maintenance(std::string_view text);
/// {"Events": [{"EventType": "Preempt", "Resources": ["machine"], "NotBefore": "…"}]}: of `machine`. Events
/// "Preempt", "Terminate", "Redeploy" and "Reboot" end processes; "Freeze" does not.
std::string read_azure_events(std::string_view json, std::string_view machine);

}  // namespace edl::platform

#ifdef EDL_HEADER_ONLY
#include "edl/base/platform/cloud_notice.ipp"
#endif
