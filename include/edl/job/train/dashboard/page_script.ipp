// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/inline.hpp"
#include "edl/job/train/dashboard/page.hpp"

namespace edl::train {

EDL_INLINE std::string_view dashboard_script() {
  return R"page(
let worst_of = null, job = null, lines = [], events = [], baseline = null, everything = false;
const drawings = new chart_list(by_id('charts'));
const others = new run_table(by_id('others'), run_columns, () => page.change('lines'));
const page = new drawing({job: () => job && show_job(), lines: show_curves, events: show_events});

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
  const epochs = by_id('account-epochs'), told = a.epochs.slice(-20);
  if (epochs.dataset.told !== told.join()) {
    epochs.dataset.told = told.join();
    epochs.replaceChildren(...told.map(text => html('li', {}, text)));
  }
  show_processes();
  if (job.worst !== null && job.worst !== worst_of) show_worst();
}

/** The records with the highest loss in the last evaluation. */
async function show_worst() {
  worst_of = job.worst;
  const {version, records} = await ask('api/worst'), said = records.some(r => r.class !== undefined);
  by_id('worst').hidden = false;
  set('worst-title', `Worst records of step ${number(version)}`);
  by_id('worst-records').replaceChildren(...table('Worst records', ['Record', 'Loss', ...(said ? ['Label', 'Said', 'Probability'] : []), 'File'],
      records.slice(0, 100).map(r => [r.in_file ?? '', number(r.loss), ...(said ? [r.label, r.class, number(r.probability)] : []), r.file])));
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
      cell.className = (text ? '' : 'blank ') + (k === 0 ? p.state.split(' ')[0] : k === 1 || k === 6 ? 'wide' : '');
    });
  });
  by_id('more-processes').hidden = !job.processes_left_out;
  set('more-processes', `and ${number(job.processes_left_out)} more`);
}

// ---- Curves ----

const halved = all => all.filter((_, i) => (all.length - i) % 2 === 1);
function show_curves() {
  const all = [{name: (job && job.name) || 'this job', lines}, ...others.runs()];
  drawings.show(curves_of(all, job && job.strategy !== 'Local'), by_id('log').checked);
  by_id('no-curves').hidden = drawings.all.size > 0;
}

// ---- What happened ----

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
  by_id('events').replaceChildren(...shown.map(event_row));
  by_id('no-events').hidden = chosen.length > 0;
  set('no-events', events.length ? 'Nothing of this kind has happened.' : 'Nothing has happened yet.');
  by_id('all-events').hidden = shown.length === chosen.length;
  set('all-events', `Show all ${number(chosen.length)}`);
  const of_servers = e => filters.processes(e) && /server|ps-/i.test(e.text);
  draw_strip(by_id('strip'), events, [['workers', e => filters.processes(e) && !of_servers(e)],
                                      ...(job && job.servers ? [['servers', of_servers]] : []), ['model', filters.model], ['notes', e => e.kind === 'note']],
             job ? job.time : 0);
}

// ---- What the process tells ----

listen({
  reset: () => {
    lines = [], events = [];
    page.change('lines', 'events');
  },
  job: now => {
    if (job && job.state !== now.state) say(`The job is ${now.state}`);
    if (baseline === null) baseline = now.time;
    job = now;
    page.change('job');
  },
  line: line => {
    lines.push(line);
    if (lines.length > 8000) lines = [...halved(lines.filter(l => l.metrics)), ...halved(lines.filter(l => !l.metrics))];
    page.change('lines');
  },
  event: e => {
    events.push(e);
    if (events.length > 4000) events = events.slice(-2000);
    if (baseline !== null && e.time > baseline && e.severity !== 'debug') say(e.text);
    page.change('events');
  },
  end: (_, live) => {
    if (!job || !['finished', 'failed', 'suspended', 'stopped'].includes(job.state)) return;  // a successor may come
    live.close();
    link(`Ended: this is how it was at ${clock(job.time)}`, '');
  },
}, () => job ? `Not connected: this is how it was at ${clock(job.time)}` : 'Not connected');

by_id('process-columns').append(...columns.map(c => html('th', {scope: 'col', role: 'columnheader'}, c)));
for (const a of document.querySelectorAll('a[data-path]')) a.href = with_token(a.dataset.path);
by_id('log').addEventListener('change', () => page.change('lines'));
by_id('filter').addEventListener('change', () => page.change('events'));
by_id('all-events').addEventListener('click', () => { everything = true; page.change('events'); });
by_id('compare').addEventListener('toggle', async () => {
  if (!by_id('compare').open) return;
  try {
    others.rows = new Map((await ask('api/runs')).map(r => [r.id, r]));
    others.draw();
  } catch (bad) {
    others.count.textContent = `The list cannot be read: ${bad.message}`;
  }
});
addEventListener('resize', () => page.change('lines', 'events'));
)page";
}

}  // namespace edl::train
