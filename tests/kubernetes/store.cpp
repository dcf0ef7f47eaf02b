// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/store.hpp"

#include <algorithm>
#include <ctime>
#include <random>
#include <sstream>

namespace edl::testing::kubernetes {
namespace {

std::mt19937_64& dice() {
  thread_local std::mt19937_64 engine{std::random_device{}()};
  return engine;
}

std::string uuid() {
  std::uint64_t const a = dice()(), b = dice()();
  return fmt::format("{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}", a >> 32, (a >> 16) & 0xffff, a & 0xfff, b >> 52,
                     b & 0xffffffffffff);
}

std::string trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return std::string(s);
}

std::vector<std::string> parts(std::string const& text) {  // at commas that no bracket holds
  std::vector<std::string> out(1);
  int depth = 0;
  for (char c : text) {
    depth += (c == '(') - (c == ')');
    if (c == ',' && depth == 0)
      out.emplace_back();
    else
      out.back() += c;
  }
  if (out.size() == 1 && trimmed(out[0]).empty()) out.clear();
  return out;
}

using value_of = std::function<json const*(json const&, std::string const&)>;

json const* label_at(json const& o, std::string const& key) {
  auto const labels = o["metadata"].find("labels");
  if (labels == o["metadata"].end() || !labels->is_object()) return nullptr;
  auto const it = labels->find(key);
  return it == labels->end() ? nullptr : &*it;
}

json const* field_at(json const& o, std::string const& path) {
  static json const none = "";
  json const* at = &o;
  std::istringstream in(path);
  for (std::string step; std::getline(in, step, '.');) {
    if (!at->is_object() || !at->contains(step)) return &none;
    at = &at->at(step);
  }
  return at;
}

filter requirement(std::string const& text, value_of const& value) {
  auto const equals = [value](std::string const& k, std::vector<std::string> const& vs,
                              bool wanted) -> filter {
    return [=](json const& o) {
      json const* v = value(o, k);
      std::string const is = !v ? "" : v->is_string() ? v->get<std::string>() : v->dump();
      return (v && std::ranges::find(vs, is) != vs.end()) == wanted;
    };
  };
  for (auto const& [sign, wanted] : {std::pair{"!=", false}, {"==", true}, {"=", true}})
    if (auto const at = text.find(sign); at != text.npos)
      return equals(trimmed(text.substr(0, at)), {trimmed(text.substr(at + std::string_view(sign).size()))},
                    wanted);
  for (auto const& [word, wanted] : {std::pair{" notin ", false}, {" in ", true}})
    if (auto const at = text.find(word); at != text.npos) {
      std::string list = trimmed(text.substr(at + std::string_view(word).size()));
      if (list.size() < 2 || list.front() != '(' || list.back() != ')')
        throw bad_request(fmt::format("unable to parse requirement: found '{}', expected: '('", list));
      std::vector<std::string> values;
      for (std::string const& v : parts(list.substr(1, list.size() - 2))) values.push_back(trimmed(v));
      return equals(trimmed(text.substr(0, at)), values, wanted);
    }
  std::string const word = trimmed(text);
  bool const absent = word.starts_with('!');
  return [value, key = absent ? word.substr(1) : word, absent](json const& o) {
    return !value(o, key) == absent;
  };
}

filter all_of(std::string const& selector, value_of const& value) {
  std::vector<filter> each;
  for (std::string const& p : parts(selector)) each.push_back(requirement(p, value));
  return [each](json const& o) { return std::ranges::all_of(each, [&](filter const& f) { return f(o); }); };
}

}  // namespace

