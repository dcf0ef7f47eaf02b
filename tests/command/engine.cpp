// SPDX-License-Identifier: Apache-2.0
#include "zoo/engine.hpp"

#include "compute/data/support.hpp"

namespace engine_test {

using edl::tool::container_engine;
using support::failure, support::has;

namespace {

/// A program in an engine's place, which writes its words to `asked`.
struct pretended {
  support::scratch dir;
  std::string program = dir / "engine";

  explicit pretended(std::string const& body) {
    support::write(program, "#!/bin/sh\necho \"$*\" >>" + (dir / "asked") + "\n" + body + "\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    support::write(dir / "Dockerfile", "FROM scratch\n");
  }
  std::string asked() const { return support::read(dir / "asked"); }
  std::string build() const {
    return failure([&] { container_engine(program).build("a:1", dir.path(), {"--pull"}); });
  }
  std::string push() const {
    return failure([&] { container_engine(program).push("a:1"); });
  }
};

}  // namespace

TEST_CASE("an image is built and pushed by the engine's own words") {
  pretended const engine("exit 0");
  CHECK(engine.build() == "");
  CHECK(engine.push() == "");
  CHECK(engine.asked() == "version\nbuild --tag a:1 --file " + (engine.dir / "Dockerfile") + " --pull " +
                              engine.dir.path() + "\nversion\npush a:1\n");
}

TEST_CASE("an engine that is missing, does not run or may not be used is one line with a way out") {
  CHECK(has(failure([] { container_engine("no-such-engine").push("a"); }),
            "no-such-engine: no such program: install"));
  struct {
    char const *says, *advice;
  } const all[] = {
      {"Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
       "systemctl start docker"},
      {"failed to connect to the docker API at unix:///var/run/docker.sock; check if the path is correct and "
       "if the "
       "daemon is running: dial unix /var/run/docker.sock: connect: no such file or directory",
       "systemctl start docker"},
      {"permission denied while trying to connect to the Docker daemon socket at "
       "unix:///var/run/docker.sock: Get "
       "\"http://%2Fvar%2Frun%2Fdocker.sock/v1.24/version\": dial unix /var/run/docker.sock: connect: "
       "permission denied",
       "usermod -aG docker"},
      {"something else", "something else"},
  };
  for (auto const& [says, advice] : all) {
    pretended const engine(std::string("echo 'Client: 1'; echo '") + says + "' >&2; exit 1");
    std::string const refusal = engine.build();
    CAPTURE(refusal);
    CHECK(has(refusal, advice));
    std::string quoted = says;
    if (quoted.ends_with('?')) quoted.pop_back();  // a colon follows
    CHECK(has(refusal, quoted));
    CHECK_FALSE(has(refusal, "\n"));
    CHECK(engine.asked() == "version\n");
  }
}

TEST_CASE("a build that fails, and a push that is refused, end with the engine's reason") {
  pretended const fails("[ $1 = version ] || { echo one >&2; echo \"$why\" >&2; exit 7; }");
  CHECK(has(fails.build(), "ended with code 7"));
  pretended const denied(
      "[ $1 = version ] || { echo 'denied: requested access to the resource is denied' >&2; exit 1; }");
  std::string const refusal = denied.push();
  CHECK(has(refusal, "denied: requested access"));
  CHECK(has(refusal, "login REGISTRY"));
  CHECK_FALSE(has(refusal, "\n"));
  pretended const absent(
      "[ $1 = version ] || { echo 'An image does not exist locally with the tag: a' >&2; exit 1; }");
  CHECK(has(absent.push(), "edl zoo build"));
}

TEST_CASE("a folder without a Dockerfile asks no engine") {
  pretended const engine("exit 0");
  std::filesystem::remove(engine.dir / "Dockerfile");
  CHECK(has(engine.build(), "edl zoo init"));
  CHECK_FALSE(std::filesystem::exists(engine.dir / "asked"));
}

}  // namespace engine_test
