// SPDX-License-Identifier: Apache-2.0
#include "submit/paddle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "common/fields.hpp"
#include "edl/cli/nearest.hpp"
#include "edl/core/error.hpp"
#include "edl/core/quantity.hpp"
#include "edl/core/text.hpp"
#include "submit/submission.hpp"

namespace edl::tool {
namespace {

using nlohmann::json;

char const* name_of(json::value_t type) {
  switch (type) {
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "a list";
    case json::value_t::boolean:
      return "true or false";
    case json::value_t::string:
      return "a text";
    default:
      return "a whole number";
  }
}

/// One object of the document. Each field is taken once; `finish` refuses those that nobody took.
class reader {
 public:
  reader(json const& object, std::string place, std::string const& origin)
      : origin_(origin), place_(std::move(place)) {
    if (!object.is_object()) refuse(place_, "expected an object");
    for (auto const& [name, value] : object.items())
      if (!fields_.try_emplace(lower(name), name, &value).second)
        refuse(at(name), "occurs twice, in different cases");
  }

  /// The field, or null where it is not there. `type` is checked where it is given.
  json const* take(std::string const& name, json::value_t type = json::value_t::null) {
    known_.push_back(name);
    auto const it = fields_.find(lower(name));
    if (it == fields_.end()) return nullptr;
    auto const [spelt, value] = it->second;
    fields_.erase(it);
    if (value->is_null()) return nullptr;
    bool const whole = type == json::value_t::number_integer;
    if (type != json::value_t::null && (whole ? !value->is_number_integer() : value->type() != type))
      refuse(at(spelt), fmt::format("{}: expected {}", value->dump(), name_of(type)));
    return value;
  }

  std::string text(std::string const& name) {
    json const* v = take(name, json::value_t::string);
    return v == nullptr ? "" : v->get<std::string>();
  }

  std::int64_t number(std::string const& name, std::int64_t otherwise, std::int64_t least,
                      std::int64_t most) {
    json const* v = take(name, json::value_t::number_integer);
    if (v == nullptr) return otherwise;
    bool const huge = v->is_number_unsigned() && v->get<std::uint64_t>() > std::uint64_t(most);
    if (huge || v->get<std::int64_t>() < least || v->get<std::int64_t>() > most)
      refuse(at(name), fmt::format("{}: expected a whole number from {} to {}", v->dump(), least, most));
    return v->get<std::int64_t>();
  }

  std::string const& origin() const { return origin_; }
  std::string at(std::string const& name) const { return place_.empty() ? name : place_ + "." + name; }

  [[noreturn]] void refuse(std::string const& where, std::string const& what) const {
    throw usage_error(fmt::format("{}: {}: {}", origin_, where, what));
  }

  void finish() const {
    if (fields_.empty()) return;
    std::string const& name = fields_.begin()->second.first;
    std::string const near = cli::nearest(name, known_);
    refuse(at(name), near.empty()
                         ? "PaddlePaddle's TrainingJob has no such field: leave it out"
                         : "PaddlePaddle's TrainingJob has no such field; did you mean " + near + "?");
  }

 private:
  std::string const& origin_;
  std::string place_;
  std::map<std::string, std::pair<std::string, json const*>> fields_;  // by lower case: as spelt, value
  words known_;
};

/// What the conversion gathers on its way.
struct conversion {
  paddle_job job;
  json customs = json::object();  // --cluster_spec_json

  void flag(std::string const& name, std::string const& value) {
    job.line.push_back(fmt::format("--{}={}", name, value));
  }
  void note(std::string const& where, std::string const& what) { job.notes.push_back(where + ": " + what); }

