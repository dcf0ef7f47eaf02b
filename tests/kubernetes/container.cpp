// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/container.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "kubernetes/certificate.hpp"

namespace edl::testing::kubernetes {
namespace {

namespace fs = std::filesystem;
using variables = std::map<std::string, std::string>;

std::string decoded(std::string const& base64) {
  std::string out(base64.size() / 4 * 3 + 3, '\0');
  int const n = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                reinterpret_cast<unsigned char const*>(base64.data()), int(base64.size()));
  auto const padding = std::size_t(std::ranges::count(base64, '='));
  out.resize(n < 0 ? 0 : std::size_t(n) - std::min(padding, std::size_t(n)));
  return out;
}

// The members of a secret or config map.
variables contents(store const& in, std::string const& plural, std::string const& space,
                   std::string const& name) {
  object const o = in.find(in.kind(plural), space, name);
  std::string const what = plural == "secrets" ? "secret" : "configmap";
  if (!o)
    throw cannot{"waiting", "CreateContainerConfigError", fmt::format("{} \"{}\" not found", what, name)};
  variables out;
  json const data = o->value("data", json::object());
  for (auto const& [key, value] : data.items())
    out[key] = plural == "secrets" ? decoded(value) : value.get<std::string>();
  return out;
}

std::string member(pod_context const& s, std::string const& plural, json const& reference) {
  std::string const space = s.pod["metadata"]["namespace"], name = reference.value("name", ""),
                    key = reference["key"];
  bool const optional = reference.value("optional", false);
  if (optional && !s.in.find(s.in.kind(plural), space, name)) return "";
  variables const all = contents(s.in, plural, space, name);
  if (auto const it = all.find(key); it != all.end()) return it->second;
  if (optional) return "";
  throw cannot{"waiting", "CreateContainerConfigError",
               fmt::format("couldn't find key {} in {} {}/{}", key,
                           plural == "secrets" ? "Secret" : "ConfigMap", space, name)};
}

std::string field(pod_context const& s, std::string const& path) {
  json const& meta = s.pod["metadata"];
  std::smatch m;
  static std::regex const entry("metadata\\.(labels|annotations)\\['(.*)'\\]");
  if (std::regex_match(path, m, entry)) return meta.value(m[1], json::object()).value(m[2], "");
  if (path == "status.podIP" || path == "status.podIPs") return s.ip;
  if (path == "status.hostIP") return "127.0.0.1";
  json::json_pointer const at("/" + std::regex_replace(path, std::regex("\\."), "/"));
  return s.pod.contains(at) ? s.pod.at(at).get<std::string>() : "";
}

void write_all(fs::path const& directory, variables const& files) {
  fs::create_directories(directory);
  for (auto const& [name, text] : files) write_file(directory / name, text);
}

fs::path directory_of(pod_context const& s, json const& volume) {
  std::string const space = s.pod["metadata"]["namespace"], name = volume["name"];
  fs::path const own = fs::path(s.directory) / "volumes" / name;
  if (volume.contains("hostPath")) {
    fs::path const at = volume["hostPath"]["path"].get<std::string>();
    if (volume["hostPath"].value("type", "") == "DirectoryOrCreate") fs::create_directories(at);
    return at;
  }
  if (volume.contains("persistentVolumeClaim")) {
    std::string const claim = volume["persistentVolumeClaim"]["claimName"];
    auto const it = s.with.claims.find(claim);
    fs::path at = fs::path(s.with.directory) / "claims" / space / claim;
    if (it != s.with.claims.end()) at = it->second;
    fs::create_directories(at);
    return at;
  }
  if (volume.contains("projected")) return fs::path(s.directory) / "serviceaccount";
  if (volume.contains("secret"))
    write_all(own, contents(s.in, "secrets", space, volume["secret"]["secretName"]));
  else if (volume.contains("configMap"))
    write_all(own, contents(s.in, "configmaps", space, volume["configMap"]["name"]));
  fs::create_directories(own);
  return own;
}

using mounts = std::vector<std::pair<std::string, std::string>>;  // mount path, path here; longest first

mounts mounts_of(pod_context const& s, json const& container) {
  mounts out;
  for (json const& m : container.value("volumeMounts", json::array()))
    for (json const& v : s.pod["spec"]["volumes"])
      if (v["name"] == m["name"]) {
        fs::path at = directory_of(s, v);
        if (std::string const sub = m.value("subPath", ""); !sub.empty()) fs::create_directories(at /= sub);
        out.emplace_back(fs::path(m["mountPath"].get<std::string>() + "/").parent_path(), at);
      }
  std::ranges::sort(out, std::greater{}, [](auto const& m) { return m.first.size(); });
  return out;
}

// Mount paths stand at the beginning of a text or behind what is no part of a path, and end so.
std::string with_paths(std::string const& text, mounts const& those) {
  auto const is_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  };
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    auto const it = std::ranges::find_if(those, [&](auto const& m) {
      std::size_t const end = i + m.first.size();
      return text.compare(i, m.first.size(), m.first) == 0 && (end == text.size() || !is_name(text[end]));
    });
    if (it == those.end() || (i > 0 && (is_name(text[i - 1]) || text[i - 1] == '/'))) {
      out += text[i++];
    } else {
      out += it->second;
      i += it->first.size();
    }
  }
  return out;
}

