// SPDX-License-Identifier: Apache-2.0
// `edl doctor`, `rbac`, `data` and completion.
#include <fstream>

#include "tools/edl.hpp"

namespace look_test {

using namespace edl_command;
using job::has;

TEST_CASE("doctor finds what is missing and says what to do") {
  shell s;
  auto const healthy = s.edl({"doctor"});
  CAPTURE(healthy.text);
  CHECK(healthy.code == 0);
  CHECK(has(healthy.text, "ok    cluster"));
  CHECK(has(healthy.text, "ok    permissions"));
  CHECK(has(healthy.text, "1 of 1 take pods"));

  auto const ill = s.edl({"doctor", "--volume=claim_name=none,mount_path=/d", "--worker_pod_priority=high",
                          "--worker_resource_request=cpu=1000,memory=1Gi", "-o", "json"});
  CHECK(ill.code == 1);
  std::string failed;
  for (json const& f : json::parse(ill.text)) {
    if (f["result"] == "fail") failed += f["what"].get<std::string>() + ";";
    // A manifest that it names is there.
    if (f["what"] == "priority class") CHECK(has(f["remedy"].get<std::string>(), "k8s/priority-high.yaml"));
  }
  CHECK(has(failed, "volume;"));
  CHECK(has(failed, "priority class;"));
  CHECK(has(failed, "worker_resource_request;"));
}

TEST_CASE("doctor says of an image what it knows") {
  shell s;
  auto const line_of = [&](std::string const& image) {
    std::string const text = s.edl({"doctor", "--image_name=" + image, "--image_pull_policy=Always"}).text;
    auto const at = text.find(" image  ");
    return at == text.npos
               ? text
               : text.substr(text.rfind('\n', at) + 1, text.find('\n', at) - text.rfind('\n', at) - 1);
  };
  CHECK(has(line_of("registry.example.com/no/such:1"), "note"));
  CHECK(has(line_of("registry.example.com/no/such:1"), "edl did not check that it exists"));
  CHECK(has(line_of("registry.example.com/No/such:1"), "fail"));
  CHECK(has(line_of("registry.example.com/No/such:1"), "capital letters"));
  CHECK(has(line_of("registry.example.com:5000/a/b:"), "a tag has 1 to 128 characters"));
}

TEST_CASE("doctor names what is not allowed") {
  lab::options o = usual();
  o.forbidden = {{"create", "secrets"}};
  shell s(std::move(o));
  auto const ill = s.edl({"doctor"});
  CAPTURE(ill.text);
  CHECK(ill.code == 1);
  CHECK(has(ill.text, "create secrets"));
  CHECK(has(ill.text, "edl rbac"));

  s.cluster.close();
  CHECK(s.edl({"doctor", "--request_timeout=1"}).code == 1);
}

TEST_CASE("rbac is applied, and applied again") {
  shell s;
  for (int i = 0; i < 2; ++i) {
    auto const applied = s.edl({"rbac", "--apply", "--users"});
    CAPTURE(applied.text);
    CHECK(applied.code == 0);
  }
  json const role = s.cluster.get("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/edl");
  CHECK(role["rules"].size() == 4);
  // A job takes the account that is there now.
  REQUIRE(s.submit().code == 0);
  CHECK(s.cluster.get(pods + "/elasticdl-j-master")["spec"]["serviceAccountName"] == "edl");
}

TEST_CASE("data is inspected, converted and made") {
  shell s;
  auto const seen = s.edl({"data", "inspect", job::data().training, "--verify"});
  CAPTURE(seen.text);
  CHECK(seen.code == 0);
  CHECK(has(seen.text, "2048 records in 4 shards, 2048 of them read"));
  CHECK(has(seen.text, "label"));
  json const all = json::parse(s.edl({"data", "inspect", job::data().training, "-o", "json"}).text);
  CHECK(all["shards"][0]["records"] == 512);
  CHECK(all["shards"][0]["chunks"] > 1);
  REQUIRE(all["features"].size() == 2);
  CHECK(all["features"][0]["name"] == "label");
  CHECK(all["features"][0]["distinct"] == 3);
  CHECK(all["features"][1]["kind"] == "floats");
  CHECK(all["features"][1]["values"] == 8);

  job::scratch const out;
  edl::data::recordio_writer raw(out / "raw");
  raw.write("no example");
  raw.close();
  auto const bytes = s.edl({"data", "inspect", out / "raw"});
  CHECK(bytes.code == 0);
  CHECK(has(bytes.text, "1 record in 1 shard"));
  CHECK(has(bytes.text, "the features are not known"));
  auto const converted = s.edl({"data", "convert", "--from=" + job::data().training, "--to=" + (out / "c"),
                                "--records_per_shard=1000", "--compressor=gzip", "--fraction=0.5"});
  CHECK(converted.code == 0);
  CHECK(has(converted.text, "1024 records in 2 files"));
  CHECK(s.edl({"data", "convert", "--from=x"}).code == 2);
  CHECK(s.edl({"data", "convert", "--from=/none", "--to=" + (out / "d")}).code == 1);
  auto const made = s.edl({"data", "make", out / "m", "--fraction=0.01"});
  CHECK(made.code == 0);
  CHECK(has(made.text, "600 records"));
  CHECK(std::filesystem::exists(out / "m/digits/test"));
  CHECK(s.edl({"data", "make", out / "n", "--dataset=mnist"}).code == 2);

  std::string const file = out / "m/digits/train/data-00000";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 3);
  auto const damaged = s.edl({"data", "inspect", out / "m/digits/train"});
  CHECK(damaged.code == 1);
  CHECK(has(damaged.text, "damaged"));
}

TEST_CASE("a shell completes commands, flags, values and jobs") {
  shell s;
  auto const complete = [&](lines line) {
    line.insert(line.begin(), "__complete");
    return s.edl(line).text;
  };
  CHECK(complete({"de"}) == "delete\ndescribe\n");
  CHECK(complete({"zoo", ""}) == "build\ninit\npush\n");
  CHECK(complete({"train", "--image_pull_policy=I"}) == "--image_pull_policy=IfNotPresent\n");
  CHECK(complete({"train", "--num_w"}) == "--num_workers=\n");
  CHECK(complete({"get", ""}) == "jobs\n");
  CHECK(complete({"get", "jobs", "-o", ""}) == "table\njson\nyaml\n");
  REQUIRE(s.submit({"--detach"}).code == 0);
  CHECK(complete({"logs", ""}) == "j\n");
  s.cluster.close();
  CHECK(complete({"logs", ""}).empty());
  for (char const* shell : {"bash", "zsh", "fish"})
    CHECK(has(s.edl({"completion", shell}).text, "__complete"));
}

}  // namespace look_test