std::string timestamp(std::chrono::system_clock::time_point at) {
  std::time_t const t = std::chrono::system_clock::to_time_t(at);
  std::tm utc{};
  ::gmtime_r(&t, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string random_suffix(std::size_t n) {
  static std::string_view const letters = "bcdfghjklmnpqrstvwxz2456789";
  std::string out;
  while (out.size() < n) out += letters[dice()() % letters.size()];
  return out;
}

filter label_filter(std::string const& selector) { return all_of(selector, label_at); }
filter field_filter(std::string const& selector) { return all_of(selector, field_at); }

bool has_labels(json const& labels, json const& wanted) {
  for (auto const& [k, v] : wanted.items())
    if (!labels.is_object() || labels.value(k, json()) != v) return false;
  return true;
}

type const& store::define(type t) {
  auto const held = lock();
  auto& slot = types_[{t.group, t.plural}];
  if (slot)
    *slot = std::move(t);
  else
    slot = std::make_unique<type>(std::move(t));
  return *slot;
}

type const* store::find_type(std::string const& group, std::string const& plural) const {
  auto const held = lock();
  auto const it = types_.find({group, plural});
  return it == types_.end() || !it->second->served ? nullptr : it->second.get();
}

void store::undefine(std::string const& group, std::string const& plural) {
  auto const held = lock();
  auto const it = types_.find({group, plural});
  if (it == types_.end()) return;
  for (object const& o : list(*it->second))
    remove(*it->second, (*o)["metadata"].value("namespace", ""), (*o)["metadata"]["name"]);
  it->second->served = false;  // watches keep pointers to it
}

type const& store::kind(std::string const& plural) const {
  auto const held = lock();
  for (auto const& [name, t] : types_)
    if (name.second == plural && !t->is_custom()) return *t;
  throw no_such_path();
}

std::vector<type const*> store::types() const {
  auto const held = lock();
  std::vector<type const*> out;
  for (auto const& [name, t] : types_)
    if (t->served) out.push_back(t.get());
  return out;
}

object store::find(type const& of, std::string const& space, std::string const& name) const {
  auto const held = lock();
  auto const all = objects_.find(&of);
  if (all == objects_.end()) return nullptr;
  auto const it = all->second.find({space, name});
  return it == all->second.end() ? nullptr : it->second;
}

std::vector<object> store::list(type const& of, std::string const& space, filter const& which) const {
  auto const held = lock();
  std::vector<object> out;
  auto const all = objects_.find(&of);
  if (all != objects_.end())
    for (auto const& [name, o] : all->second)
      if ((space.empty() || name.first == space) && (!which || which(*o))) out.push_back(o);
  return out;
}

object store::add(type const& of, json o) {
  auto const held = lock();
  json& meta = o["metadata"];
  std::string const name = meta["name"], space = meta.value("namespace", "");
  if (find(of, space, name)) throw already_exists(of, name);
  meta["uid"] = uuid();
  meta["creationTimestamp"] = timestamp();
  meta["resourceVersion"] = std::to_string(version_ + 1);
  auto const after = std::make_shared<json const>(std::move(o));
  objects_[&of][{space, name}] = after;
  record(of, nullptr, after);
  return after;
}

object store::put(type const& of, json o) {
  auto const held = lock();
  json& meta = o["metadata"];
  object& slot = objects_[&of][{meta.value("namespace", ""), meta["name"]}];
  meta["resourceVersion"] = slot->at("metadata").at("resourceVersion");
  if (o == *slot) return slot;
  meta["resourceVersion"] = std::to_string(version_ + 1);
  object const before = std::exchange(slot, std::make_shared<json const>(std::move(o)));
  record(of, before, slot);
  return slot;
}

void store::remove(type const& of, std::string const& space, std::string const& name) {
  auto const held = lock();
  auto const node = objects_[&of].extract({space, name});
  if (node.empty()) return;
  json last = *node.mapped();
  last["metadata"]["resourceVersion"] = std::to_string(version_ + 1);
  record(of, std::make_shared<json const>(std::move(last)), nullptr);
}

object store::change_by(type const& of, std::string const& space, std::string const& name,
                        std::function<void(json&)> const& how) {
  auto const held = lock();
  object const is = find(of, space, name);
  if (!is) return nullptr;
  json o = *is;
  how(o);
  return put(of, std::move(o));
}

void store::record(type const& of, object before, object after) {
  changes_.push_back({++version_, &of, std::move(before), std::move(after)});
  if (changes_.size() > history_) {
    oldest_ = changes_.front().version;
    changes_.pop_front();
  }
  changed_.notify_all();
  if (on_change) on_change(of);
}

std::uint64_t store::version() const {
  auto const held = lock();
  return version_;
}

std::uint64_t store::oldest() const {
  auto const held = lock();
  return oldest_;
}

std::vector<store::change> store::since(std::uint64_t version) const {
  auto const held = lock();
  auto const first = std::ranges::upper_bound(changes_, version, {}, &change::version);
  return {first, changes_.end()};
}

void store::forget() {
  auto const held = lock();
  changes_.clear();
  oldest_ = ++version_;  // an open watch stands before this one
  changed_.notify_all();
}

bool store::wait(clock::time_point until, std::function<bool()> const& ready) const {
  auto held = lock();
  return changed_.wait_until(held, until, ready);
}

void store::wake() const {
  auto const held = lock();
  changed_.notify_all();
}

}  // namespace edl::testing::kubernetes