  /// A note of a field that says nothing here, where it is there.
  void drop(reader& from, std::string const& name, std::string const& why) {
    if (json const* v = from.take(name); v != nullptr) note(from.at(name), why);
  }
};

using amounts = std::map<std::string, std::string>;  // by the names that flags have for them

/// One list of amounts. `place` is its own.
amounts read_amounts(json const& list, std::string const& place, reader const& from, conversion& to) {
  amounts all;
  for (auto const& [name, value] : list.items()) {
    std::string const where = place + "." + name;
    if (!value.is_string() && !value.is_number()) from.refuse(where, "expected an amount, as 200m or 1Gi");
    std::string const quantity = value.is_string() ? value.get<std::string>() : value.dump();
    std::string amount;
    try {
      check_amount(name, quantity);
      std::uint64_t const thousandths = thousandths_of(quantity);
      if (name == "cpu")
        amount =
            thousandths % 1000 == 0 ? std::to_string(thousandths / 1000) : fmt::format("{}m", thousandths);
      else if (name == "memory" || name == "ephemeral-storage")
        amount = to_quantity((bytes_of(quantity) + 1023) / 1024 * 1024);  // flags have no smaller unit
      else
        amount = std::to_string(bytes_of(quantity));
    } catch (error const& bad) {
      from.refuse(where, bad.what());
    }
    bool const old_gpu = name == "alpha.kubernetes.io/nvidia-gpu";
    std::string const key = old_gpu ? "nvidia.com/gpu" : name;
    if (old_gpu) to.note(where, "clusters of today call it nvidia.com/gpu, which takes its place");
    if (amount == "0") continue;
    try {
      kubernetes::parse_resources(where, key + "=" + amount);
      all[key] = amount;
    } catch (usage_error const&) {
      to.note(where,
              "no flag requests it: left out; write it into the resources of the template's container");
    }
  }
  return all;
}

std::string joined(amounts const& all) {
  std::string text;
  for (auto const& [name, amount] : all)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, amount);
  return text;
}

void read_resources(reader& part, std::string const& role, conversion& to) {
  json const* v = part.take("resources", json::value_t::object);
  if (v == nullptr) {
    if (role != "master")
      to.note(part.at("resources"), fmt::format("is missing: --{}_resource_request sets the request", role));
    return;
  }
  reader r(*v, part.at("resources"), part.origin());
  amounts request, limit;
  if (json const* list = r.take("requests", json::value_t::object))
    request = read_amounts(*list, r.at("requests"), r, to);
  if (json const* list = r.take("limits", json::value_t::object))
    limit = read_amounts(*list, r.at("limits"), r, to);
  r.finish();
  request.insert(limit.begin(), limit.end());  // as the API server does
  to.flag(role + "_resource_request", joined(request));
  if (!limit.empty()) to.flag(role + "_resource_limit", joined(limit));
  if (role == "master") to.note(part.at("resources"), "PaddlePaddle's controller ignores it; here it holds");
}

constexpr std::int64_t most_pods = 10'000;

constexpr char const* no_etcd = "edl needs no etcd: the master keeps the job's state itself";
constexpr char const* made_by_controller =
    "PaddlePaddle's controller fills it in for itself: left out; the role's template takes its place";

void read_trainer(json const& object, std::string const& origin, conversion& to, bool& passes_here) {
  reader t(object, "spec.trainer", origin);
  paddle_job& job = to.job;
  job.entrypoint = t.text("entrypoint");
  job.min = std::uint32_t(t.number("min-instance", 1, 1, most_pods));
  job.max = std::uint32_t(t.number("max-instance", job.min, 1, most_pods));
  if (job.max < job.min)
    t.refuse(t.at("max-instance"), fmt::format("{} is below min-instance, {}", job.max, job.min));
  read_resources(t, "worker", to);
  to.drop(t, "workspace", "the program is in the image, and finds its records by --training_data");
  to.drop(t, "etcd-endpoint", no_etcd);
  to.drop(t, "replicaSpec", made_by_controller);
  // Its own example writes it here, where PaddlePaddle does not look for it.
  if (std::int64_t const passes = t.number("passes", 0, 1, 1'000'000); passes > 0 && !passes_here) {
    to.note(t.at("passes"), "PaddlePaddle reads it in spec only; taken as --num_epochs all the same");
    to.flag("num_epochs", std::to_string(passes));
    passes_here = true;
  }
  t.finish();
}

void read_servers(json const* object, std::string const& origin, conversion& to) {
  if (object == nullptr) {
    to.note("spec.pserver", "is missing: the workers train without servers (AllreduceStrategy)");
    return;
  }
  reader s(*object, "spec.pserver", origin);
  auto const least = s.number("min-instance", 1, 0, 1000), most = s.number("max-instance", least, 0, 1000);
  if (most < least) s.refuse(s.at("max-instance"), fmt::format("{} is below min-instance, {}", most, least));
  if (most > least)
    to.note(s.at("max-instance"),
            "the number of servers stays min-instance, as with PaddlePaddle; `edl scale --num_ps_pods` "
            "changes it");
  to.flag("num_ps_pods", std::to_string(least));
  read_resources(s, "ps", to);
  to.drop(s, "etcd-endpoint", no_etcd);
  to.drop(s, "replicaSpec", made_by_controller);
  s.finish();
}

void read_master(json const* object, std::string const& origin, conversion& to) {
  if (object == nullptr) return;
  reader m(*object, "spec.master", origin);
  read_resources(m, "master", to);
  to.drop(m, "etcd-endpoint", no_etcd);
  to.drop(m, "replicaSpec", made_by_controller);
  m.finish();
}

void read_spec(json const& object, std::string const& origin, conversion& to) {
  reader s(object, "spec", origin);
  if (std::string const image = s.text("image"); !image.empty()) to.flag("image_name", image);
  for (char const* name : {"port", "ports_num", "ports_num_for_sparse"})
    to.drop(s, name, "pods have ports of their own, 50001 the master's; no flag is needed");
  json const* tolerant = s.take("fault_tolerant", json::value_t::boolean);
  if (tolerant != nullptr && !tolerant->get<bool>())
    to.note(s.at("fault_tolerant"), "every job of edl survives the loss of its pods, this one too");
  bool passes = false;
  if (std::int64_t const n = s.number("passes", 0, 1, 1'000'000); n > 0) {
    to.flag("num_epochs", std::to_string(n));
    passes = true;
  }
  json& pods = to.customs["pod_spec"] = json::object();
  for (auto const& [theirs, ours] : {std::pair{"volumes", "volumes"}, {"VolumeMounts", "volumeMounts"}})
    if (json const* v = s.take(theirs, json::value_t::array); v != nullptr && !v->empty()) pods[ours] = *v;
  if (json const* v = s.take("NodeSelector", json::value_t::object); v != nullptr && !v->empty())
    pods["nodeSelector"] = *v;
  if (json const* v = s.take("imagePullSecrets", json::value_t::array)) {
    std::string names;
    for (json const& one : *v) {
      if (!one.is_object() || text_at(one, "/name").empty())
        s.refuse(s.at("imagePullSecrets"), "expected a list of {name: SECRET}");
      names += fmt::format("{}{}", names.empty() ? "" : ",", text_at(one, "/name"));
    }
    to.flag("image_pull_secrets", names);
  }
  for (char const* name : {"host_network", "HostNetwork"})
    if (json const* v = s.take(name, json::value_t::boolean); v != nullptr && v->get<bool>())
      to.note(s.at(name),
              "pods keep addresses of their own, because two of a job on one node would take the "
              "same ports");
  json const* trainer = s.take("trainer", json::value_t::object);
  if (trainer == nullptr) s.refuse(s.at("trainer"), "is missing: it gives the number of workers");
  read_trainer(*trainer, origin, to, passes);
  read_servers(s.take("pserver", json::value_t::object), origin, to);
  read_master(s.take("master", json::value_t::object), origin, to);
  if (tolerant == nullptr || !tolerant->get<bool>())
    if (to.job.min != to.job.max)
      to.note("spec.trainer.max-instance",
              "PaddlePaddle takes another number than min-instance only with "
              "fault_tolerant: true; here both hold");
  s.finish();
}

/// Texts by name, as labels are.
json texts(reader const& from, std::string const& name, json const* v) {
  if (v == nullptr) return json::object();
  for (auto const& [key, value] : v->items())
    if (!value.is_string()) from.refuse(from.at(name) + "." + key, "expected a string: put it into quotes");
  return *v;
}

}  // namespace

