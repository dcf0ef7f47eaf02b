// SPDX-License-Identifier: Apache-2.0
#include "submit/serve.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cluster/manifests.hpp"
#include "common/yaml.hpp"
#include "edl/base/bucket/cache.hpp"
#include "edl/cluster/kubernetes/job_spec.hpp"
#include "edl/cluster/kubernetes/names.hpp"
#include "edl/core/error.hpp"

namespace edl::tool {

using nlohmann::json;

std::vector<flag> serve_flags() {
  using enum flag::value_type;
  return {
      {.name = "image_name", .help = "image with the model's program", .aliases = {"image"}, .needed = true},
      {.name = "model_path",
       .help = "path in the pods, on the claim, of the model to serve, or s3://BUCKET/KEY",
       .needed = true},
      {.name = "model_def",
       .help = "the model's program; without it: the last part of the image's name",
       .aliases = {"program"}},
      {.name = "name", .help = "name of the Deployment and the Service; without it: PROGRAM-serve"},
      {.name = "namespace",
       .help = "their namespace; without it: the one that they are applied to",
       .aliases = {"n"}},
      {.name = "volume",
       .fallback = "claim_name=fileserver-claim,mount_path=/data",
       .help = "claim to mount, read-only: claim_name=C,mount_path=P[,sub_path=S]; none for a model in a "
               "bucket"},
      {.name = "service_account", .help = "service account of the pods, whose role may read a bucket"},
      {.name = "envs", .help = "environment variables of the pods: NAME=VALUE,…"},
      {.name = "replicas", .fallback = "2", .help = "pods", .type = whole, .least = 1, .most = 1000},
      {.name = "cpu", .fallback = "1", .help = "cores that a pod requests"},
      {.name = "memory", .fallback = "1Gi", .help = "memory limit and request of a pod"}};
}

std::vector<json> serve_objects(command_line const& l) {
  auto all = from_yaml_documents(serve_manifest(), "k8s/serve.yaml");
  std::string const image = l.text("image_name");
  std::string program = l.text("model_def");
  if (program.empty()) {
    program = image.substr(image.rfind('/') + 1);
    program = program.substr(0, program.find_first_of(":@"));
  }
  std::string const name = l.given("name") ? l.text("name") : program + "-serve";
  if (!kubernetes::is_label(name))
    throw usage_error(fmt::format(
        "--name={}: a name has at most 63 lower case letters, digits and '-'; give another", name));
  bool const remote = bucket::names_objects(l.text("model_path"));
  if (remote && l.given("volume"))
    throw usage_error(fmt::format("--volume={}: --model_path={} needs no claim: leave it out",
                                  l.text("volume"), l.text("model_path")));
  auto const volumes = kubernetes::parse_volumes(l.text("volume"));
  if (volumes.size() != 1 || volumes.front().claim_name.empty())
    throw usage_error(fmt::format("--volume={}: expected one claim, as claim_name=data,mount_path=/data",
                                  l.text("volume")));
  kubernetes::volume const& volume = volumes.front();
  for (json& o : all) {
    o["metadata"]["name"] = o["metadata"]["labels"]["app"] = name;
    if (l.given("namespace")) o["metadata"]["namespace"] = l.text("namespace");
    json& spec = o["spec"];
    if (o["kind"] == "Service") {
      spec["selector"]["app"] = name;
      continue;
    }
    spec["replicas"] = l.number("replicas");
    spec["selector"]["matchLabels"]["app"] = spec["template"]["metadata"]["labels"]["app"] = name;
    json& pod = spec["template"]["spec"];
    for (json& apart : pod["topologySpreadConstraints"]) apart["labelSelector"]["matchLabels"]["app"] = name;
    json& container = pod["containers"][0];
    container["image"] = image;
    container["command"][0] = program;
    container["command"][2] = "--model_path=" + l.text("model_path");
    for (auto const& [variable, value] : kubernetes::parse_environment("--envs", l.text("envs")))
      container["env"].push_back({{"name", variable}, {"value", value}});
    if (l.given("service_account")) pod["serviceAccountName"] = l.text("service_account");
    if (remote) {  // where copies of the model are
      container["env"].push_back({{"name", "XDG_CACHE_HOME"}, {"value", "/cache"}});
      container["volumeMounts"][0] = {{"name", "cache"}, {"mountPath", "/cache"}};
      pod["volumes"][0] = {{"name", "cache"}, {"emptyDir", json::object()}};
    } else {
      container["volumeMounts"][0]["mountPath"] = volume.mount_path;
      if (!volume.sub_path.empty()) container["volumeMounts"][0]["subPath"] = volume.sub_path;
      pod["volumes"][0]["persistentVolumeClaim"]["claimName"] = volume.claim_name;
    }
    container["resources"] = {{"requests", {{"cpu", l.text("cpu")}, {"memory", l.text("memory")}}},
                              {"limits", {{"memory", l.text("memory")}}}};
  }
  return all;
}

int serve(words const& line) {
  command_line const l("serve", serve_flags(), line);
  for (json const& o : serve_objects(l)) fmt::print("---\n{}", to_yaml(o));
  return done;
}

}  // namespace edl::tool
