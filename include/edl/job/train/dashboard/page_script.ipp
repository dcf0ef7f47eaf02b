// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/inline.hpp"
#include "edl/job/train/dashboard/page.hpp"

namespace edl::train {

EDL_INLINE std::string_view dashboard_script() {
  return R"page(
const by_id = id => document.getElementById(id);
const token = new URLSearchParams(location.search).get('token');
const with_token = path => token === null ? path : `${path}?token=${encodeURIComponent(token)}`;
function set(id, text) {
  const to = by_id(id);
  if (to.textContent !== text) to.textContent = text;
}
const clock = seconds => new Date(seconds * 1000).toLocaleTimeString('en-GB');
function span(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  const s = Math.round(seconds), pad = n => String(n).padStart(2, '0');
  return s >= 3600 ? `${Math.floor(s / 3600)}:${pad(Math.floor(s / 60) % 60)}:${pad(s % 60)}` : `${Math.floor(s / 60)}:${pad(s % 60)}`;
}
const bytes = n => n ? `${number(n / 2 ** 20)} MiB` : '';

let job = null, lines = [], events = [], ended = false, baseline = null, dirty = {}, waiting = false, everything = false;
const charts = new Map();

function say(text) {  // one line after the other, so that none takes another's place
  const to = by_id('say');
  to.append(html('p', {}, text));
  while (to.children.length > 5) to.firstChild.remove();
}
function change(what) {
  dirty[what] = true;
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    const now = dirty;
    waiting = false;
    dirty = {};
    if (now.job && job) show_job();
    if (now.lines) show_curves();
    if (now.events) show_events();
  });
}

// ---- The job ----

const tones = {training: 'good', finished: 'good', gathering: 'warn', preparing: 'warn', finishing: 'good', suspending: 'warn',
               suspended: 'warn', stopped: 'warn', failed: 'bad'};

function show_job() {
  const share = job.total_records ? Math.min(1, job.records / job.total_records) : null;
  set('name', job.name || 'edl');
  set('state', job.state);
  by_id('state').className = `state ${tones[job.state] || ''}`;
  document.title = `${share === null ? '' : `${Math.floor(share * 100)} % `}${job.name}: ${job.state}`;
  if (share === null) by_id('bar').removeAttribute('value'); else by_id('bar').value = share;
  set('bar-text', `${share === null ? '' : `${(share * 100).toFixed(1)} %, `}${number(job.records)}` +
      `${job.total_records ? ` of ${number(job.total_records)}` : ''} records`);
  set('step', number(job.step) + (job.max_step ? ` of ${number(job.max_step)}` : ''));
  set('epoch', `${number(Math.min(job.epoch + 1, job.epochs || Infinity))}${job.epochs ? ` of ${number(job.epochs)}` : ''}`);
  set('loss', number(job.loss));
  set('records-per-s', number(job.records_per_s && Math.round(job.records_per_s * 10) / 10));
  set('steps-per-s', number(job.steps_per_s && Math.round(job.steps_per_s * 10) / 10));
  set('left', span(job.seconds_left));
  const notice = by_id('notice'), text = job.reason || (job.waits_for && `Waits for ${job.waits_for}`) || '';
  notice.hidden = !text;
  notice.className = `notice ${job.reason ? 'bad' : ''}`;
  set('notice', text);
  const a = job.account;
  set('counted', number(a.records_counted));
  set('skipped', number(a.records_skipped));
  set('lost', number(a.members_lost));
  set('repeated', number(a.tasks_repeated));
  set('recovered', number(a.tasks_recovered));
  show_processes();
}

const columns = ['Process', 'State', 'Where', 'Since', 'Records per second', 'Step', 'Memory', 'Incarnation'];
const cells = p => [p.state + (p.heard_s > 2 ? `, silent for ${Math.round(p.heard_s)} s` : ''), p.address,
                    p.joined ? clock(p.joined) : '', p.records_per_s === undefined || p.role === 'server' ? '' : number(p.records_per_s),
                    p.version === undefined ? '' : number(p.version), bytes(p.memory_bytes), p.incarnation];

