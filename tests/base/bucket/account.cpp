// SPDX-License-Identifier: Apache-2.0
#include "edl/base/bucket/account.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <map>

#include "base/http/client/support.hpp"
#include "scratch_directory.hpp"

namespace account_test {

using test::says, test::thrown;

TEST_CASE("credentials are found as AWS's tools find them") {
  scratch const home;
  std::map<std::string, std::string> set{{"HOME", home.path()}, {"AWS_EC2_METADATA_DISABLED", "true"}};
  auto const find = [&] { return edl::bucket::find_account([&](char const* name) { return set[name]; }); };
  CHECK(says(thrown([&] { find(); }),
             {"profile 'default' of ", ".aws/credentials: no credentials", "set AWS_ACCESS_KEY_ID"}));
  std::filesystem::create_directory(home.path() + "/.aws");
  std::ofstream(home.path() + "/.aws/credentials")
      << "# mine\n[default]\naws_access_key_id = A\naws_secret_access_key=B\n[other]\naws_access_key_id=C\n"
         "aws_secret_access_key = D\naws_session_token = E==\n";
  std::ofstream(home.path() + "/.aws/config")
      << "[default]\nregion = eu-west-1\n[profile other]\nendpoint_url = http://h:1\n";
  auto a = find();
  CHECK(a.who.key + a.who.secret + a.who.session == "AB");
  CHECK(a.region == "eu-west-1");
  CHECK(a.endpoint.empty());
  set["AWS_PROFILE"] = "other";
  a = find();
  CHECK(a.who.key + a.who.secret + a.who.session == "CDE==");
  CHECK(a.region == "us-east-1");
  CHECK(a.endpoint == "http://h:1");
  set["AWS_REGION"] = "eu-north-1";
  set["AWS_ENDPOINT_URL"] = "http://other:2";
  set["AWS_ACCESS_KEY_ID"] = "F";
  CHECK(says(thrown([&] { find(); }), {"AWS_ACCESS_KEY_ID: no credentials"}));
  set["AWS_SECRET_ACCESS_KEY"] = "G";
  a = find();
  CHECK(a.who.key + a.who.secret + a.who.session == "FG");
  CHECK(a.region == "eu-north-1");
  CHECK(a.endpoint == "http://other:2");
  set["AWS_SESSION_TOKEN"] = "x\r\nHost: y";
  CHECK(says(thrown([&] { find(); }), {"a line break"}));
}

}  // namespace account_test