std::string with_services(std::string const& text, pod_context const& s) {
  static std::regex const name("([a-z][-a-z0-9]*)\\.([a-z0-9][-a-z0-9]*)\\.svc(\\.cluster\\.local)?");
  std::string out;
  auto at = text.cbegin();
  for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it) {
    object const service = s.in.find(s.in.kind("services"), (*it)[2], (*it)[1]);
    std::string const address =
        service ? s.address((*it)[2], (*service)["spec"].value("selector", json::object())) : "";
    out.append(at, (*it)[0].first).append(address.empty() ? it->str() : address);
    at = (*it)[0].second;
  }
  return out.append(at, text.cend());
}

// $(NAME), and $$ for a dollar.
std::string expanded(std::string const& text, variables const& known) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto const end = text.compare(i, 2, "$(") == 0 ? text.find(')', i) : text.npos;
    auto const it = end == text.npos ? known.end() : known.find(text.substr(i + 2, end - i - 2));
    if (text.compare(i, 2, "$$") == 0) {
      out += text[i++];
    } else if (it != known.end()) {
      out += it->second;
      i = end;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string find_program(std::string const& name, image const& from, std::string const& path) {
  if (auto const it = from.programs.find(name); it != from.programs.end()) return it->second;
  if (auto const it = from.programs.find(fs::path(name).filename()); it != from.programs.end())
    return it->second;
  if (name.find('/') != name.npos) return ::access(name.c_str(), X_OK) == 0 ? name : "";
  std::istringstream in(path);
  for (std::string d; std::getline(in, d, ':');)
    if (std::string const at = d + "/" + name; ::access(at.c_str(), X_OK) == 0) return at;
  return "";
}

image const* find_image(options const& o, std::string const& name) {
  static image const any;
  if (o.images.empty()) return &any;
  auto const it = o.images.find(name);
  return it == o.images.end() ? nullptr : &it->second;
}

variables environment_of(pod_context const& s, json const& container) {
  variables out = s.with.environment;
  for (char const* same : {"PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"})
    if (char const* const value = std::getenv(same)) out.emplace(same, value);
  out["HOME"] = s.directory;
  out["HOSTNAME"] = s.pod["metadata"]["name"];
  out["KUBECONFIG"] = s.directory + "/serviceaccount/kubeconfig";
  for (json const& from : container.value("envFrom", json::array()))
    for (auto const& [kind, plural] : {std::pair{"secretRef", "secrets"}, {"configMapRef", "configmaps"}})
      if (from.contains(kind))
        for (auto const& [k, v] : contents(s.in, plural, s.pod["metadata"]["namespace"], from[kind]["name"]))
          out[k] = v;
  for (json const& e : container.value("env", json::array())) {
    json const from = e.value("valueFrom", json::object());
    std::string const name = e["name"];
    if (from.contains("fieldRef"))
      out[name] = field(s, from["fieldRef"]["fieldPath"]);
    else if (from.contains("secretKeyRef"))
      out[name] = member(s, "secrets", from["secretKeyRef"]);
    else if (from.contains("configMapKeyRef"))
      out[name] = member(s, "configmaps", from["configMapKeyRef"]);
    else
      out[name] = expanded(e.value("value", ""), out);
  }
  return out;
}

}  // namespace

