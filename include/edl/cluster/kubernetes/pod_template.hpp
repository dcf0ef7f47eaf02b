// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "edl/cluster/kubernetes/job_spec.hpp"

namespace edl::kubernetes {

/// Pods of a TrainingJob, made from a PodTemplateSpec. Its first container is the program's.

/// Throws usage_error unless `text` is a JSON object with a container that names its image. An empty text
/// means no template. `field` is its name: "workers.template".
void check_pod_template(std::string const& field, std::string const& text);

/// Combines `plain`, the pod of a plain job, with a template that `check_pod_template` accepts:
/// - the template's fields take precedence, and `plain`'s fill in the rest; a securityContext is one field.
///   The API server chooses the image's pull policy;
/// - `plain` has the name, namespace, owner, restart policy, the labels by which a job's pods are found, and
///   the reserved variables, whatever the template says. Annotations "elasticdl/…" are not the template's;
/// - ports, and what is mounted where the template mounts nothing, are added to the template's;
/// - `request` and `limit` take the place of the program's amounts of those names.
nlohmann::json by_template(nlohmann::json plain, nlohmann::json const& like, resources const& request,
                           resources const& limit);

/// The program's requests in a template that `check_pod_template` accepts.
role_spec role_of_template(std::string const& text);

}  // namespace edl::kubernetes

#ifdef EDL_HEADER_ONLY
#include "edl/cluster/kubernetes/pod_template.ipp"
#endif
