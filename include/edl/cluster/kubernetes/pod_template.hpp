// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "edl/cluster/kubernetes/job_spec.hpp"

namespace edl::kubernetes {

/// Pods of a TrainingJob, made by a PodTemplateSpec. Its first container is the program's.

/// Throws usage_error when `text` is no JSON object with a container that names its image. An empty text is
/// no template. `field` is its name: "workers.template".
void check_pod_template(std::string const& field, std::string const& text);

/// `plain`, as a plain job has it, by a template that `check_pod_template` takes:
/// - the template's fields stand, and `plain`'s where it says nothing; a securityContext is one field. The
///   image's pull policy is the API server's to choose;
/// - `plain` has the name, namespace, owner, restart policy, the labels by which a job's pods are found, and
///   the reserved variables, whatever the template says. Annotations "elasticdl/…" are not the template's;
/// - ports, and what is mounted where the template mounts nothing, are added to the template's;
/// - `request` and `limit` take the place of the program's amounts of those names.
nlohmann::json by_template(nlohmann::json plain, nlohmann::json const& like, resources const& request,
                           resources const& limit);

/// What the program asks for in a template that `check_pod_template` takes.
role_spec role_of_template(std::string const& text);

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/pod_template.ipp"
#endif
