// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/inline.hpp"
#include "edl/job/train/dashboard/page.hpp"

namespace edl::train {

EDL_INLINE std::string_view dashboard_live() {
  return R"page(
const token = new URLSearchParams(location.search).get('token');
const with_token = path => token === null ? path : `${path}?token=${encodeURIComponent(token)}`;
function say(text) {  // one line after the other, so that none takes another's place
  const to = by_id('say');
  to.append(html('p', {}, text));
  while (to.children.length > 5) to.firstChild.remove();
}
function link(text, kind) {
  set('link', text);
  by_id('link').className = `link ${kind}`;
}

/** Draws what has changed, once for all that comes between two pictures of the screen. */
class drawing {
  constructor(parts) {
    this.parts = parts;
    this.dirty = new Set();
  }
  change(...names) {
    if (this.dirty.size === 0) requestAnimationFrame(() => {
      const now = this.dirty;
      this.dirty = new Set();
      for (const name of Object.keys(this.parts)) if (now.has(name)) this.parts[name]();
    });
    for (const name of names) this.dirty.add(name);
  }
}

/** Hands on each event of `/api/live`; `lost` says what a page that is cut off still shows. */
function listen(handlers, lost) {
  const live = new EventSource(with_token('api/live'));
  for (const [name, take] of Object.entries(handlers)) live.addEventListener(name, e => take(JSON.parse(e.data), live));
  live.onopen = () => link('Live', 'live');
  live.onerror = () => {
    link(lost(), 'gone');
    if (live.readyState === EventSource.CLOSED) setTimeout(() => listen(handlers, lost), 2000);
  };
  return live;
}
async function ask(path) {
  const answer = await fetch(with_token(path));
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error || answer.statusText);
  return answer.json();
}
)page";
}

}  // namespace edl::train