function show_processes() {
  const rows = by_id('processes');
  while (rows.children.length > job.processes.length) rows.lastChild.remove();
  job.processes.forEach((p, i) => {
    let row = rows.children[i];
    if (!row) rows.append(row = html('tr', {role: 'row'}, html('th', {scope: 'row', role: 'rowheader'}),
        ...columns.slice(1).map(c => html('td', {role: 'cell', 'data-column': c}))));
    row.firstChild.textContent = p.process;
    cells(p).forEach((text, k) => {
      const cell = row.children[k + 1];
      if (cell.textContent !== (text || '')) cell.textContent = text || '';
      cell.className = (text ? '' : 'blank ') + (k === 0 ? p.state.split(' ')[0] : '');
    });
  });
  by_id('more-processes').hidden = !job.processes_left_out;
  set('more-processes', `and ${number(job.processes_left_out)} more`);
}

// ---- Curves ----

const halved = all => all.filter((_, i) => (all.length - i) % 2 === 1);
function points(of, value) {
  return of.map(line => [line.step, value(line)]).filter(p => typeof p[1] === 'number');
}
function show_curves() {
  const trained = lines.filter(line => !line.metrics), evaluated = lines.filter(line => line.metrics);
  const metrics = [...new Set(evaluated.flatMap(line => Object.keys(line.metrics)))];
  const series = [['Loss', [{name: 'training', points: points(trained, line => line.loss)}], true]];
  if (metrics.includes('loss')) series[0][1].push({name: 'validation', points: points(evaluated, line => line.metrics.loss)});
  for (const name of metrics.filter(m => m !== 'loss').slice(0, 50))
    series.push([`Validation: ${name}`, [{name: '', points: points(evaluated, line => line.metrics[name])}], false]);
  series.push(['Learning rate', [{name: '', points: points(trained, line => line.learning_rate)}], true],
              ['Records per second', [{name: '', points: points(trained, line => line.records_per_s)}], false]);
  const members = [{name: 'workers', points: points(trained, line => line.workers)}];
  if (trained.some(line => line.servers > 0)) members.push({name: 'servers', points: points(trained, line => line.servers)});
  if (job && job.strategy !== 'Local') series.push(['Members', members, false]);
  for (const [title, all, logarithmic] of series) {
    if (!all.some(s => s.points.length)) continue;
    if (!charts.has(title)) charts.set(title, new chart(title, by_id('charts')));
    charts.get(title).show(all, logarithmic && by_id('log').checked);
  }
  by_id('no-curves').hidden = charts.size > 0;
}

// ---- What happened ----

const of_model = ['epoch', 'checkpoint', 'evaluation', 'recovery', 'end'];
function tone(e) {
  if (e.severity === 'error' || e.severity === 'critical' || e.kind === 'lost') return 'bad';
  if (e.severity === 'warning') return 'warn';
  return of_model.includes(e.kind) ? 'model' : e.kind === 'joined' || e.kind === 'replaced' ? 'good' : '';
}
const filters = {
  all: () => true,
  processes: e => !of_model.includes(e.kind) && e.kind !== 'note',
  model: e => of_model.includes(e.kind),
  trouble: e => e.severity !== 'info',
};
const most_shown = 200;

function show_events() {
  const chosen = events.filter(filters[by_id('filter').value]).reverse();
  const shown = everything ? chosen : chosen.slice(0, most_shown);
  by_id('events').replaceChildren(...shown.map(e => html('li', {},
      html('time', {datetime: new Date(e.time * 1000).toISOString(), title: new Date(e.time * 1000).toLocaleString()}, clock(e.time)),
      html('span', {class: `kind ${tone(e)}`}, e.kind), html('span', {}, e.text))));
  by_id('no-events').hidden = chosen.length > 0;
  set('no-events', events.length ? 'Nothing of this kind has happened.' : 'Nothing has happened yet.');
  by_id('all-events').hidden = shown.length === chosen.length;
  set('all-events', `Show all ${number(chosen.length)}`);
  show_strip();
}

