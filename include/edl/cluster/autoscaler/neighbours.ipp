// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>

#include "edl/cluster/autoscaler/neighbours.hpp"
#include "edl/core/inline.hpp"
#include "edl/core/invariant.hpp"

namespace edl::autoscaler {

EDL_INLINE neighbours::neighbours(std::vector<node> const& nodes,
                                  std::vector<pod_shape const*> const& shapes) {
  std::map<separation, int> terms;
  for (pod_shape const* s : shapes)
    for (auto const* lines : {&s->apart, &s->together})
      for (separation const& a : *lines) terms.try_emplace(a, int(terms.size()));
  if (terms.empty()) return;
  ties_.resize(shapes.size());
  marked_.assign(terms.size(), 0);
  joined_.assign(terms.size(), false);
  for (std::size_t s = 0; s < shapes.size(); ++s)
    for (auto const& [term, t] : terms) {
      auto const has = [](auto const& all, auto const& one) {
        return std::find(all.begin(), all.end(), one) != all.end();
      };
      tie const made{t, has(shapes[s]->apart, term), has(shapes[s]->together, term),
                     has(shapes[s]->marks, term.mark)};
      if (made.avoids || made.joins || made.marked) ties_[s].push_back(made);
      if (made.joins) joined_[std::size_t(t)] = true;
    }
  domain_of_.resize(terms.size());
  domains_.resize(terms.size());
  for (auto const& [term, t] : terms) {
    auto& domains = domains_[std::size_t(t)];
    std::map<std::string, int> by_value;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      std::string const* value = nodes[n].labels.find(term.topology);
      int of = -1;
      if (value) {
        auto const [at, fresh] = by_value.try_emplace(*value, int(domains.size()));
        if (fresh) domains.push_back({.first = int(n)});
        of = at->second;
      }
      domain_of_[std::size_t(t)].push_back(of);
    }
  }
}

EDL_INLINE neighbours::domain const* neighbours::domain_of(int term, int node) const {
  int const of = domain_of_[std::size_t(term)][std::size_t(node)];
  return of < 0 ? nullptr : &domains_[std::size_t(term)][std::size_t(of)];
}

EDL_INLINE bool neighbours::allow(int shape, int node, std::vector<int> const& gone) const {
  if (!concerns(shape)) return true;
  for (tie const& mine : ties_[std::size_t(shape)]) {
    domain const* d = domain_of(mine.term, node);
    if (!d && mine.joins) return false;
    if (!d) continue;
    int avoiding = d->avoiding, marked = d->marked, anywhere = marked_[std::size_t(mine.term)];
    for (int g : gone)
      for (tie const& its : ties_[std::size_t(g)])
        if (its.term == mine.term) avoiding -= its.avoids, marked -= its.marked, anywhere -= its.marked;
    if ((mine.avoids && marked > 0) || (mine.marked && avoiding > 0)) return false;
    // A first pod that needs others of its own kind may go anywhere.
    if (mine.joins && marked <= 0 && !(mine.marked && anywhere <= 0)) return false;
  }
  return true;
}

EDL_INLINE bool neighbours::alone(int shape) const {
  return concerns(shape) && std::any_of(ties_[std::size_t(shape)].begin(), ties_[std::size_t(shape)].end(),
                                        [](tie const& t) { return t.avoids && t.marked; });
}

EDL_INLINE int neighbours::first_freed(int shape, int node) const {
  int first = node;
  if (!concerns(shape)) return first;
  for (tie const& t : ties_[std::size_t(shape)]) {
    if (t.marked && joined_[std::size_t(t.term)] && marked_[std::size_t(t.term)] == 0)
      first = 0;  // the last pod with the mark is gone: the next may go anywhere
    else if (domain const* d = domain_of(t.term, node))
      first = std::min(first, d->first);
  }
  return first;
}

EDL_INLINE int neighbours::first_opened(int shape, int node) const {
  int first = -1;
  if (concerns(shape))
    for (tie const& t : ties_[std::size_t(shape)])
      if (t.marked && joined_[std::size_t(t.term)])
        if (domain const* d = domain_of(t.term, node))
          first = first < 0 ? d->first : std::min(first, d->first);
  return first;
}

EDL_INLINE void neighbours::count(int shape, int node, int by) {
  if (!concerns(shape)) return;
  for (tie const& t : ties_[std::size_t(shape)]) {
    marked_[std::size_t(t.term)] += by * t.marked;
    int const of = domain_of_[std::size_t(t.term)][std::size_t(node)];
    if (of < 0) continue;
    domain& d = domains_[std::size_t(t.term)][std::size_t(of)];
    d.avoiding += by * t.avoids;
    d.marked += by * t.marked;
    invariant(d.avoiding >= 0 && d.marked >= 0, "no more pods leave a domain than it has");
  }
}

}  // namespace edl::autoscaler