bool is_paddle_job(json const& document) {
  return document.is_object() && text_at(document, "/apiVersion").starts_with("paddlepaddle.org/") &&
         text_at(document, "/kind") == "TrainingJob";
}

paddle_job read_paddle_job(json const& document, std::string const& origin) {
  conversion to;
  reader all(document, "", origin);
  if (std::string const version = all.text("apiVersion"); version != "paddlepaddle.org/v1")
    all.refuse("apiVersion", fmt::format("{}: expected paddlepaddle.org/v1", version));
  all.take("kind");
  json const* metadata = all.take("metadata", json::value_t::object);
  if (metadata == nullptr) all.refuse("metadata", "is missing: its name is the job's");
  {
    // What an API server has added to it says nothing.
    auto const field = [&](char const* name, json::value_t type) -> json const* {
      auto const it = metadata->find(name);
      if (it == metadata->end() || it->is_null()) return nullptr;
      if (it->type() != type)
        all.refuse(std::string("metadata.") + name, fmt::format("expected {}", name_of(type)));
      return &*it;
    };
    json const* name = field("name", json::value_t::string);
    if (name == nullptr) all.refuse("metadata.name", "is missing: pods are named after it");
    to.flag("job_name", name->get<std::string>());
    if (json const* space = field("namespace", json::value_t::string))
      to.flag("namespace", space->get<std::string>());
    reader const in(json::object(), "metadata", origin);
    to.job.labels = texts(in, "labels", field("labels", json::value_t::object));
    to.job.annotations = texts(in, "annotations", field("annotations", json::value_t::object));
    to.job.annotations.erase("kubectl.kubernetes.io/last-applied-configuration");
  }
  json const* spec = all.take("spec", json::value_t::object);
  if (spec == nullptr) all.refuse("spec", "is missing");
  read_spec(*spec, origin, to);
  all.take("status");
  all.finish();
  if (!to.customs["pod_spec"].empty()) to.flag("cluster_spec_json", to.customs.dump());
  return std::move(to.job);
}

std::string program_of_entrypoint(std::string const& entrypoint) {
  std::string source;
  for (std::string const& word : split(entrypoint, ' '))
    if (source.empty() && word.ends_with(".py")) source = word;
  if (source.empty())
    throw usage_error(fmt::format(
        "--model_def is needed: the program of edl in the image that takes the place of the entrypoint '{}'",
        entrypoint));
  return program_of(source);
}

}  // namespace edl::tool