/** The same over time, for the eye. */
function show_strip() {
  const into = by_id('strip'), width = Math.max(200, into.clientWidth), left = 78, right = 12;
  if (events.length === 0) return into.replaceChildren();
  const from = events[0].time, to = Math.max(job ? job.time : 0, events[events.length - 1].time, from + 1);
  const X = t => left + (t - from) / (to - from) * (width - left - right);
  const picture = drawn('svg', {viewBox: `0 0 ${width} 83`});
  const lanes = [['processes', filters.processes, 14], ['model', filters.model, 34], ['notes', e => e.kind === 'note', 54]];
  for (const [name, of, y] of lanes) {
    picture.append(drawn('text', {x: 0, y: y + 4}, name), drawn('line', {class: 'grid', x1: left, x2: width - right, y1: y, y2: y}));
    for (const e of [...events.filter(of)].sort((a, b) => (tone(a) === 'bad') - (tone(b) === 'bad')))
      picture.append(drawn('circle', {class: `mark ${tone(e)}`, cx: X(e.time).toFixed(1), cy: y, r: 4.5},
                           drawn('title', {}, `${clock(e.time)} ${e.text}`)));
  }
  const marks = Math.max(2, Math.floor(width / 160));
  for (let i = 0; i <= marks; ++i) {
    const t = from + (to - from) * i / marks;
    picture.append(drawn('text', {x: X(t).toFixed(1), y: 78, 'text-anchor': i === 0 ? 'start' : i === marks ? 'end' : 'middle'}, clock(t)));
  }
  into.replaceChildren(picture);
}

// ---- What the process tells ----

function link(text, kind) {
  set('link', text);
  by_id('link').className = `link ${kind}`;
}
function listen() {
  const live = new EventSource(with_token('/api/live'));
  const on = (name, what) => live.addEventListener(name, e => what(JSON.parse(e.data)));
  live.onopen = () => link('Live', 'live');
  live.onerror = () => {
    if (ended) return;
    link(job ? `Not connected: this is how it was at ${clock(job.time)}` : 'Not connected', 'gone');
    if (live.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
  };
  on('reset', () => {
    lines = [], events = [];
    for (const one of charts.values()) one.show([], false);
    change('lines');
    change('events');
  });
  on('job', now => {
    if (job && job.state !== now.state) say(`The job is ${now.state}`);
    if (baseline === null) baseline = now.time;
    job = now;
    change('job');
  });
  on('line', line => {
    lines.push(line);
    if (lines.length > 8000) lines = [...halved(lines.filter(l => l.metrics)), ...halved(lines.filter(l => !l.metrics))];
    change('lines');
  });
  on('event', e => {
    events.push(e);
    if (events.length > 4000) events = events.slice(-2000);
    if (baseline !== null && e.time > baseline && e.severity !== 'debug') say(e.text);
    change('events');
  });
  on('end', () => {
    if (!job || !['finished', 'failed', 'suspended', 'stopped'].includes(job.state)) return;  // a successor may come
    ended = true;
    live.close();
    link(`Ended: this is how it was at ${clock(job.time)}`, '');
  });
}

by_id('process-columns').append(...columns.map(c => html('th', {scope: 'col', role: 'columnheader'}, c)));
for (const a of document.querySelectorAll('a[data-path]')) a.href = with_token(a.dataset.path);
by_id('log').addEventListener('change', () => change('lines'));
by_id('filter').addEventListener('change', () => change('events'));
by_id('all-events').addEventListener('click', () => { everything = true; change('events'); });
addEventListener('resize', () => { change('lines'); change('events'); });
listen();
)page";
}

}  // namespace edl::train
