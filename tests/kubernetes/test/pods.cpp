// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "kubernetes/test/support.hpp"

namespace edl::testing::kubernetes {
namespace {

TEST_CASE("a pod is a process with an address, a log and an exit code") {
  cluster c;
  c.post(pods, pod("w0", "echo at $IP; exit 3", {{"IP", "status.podIP"}}));
  REQUIRE(c.wait([&] { return phase(c, "w0") == "Failed"; }));
  json const is = c.get(pods + "/w0")["status"];
  CHECK(is["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3);
  CHECK(is["containerStatuses"][0]["state"]["terminated"]["reason"] == "Error");
  CHECK(c.log("default", "w0") == "at " + is["podIP"].get<std::string>() + "\n");
}

TEST_CASE("a deleted pod is asked to end, and killed after its grace") {
  cluster c({.second = std::chrono::milliseconds(100)});
  c.post(pods, pod("polite", "trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done"));
  c.post(pods, pod("deaf", "echo up; sleep 600; true"));
  REQUIRE(c.wait([&] { return c.log("default", "polite") == "up\n" && c.log("default", "deaf") == "up\n"; }));
  auto const deaf = c.processes("default", "deaf");
  REQUIRE(deaf.size() == 1);
  CHECK(c.remove(pods + "/polite")["metadata"].contains("deletionTimestamp"));
  c.remove(pods + "/deaf");
  CHECK(c.wait([&] { return c.get(pods + "/polite")["code"] == 404; }));
  CHECK(c.wait([&] { return c.get(pods + "/deaf")["code"] == 404; }));
  CHECK(::kill(deaf[0], 0) == -1);
}

TEST_CASE("a container that is killed is started again in place where its policy says so") {
  cluster c;
  json p = pod("master", "echo run; sleep 600");
  p["spec"]["containers"][0]["restartPolicy"] = "Never";
  p["spec"]["containers"][0]["restartPolicyRules"] = {
      {{"action", "Restart"}, {"exitCodes", {{"operator", "In"}, {"values", {137}}}}}};
  c.post(pods, p);
  REQUIRE(c.wait([&] { return phase(c, "master") == "Running"; }));
  json const before = c.get(pods + "/master")["status"];
  c.kill("default", "master", SIGKILL);
  REQUIRE(c.wait([&] {
    return container(c, "master")["restartCount"] == 1 && container(c, "master")["ready"] == true;
  }));
  json const after = c.get(pods + "/master")["status"];
  CHECK(after["podIP"] == before["podIP"]);
  CHECK(after["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 137);
  c.kill("default", "master", SIGTERM);
  CHECK(c.wait([&] { return phase(c, "master") == "Failed"; }));
}

TEST_CASE("paths of volumes and names of services are those of this machine") {
  cluster c;
  c.post("/api/v1/namespaces/default/persistentvolumeclaims", {{"metadata", {{"name", "data"}}}});
  c.post("/api/v1/namespaces/default/secrets",
         {{"metadata", {{"name", "s"}}}, {"stringData", {{"token", "open"}}}});
  c.post(
      "/api/v1/namespaces/default/services",
      {{"metadata", {{"name", "m"}}}, {"spec", {{"selector", {{"role", "m"}}}, {"ports", {{{"port", 1}}}}}}});
  json p = pod("w", "echo --to=$ADDR $TOKEN > /data/out; cat /data/out");
  p["metadata"]["labels"] = {{"role", "m"}};
  json& main = p["spec"]["containers"][0];
  main["env"] = {{{"name", "ADDR"}, {"value", "m.default.svc:1"}},
                 {{"name", "TOKEN"}, {"valueFrom", {{"secretKeyRef", {{"name", "s"}, {"key", "token"}}}}}}};
  main["volumeMounts"] = {{{"name", "d"}, {"mountPath", "/data"}}};
  p["spec"]["volumes"] = {{{"name", "d"}, {"persistentVolumeClaim", {{"claimName", "data"}}}}};
  c.post(pods, p);
  REQUIRE(c.wait([&] { return phase(c, "w") == "Succeeded"; }));
  std::string const ip = c.get(pods + "/w")["status"]["podIP"];
  CHECK(c.log("default", "w") == "--to=" + ip + ":1 open\n");
}

TEST_CASE("a pod with a probe is ready once something listens") {
  cluster c({.images = {{"nginx:1.7.9", {}}}});
  int const elsewhere = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  REQUIRE(::bind(elsewhere, reinterpret_cast<sockaddr*>(&at), size) == 0);
  ::getsockname(elsewhere, reinterpret_cast<sockaddr*>(&at), &size);  // a port that is free
  json p = pod("w", "");
  json& main = p["spec"]["containers"][0];
  main.erase("command");  // idles
  main["image"] = "nginx:1.7.9";
  main["readinessProbe"] = {{"tcpSocket", {{"port", ntohs(at.sin_port)}}}};
  c.post(pods, p);
  REQUIRE(c.wait([&] { return phase(c, "w") == "Running"; }));
  CHECK(container(c, "w")["ready"] == false);
  ::inet_pton(AF_INET, status(c, "w")["podIP"].get<std::string>().c_str(), &at.sin_addr);
  int const listener = ::socket(AF_INET, SOCK_STREAM, 0);
  REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&at), size) == 0);
  REQUIRE(::listen(listener, 8) == 0);
  CHECK(c.wait([&] { return container(c, "w")["ready"] == true; }));
  ::close(listener), ::close(elsewhere);
}

TEST_CASE("who owns an object takes it along") {
  cluster c({.second = std::chrono::milliseconds(50)});
  json const owner = c.post(pods, pod("master", "sleep 600"));
  json w = pod("worker", "sleep 600");
  w["metadata"]["ownerReferences"] = {
      {{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", "master"}, {"uid", owner["metadata"]["uid"]}}};
  c.post(pods, w);
  c.call("DELETE", pods + "/master", {{"gracePeriodSeconds", 0}});
  CHECK(c.wait([&] { return c.get(pods + "/worker")["code"] == 404; }));
}

}  // namespace
}  // namespace edl::testing::kubernetes
