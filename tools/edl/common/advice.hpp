// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace edl::tool {

/// What a pod's or an event's reason means in a word or two, and what to do about it; empty when it is not
/// known. `message` is the cluster's own. Reasons are Kubernetes' and those that a job's master reports; `by`
/// tells them apart, as an event's component: "kubelet", "edl-master"; empty: not known. Remedies name `job`,
/// with the flags that stand behind it: "mnist -n team".
struct remark {
  std::string meaning, remedy;
};
remark advise(std::string const& reason, std::string const& message, std::string const& job,
              std::string const& by = "");

/// Flags of edl, as `cluster::flags`, without what kubectl does not know.
std::string for_kubectl(std::string flags);

/// "Unschedulable: 0/3 nodes are available: …: ask for less with …", on one line.
std::string in_words(std::string const& reason, std::string const& message, std::string const& job,
                     std::string const& by = "");

}  // namespace edl::tool