command prepare(pod_context const& s, json const& container) try {
  std::string const name = container["image"];
  image const* const from = find_image(s.with, name);
  if (!from && container["imagePullPolicy"] == "Never")
    throw cannot{"waiting", "ErrImageNeverPull",
                 fmt::format("Container image \"{}\" is not present with pull policy of Never", name)};
  if (!from) {
    std::string const full = name.find('/') == name.npos ? "docker.io/library/" + name : name;
    throw cannot{
        "waiting", "ErrImagePull",
        fmt::format("rpc error: code = NotFound desc = failed to pull and unpack image \"{0}\": failed to "
                    "resolve reference \"{0}\": {0}: not found",
                    full)};
  }
  mounts const those = mounts_of(s, container);
  command c;
  variables const plain = environment_of(s, container);
  auto const here = [&](std::string const& text) { return with_services(with_paths(text, those), s); };
  c.environment = plain;  // what the node says of itself is true already
  for (json const& e : container.value("env", json::array())) {
    std::string& value = c.environment[e["name"]];
    if (!value.starts_with('{')) value = here(value);  // a document's paths are its readers' business
  }
  std::vector<std::string> words = container.value("command", from->entrypoint);
  for (json const& a : container.value("args", json::array())) words.push_back(a);
  if (words.empty()) words = {"sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"};
  for (std::string const& w : words) c.arguments.push_back(here(expanded(w, plain)));
  c.program = find_program(c.arguments[0], *from, c.environment["PATH"]);
  if (c.program.empty())
    throw cannot{
        "terminated", "StartError",
        fmt::format(
            "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
            "runc create failed: unable to start container process: error during container init: exec: "
            "\"{}\": executable file not found in $PATH",
            c.arguments[0])};
  c.directory = s.directory;
  if (std::string const d = here(container.value("workingDir", "")); !d.empty() && fs::is_directory(d))
    c.directory = d;
  return c;
} catch (std::exception const& e) {
  throw cannot{"waiting", "CreateContainerError", e.what()};
}

pid_t spawn(command const& c, guard const& with) {
  std::vector<std::string> lines;
  for (auto const& [k, v] : c.environment) lines.push_back(k + "=" + v);
  std::vector<char*> arguments, environment;
  for (std::string const& a : c.arguments) arguments.push_back(const_cast<char*>(a.c_str()));
  for (std::string const& l : lines) environment.push_back(const_cast<char*>(l.c_str()));
  arguments.push_back(nullptr);
  environment.push_back(nullptr);
  int const log = ::open(c.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  int const nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  int begun[2];
  if (::pipe2(begun, O_CLOEXEC) != 0) return 0;
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // no handler of this process runs in the child
  pid_t const parent = ::getpid(), child = ::fork();
  if (child == 0) {  // only what is safe after a fork of a process with threads
    ::setpgid(0, 0);
    with.add(::getpid());
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) ::_exit(127);
    for (int s = 1; s < 32; ++s) ::signal(s, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(nothing, 0), ::dup2(log, 1), ::dup2(log, 2);
    ::syscall(SYS_close_range, 3u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */);
    if (::chdir(c.directory.c_str()) != 0) ::_exit(127);
    ::execve(c.program.c_str(), arguments.data(), environment.data());
    ::_exit(127);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(log), ::close(nothing), ::close(begun[1]);
  char nobody;  // it is closed when the program has taken over, and with it what signals do
  while (::read(begun[0], &nobody, 1) < 0 && errno == EINTR) continue;
  ::close(begun[0]);
  if (child > 0) ::setpgid(child, child);  // whoever of both comes first
  return std::max<pid_t>(child, 0);
}

void ask_to_end(pid_t process) {
  bool catches = false, blocks = false, reads = false;
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);)
    for (auto const& [name, is] : {std::pair{"SigCgt:", &catches}, {"SigBlk:", &blocks}})
      if (line.starts_with(name)) *is = (std::stoull(line.substr(7), nullptr, 16) >> (SIGTERM - 1)) & 1;
  // A shell blocks for a moment while it starts something; who has a descriptor for signals blocks for good.
  std::error_code gone;
  for (fs::directory_iterator fd(fmt::format("/proc/{}/fd", process), gone), end; !gone && fd != end;
       fd.increment(gone))
    reads |= fs::read_symlink(*fd, gone) == "anon_inode:[signalfd]";
  if (catches || (blocks && reads)) ::kill(process, SIGTERM);
}

void kill_all(pid_t process, int signal) {
  if (process > 0) ::kill(-process, signal);
}

}  // namespace edl::testing::kubernetes
