// SPDX-License-Identifier: Apache-2.0
#include "cluster/overview.hpp"

namespace edl::tool {
namespace {

constexpr std::string_view body = R"page(
<body>
<a class="skip" href="#main">Skip to the list</a>
<header>
  <h1 id="name">edl</h1>
  <p class="link" id="link" role="status">Connecting</p>
</header>
<main id="main" tabindex="-1">
  <p id="notice" class="notice bad" role="alert" hidden></p>
  <section aria-labelledby="list-title">
    <h2 id="list-title">Runs</h2>
    <div id="list"></div>
  </section>
  <section aria-labelledby="curves-title">
    <div class="head">
      <h2 id="curves-title">Curves</h2>
      <label><input type="checkbox" id="log"> Logarithmic loss and learning rate</label>
    </div>
    <p id="no-curves" class="quiet">Choose one in the list, or several to compare them.</p>
    <div id="charts" class="charts"></div>
  </section>
  <section aria-labelledby="plan-title" id="plan" hidden>
    <h2 id="plan-title">Why it is as it is</h2>
    <ul id="now"></ul>
    <div id="tables"></div>
  </section>
  <section aria-labelledby="events-title" id="happened" hidden>
    <h2 id="events-title">What happened</h2>
    <div id="strip" class="strip" aria-hidden="true"></div>
    <ol id="events" class="events" reversed tabindex="0" aria-labelledby="events-title"></ol>
    <p id="missing" class="quiet"></p>
  </section>
</main>
<footer>
  <p>As JSON: <a data-path="api/runs" href="api/runs">the list</a>. Nothing on this page changes anything.</p>
</footer>
<div id="say" class="unseen" aria-live="polite"></div>
</body>
)page";

constexpr std::string_view script = R"page(
let about = {what: '', where: ''}, updated = null;
const of_jobs = () => about.what === 'jobs';
const seconds_of = text => Date.parse(text) / 1000 || 0;
const tones = {Running: 'good', Finished: 'good', Failed: 'bad', Unreadable: 'bad', Restarting: 'warn', Pending: 'warn'};
const pair = of => r => r[of] && r[of].wanted ? `${r[of].running}/${r[of].wanted}` : '';

function job_columns(rows) {
  const metrics = [...new Set(rows.flatMap(r => Object.keys(r.metrics || {})))].slice(0, 3);
  const all = [{name: 'Job', text: r => r.id}, {name: 'State', text: r => r.status, tone: r => tones[r.status] || ''},
               {name: 'Done', number: true, key: r => r.total_records ? r.records / r.total_records : undefined,
                text: r => r.total_records ? `${(100 * r.records / r.total_records).toFixed(1)}\u00a0%` : ''},
               figure('Step', r => r.version), figure('Loss', r => r.loss)];
  for (const m of metrics) all.push(figure(`Validation: ${m}`, r => (r.metrics || {})[m]));
  all.push(figure('Records per second', r => r.records_per_s && Math.round(r.records_per_s)),
           {name: 'Workers', text: pair('workers')}, {name: 'Servers', text: pair('servers')},
           {name: 'Range', text: r => r.range || ''},
           {name: 'Since', key: r => seconds_of(r.created), text: r => r.created ? ago(seconds_of(r.created)) : ''},
           {name: 'Remark', wide: true, text: r => r.reason || (r.waits ? `waits: ${r.waits}` : '')});
  return all;
}

const drawings = new chart_list(by_id('charts'));
const list = new run_table(by_id('list'), rows => of_jobs() ? job_columns(rows) : run_columns(rows), () => {
  location.replace(`#${[...list.chosen.keys()].map(encodeURIComponent).join('&')}`);
  page.change('one');
});
const page = new drawing({list: show_list, one: show_chosen});

function show_list() {
  const kind = of_jobs() ? 'Jobs' : 'Runs';
  set('list-title', kind);
  set('name', `${kind} of ${about.where}`);
  document.title = `${number(list.rows.size)} ${kind.toLowerCase()} of ${about.where}`;
  list.draw();
}

function show_chosen() {
  const runs = list.runs();
  drawings.show(curves_of(runs, of_jobs()), by_id('log').checked);
  by_id('no-curves').hidden = drawings.all.size > 0;
  set('no-curves', runs.map(r => r.problem || `${r.name} has no line of history yet.`).join(' ') || 'Choose one in the list, or several to compare them.');
  const job = of_jobs() && runs.length === 1 ? runs[0] : null;
  by_id('plan').hidden = by_id('happened').hidden = !job || !!job.problem;
  if (job && !job.problem) show_job(job);
}

const titled = (title, heads, rows) => rows.length ? [html('h3', {}, title), ...table(title, heads, rows)] : [];

function show_job(job) {
  const s = job.training_job || {}, at = text => text ? ago(seconds_of(text)) : '';
  set('plan-title', `Why ${job.name} is as it is`);
  by_id('now').replaceChildren(...(job.now.length ? job.now : [{who: '', text: 'Nothing waits.'}]).map(e =>
      html('li', {}, e.who ? `${e.who}: ${e.text}` : e.text)));
  by_id('tables').replaceChildren(
      ...titled('Sizes that the controller chose', ['When', 'Workers', 'Reason'],
               [...(s.scaleRecords || [])].reverse().map(r => [at(r.time), `${r.from} to ${r.to}`, r.reason])),
      ...titled('Speed at each size', ['Workers', 'Records per second'], (s.speeds || []).map(v => [v.workers, number(v.recordsPerSecond)])),
      ...titled('Conditions', ['Condition', 'Holds', 'Since', 'Reason', 'Message'],
               (s.conditions || []).map(c => [c.type, c.status, at(c.lastTransitionTime), c.reason, c.message])),
      ...titled('Pods', ['Pod', 'State', 'Restarts', 'Since', 'Node'],
               job.pods.map(p => [p.role, p.status, p.restarts || '', at(p.created), p.node])));
  const events = job.before.filter(e => e.time).map(e => ({time: seconds_of(e.time), kind: e.who, text: e.text,
      severity: /lost|fail|ended|must go|evict|kill/i.test(e.text) ? 'warning' : 'info'})).sort((a, b) => a.time - b.time);
  const of = role => e => e.kind.split('-')[0] === role;
  by_id('events').replaceChildren(...[...events].reverse().slice(0, 500).map(event_row));
  draw_strip(by_id('strip'), events, [['job', of('job')], ['master', of('master')], ['servers', of('ps')], ['workers', of('worker')]],
             Date.now() / 1000);
  set('missing', job.missing || (events.length ? '' : 'Nothing has happened that the cluster remembers.'));
}

// ---- What the command tells ----

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}
let wanted = location.hash.slice(1).split('&').filter(t => t).map(decoded);
listen({
  reset: now => {
    about = now;
    list.rows.clear();
    page.change('list', 'one');
  },
  problem: p => {
    by_id('notice').hidden = !p.text;
    set('notice', p.text);
  },
  rows: all => {
    for (const row of all) {
      if (row.gone) list.rows.delete(row.id); else list.rows.set(row.id, row);
      if (row.gone && list.chosen.delete(row.id)) page.change('one');
      else if (list.chosen.has(row.id)) list.load(row.id);
    }
    for (const id of wanted.filter(w => list.rows.has(w))) list.choose(id, true);
    wanted = wanted.filter(w => !list.rows.has(w));
    updated = Date.now() / 1000;
    page.change('list');
  },
}, () => updated ? `Not connected: this is how it was at ${clock(updated)}` : 'Not connected');

for (const a of document.querySelectorAll('a[data-path]')) a.href = with_token(a.dataset.path);
by_id('log').addEventListener('change', () => page.change('one'));
addEventListener('resize', () => page.change('one'));
setInterval(() => page.change('list'), 30000);  // how long ago
)page";

}  // namespace

train::dashboard_page overview_page() { return train::make_page(body, script); }

}  // namespace edl::tool
