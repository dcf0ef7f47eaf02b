// SPDX-License-Identifier: Apache-2.0
#include "edl/base/bucket/role.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <fstream>
#include <map>

#include "base/bucket/unkind_store.hpp"
#include "edl/base/bucket/account.hpp"
#include "edl/base/http/message.hpp"
#include "edl/core/wall_time.hpp"
#include "scratch_directory.hpp"

namespace role_test {

using edl::bucket::find_account;
using test::request, test::says, test::thrown, test::unkind_store, test::wire, test::wire_server;

namespace {

/// The variables of a process's environment, and nothing else.
struct variables {
  std::map<std::string, std::string> set;
  edl::bucket::environment reader() const {
    return [of = set](char const* name) {
      auto const it = of.find(name);
      return it != of.end() ? it->second : std::string();
    };
  }
  edl::bucket::account find() const { return find_account(reader()); }
};

std::string granted(std::string const& key, std::string const& until) {
  return "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
         "<SessionToken>T/" +
         key + "=</SessionToken><SecretAccessKey>S</SecretAccessKey><Expiration>" + until +
         "</Expiration><AccessKeyId>" + key +
         "</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";
}

std::string instance(std::string const& key) {
  return R"({"Code":"Success","AccessKeyId":")" + key +
         R"(","SecretAccessKey":"S","Token":"T","Expiration":"2030-01-02T03:04:05Z"})";
}

/// A pod with a projected token.
struct pod : variables {
  scratch dir;
  explicit pod(std::string const& service) {
    std::ofstream(dir / "token") << "a.b-c_d\n";
    set = {{"AWS_WEB_IDENTITY_TOKEN_FILE", dir / "token"},
           {"AWS_ROLE_ARN", "arn:aws:iam::1:role/train"},
           {"AWS_ENDPOINT_URL_STS", service},
           {"AWS_EC2_METADATA_DISABLED", "true"}};
  }
};

}  // namespace

TEST_CASE("a pod's token is exchanged for credentials of its role, in spite of a busy service") {
  std::atomic<int> n{0};
  edl::http::request form;
  wire_server service(nullptr, [&](request const& r, wire& w) {
    if (n++ == 0) return w.json(503, "<Error><Code>Throttling</Code></Error>");
    if (n == 2) return w.cut();
    form.query = r.body;
    CHECK(r.method + r.target == "POST/");
    w.json(200, granted("K", "2030-01-02T03:04:05Z"));
  });
  pod p(service.url());
  auto const a = p.find();
  CHECK(a.who.key + a.who.secret + a.who.session == "KST/K=");
  CHECK(a.expires == std::time_t(*edl::seconds_of("2030-01-02T03:04:05Z")));
  CHECK(form.parameter("Action") == "AssumeRoleWithWebIdentity");
  CHECK(form.parameter("RoleArn") == "arn:aws:iam::1:role/train");
  CHECK(form.parameter("WebIdentityToken") == "a.b-c_d");
  CHECK(form.parameter("RoleSessionName") == "edl");
  // Keys in the environment come first.
  p.set["AWS_ACCESS_KEY_ID"] = "A", p.set["AWS_SECRET_ACCESS_KEY"] = "B";
  CHECK(p.find().who.key == "A");
  CHECK(n == 3);
}

TEST_CASE("a role that is refused says which token, which role, and the way out") {
  char const* code = "AccessDenied";
  wire_server service(nullptr, [&](request const&, wire& w) {
    w.json(403, std::string("<ErrorResponse><Error><Code>") + code +
                    "</Code><Message>not you</Message></Error></ErrorResponse>");
  });
  pod p(service.url());
  CHECK(says(thrown([&] { p.find(); }), {"AWS_WEB_IDENTITY_TOKEN_FILE=", "arn:aws:iam::1:role/train",
                                         "403 AccessDenied: not you", "does the role trust"}));
  code = "ExpiredTokenException";
  CHECK(says(thrown([&] { p.find(); }), {"403 ExpiredTokenException", "the token in the file is old"}));
  CHECK(service.requests() == 2);
  std::ofstream(p.dir / "token") << "";
  CHECK(says(thrown([&] { p.find(); }), {"AWS_WEB_IDENTITY_TOKEN_FILE=", "no such file, or it is empty"}));
  std::ofstream(p.dir / "token") << std::string(100'000, 'x');
  CHECK(says(thrown([&] { p.find(); }), {"larger than 64 KiB"}));
  CHECK(service.requests() == 2);
}

TEST_CASE("a machine's role is read with a session token, and a container's before it") {
  wire_server service(nullptr, [&](request const& r, wire& w) {
    std::string const roles = "/latest/meta-data/iam/security-credentials/";
    if (r.method == "PUT") return w.json(200, "session");
    if (r.target == "/pod")
      return r.field("Authorization") == "a.b-c_d" ? w.json(200, instance("P")) : w.json(401, "who?");
    if (r.field("X-aws-ec2-metadata-token") != "session") return w.json(401, "");
    if (r.target == roles) return w.json(200, "node-role\n");
    if (r.target == roles + "node-role") return w.json(200, instance("M"));
    w.json(404, "");
  });
  scratch const dir;
  variables v{{{"AWS_EC2_METADATA_SERVICE_ENDPOINT", service.url()}}};
  auto a = v.find();
  CHECK(a.who.key + a.who.secret + a.who.session == "MST");
  CHECK(a.origin == "the machine's role node-role");
  CHECK(a.expires > 0);
  std::ofstream(dir / "token") << "a.b-c_d";
  v.set["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = service.url() + "/pod";
  CHECK(says(thrown([&] { v.find(); }), {"AWS_CONTAINER_CREDENTIALS_FULL_URI=", "replies 401: who?"}));
  v.set["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = dir / "token";
  CHECK(v.find().who.key == "P");
  v.set["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://example.com/pod";
  CHECK(says(thrown([&] { v.find(); }), {"http://example.com/pod: credentials are only fetched from"}));
  // A machine without a role, and none at all.
  variables none{{{"AWS_EC2_METADATA_SERVICE_ENDPOINT", service.url() + "/other"}}};
  CHECK(says(thrown([&] { none.find(); }), {"no credentials for s3:// paths", "a role"}));
}

TEST_CASE("credentials are renewed before they end, and serve until then where that fails") {
  unkind_store double_;
  double_.objects["k"] = "text";
  std::time_t time = 1'000'000;
  bool broken = false;
  int found = 0;
  auto o = double_.options();
  o.now = [&] { return time; };
  o.find = [&, first = o.find] {
    ++found;
    if (broken) throw edl::error("the token service is gone");
    auto a = first();
    a.expires = time + 3600;
    a.who.session = std::to_string(found);
    return a;
  };
  edl::bucket::store const s("box", o);
  for (int hours = 0; hours < 5; ++hours, time += 3601 - 300) {
    CHECK(s.find("k"));
    CHECK(found == hours + 1);
  }
  broken = true;
  CHECK(s.find("k"));
  CHECK(found == 6);
  CHECK(s.find("k"));  // it does not ask each time
  CHECK(found == 6);
  time += 30;
  CHECK(s.find("k"));
  CHECK(found == 7);
  time += 300;
  CHECK(says(thrown([&] { s.find("k"); }), {"s3://box: the token service is gone"}));
  broken = false;
  time += 30;
  CHECK(s.find("k"));
  CHECK(double_.user == "A");
}

}  // namespace role_test
