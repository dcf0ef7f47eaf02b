// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/inline.hpp"
#include "edl/job/train/dashboard/page.hpp"

namespace edl::train {

EDL_INLINE std::string_view dashboard_runs() {
  return R"page(
const by_id = id => document.getElementById(id);
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
function ago(seconds) {
  const at = new Date(seconds * 1000), s = Math.max(0, Date.now() / 1000 - seconds);
  if (Number.isNaN(at.getTime())) return '';
  const text = s < 100 ? `${Math.round(s)} s ago` : s < 6000 ? `${Math.round(s / 60)} min ago` : s < 172800 ? `${Math.round(s / 3600)} h ago` :
      at.toISOString().slice(0, 10);
  return text.replaceAll(' ', '\u00a0');
}

// ---- What happened ----

const of_model = ['epoch', 'checkpoint', 'evaluation', 'recovery', 'end'];
function tone(e) {
  if (e.severity === 'error' || e.severity === 'critical' || e.kind === 'lost') return 'bad';
  if (e.severity === 'warning') return 'warn';
  return of_model.includes(e.kind) ? 'model' : e.kind === 'joined' || e.kind === 'replaced' ? 'good' : '';
}
const event_row = e => html('li', {},
    html('time', {datetime: new Date(e.time * 1000).toISOString(), title: new Date(e.time * 1000).toLocaleString()}, clock(e.time)),
    html('span', {class: `kind ${tone(e)}`}, e.kind), html('span', {}, e.text));

/** The same over time, for the eye. `lanes`: [name, which events]. */
function draw_strip(into, events, lanes, until) {
  if (events.length === 0) return into.replaceChildren();
  const width = Math.max(200, into.clientWidth), left = 78, right = 12, bottom = 20 * lanes.length;
  const from = events[0].time, to = Math.max(until, events[events.length - 1].time, from + 1);
  const X = t => left + (t - from) / (to - from) * (width - left - right);
  const picture = drawn('svg', {viewBox: `0 0 ${width} ${bottom + 23}`, height: bottom + 23});
  lanes.forEach(([name, of], i) => {
    const y = 14 + 20 * i;
    picture.append(drawn('text', {x: 0, y: y + 4}, name), drawn('line', {class: 'grid', x1: left, x2: width - right, y1: y, y2: y}));
    for (const e of [...events.filter(of)].sort((a, b) => (tone(a) === 'bad') - (tone(b) === 'bad')))
      picture.append(drawn('circle', {class: `mark ${tone(e)}`, cx: X(e.time).toFixed(1), cy: y, r: 4.5},
                           drawn('title', {}, `${clock(e.time)} ${e.text}`)));
  });
  const marks = Math.max(2, Math.floor(width / 160));
  for (let i = 0; i <= marks; ++i) {
    const t = from + (to - from) * i / marks;
    picture.append(drawn('text', {x: X(t).toFixed(1), y: bottom + 18, 'text-anchor': i === 0 ? 'start' : i === marks ? 'end' : 'middle'}, clock(t)));
  }
  into.replaceChildren(picture);
}

// ---- Tables ----

const table = (title, heads, rows) => rows.length === 0 ? [] : [html('table', {class: 'rows', role: 'table', 'aria-label': title},
         html('thead', {role: 'rowgroup'}, html('tr', {role: 'row'}, ...heads.map(h => html('th', {scope: 'col', role: 'columnheader'}, h)))),
         html('tbody', {role: 'rowgroup'}, ...rows.map(cells => html('tr', {role: 'row'}, ...cells.map((text, i) =>
             html(i ? 'td' : 'th', {role: i ? 'cell' : 'rowheader', class: `${text || text === 0 ? '' : 'blank '}${i === cells.length - 1 ? 'wide' : ''}`,
                                    'data-column': heads[i]}, String(text ?? '')))))))];

// ---- Curves of one run, or of several in one picture ----

function points(of, value) {
  return of.map(line => [line.step, value(line)]).filter(p => typeof p[1] === 'number' && Math.abs(p[1]) < 1e300);
}
/** Of runs {name, lines}: [title, series, whether it may be logarithmic]. */
function curves_of(runs, members) {
  const parts = runs.map(r => ({name: r.name, trained: r.lines.filter(l => !l.metrics), evaluated: r.lines.filter(l => l.metrics)}));
  const named = (run, what) => runs.length === 1 ? what : what ? `${run.name}, ${what}` : run.name;
  const trained = (value, what = '') => parts.map((r, i) => ({name: named(r, what), points: points(r.trained, value), tone: i}));
  const evaluated = metric => parts.map((r, i) => ({name: named(r, ''), points: points(r.evaluated, l => l.metrics[metric]), tone: i}));
  const metrics = [...new Set(parts.flatMap(r => r.evaluated.flatMap(l => Object.keys(l.metrics))))];
  const losses = trained(l => l.loss, metrics.includes('loss') ? 'training' : '');
  if (metrics.includes('loss'))
    losses.push(...evaluated('loss').map((s, i) => ({...s, name: named(parts[i], 'validation'), tone: runs.length === 1 ? 1 : i, dashed: true})));
  const all = [['Loss', losses, true]];
  for (const name of metrics.filter(m => m !== 'loss').slice(0, 50)) all.push([`Validation: ${name}`, evaluated(name), false]);
  all.push(['Learning rate', trained(l => l.learning_rate), true], ['Records per second', trained(l => l.records_per_s), false]);
  const servers = trained(l => l.servers, 'servers').filter(s => s.points.some(p => p[1] > 0))
      .map(s => ({...s, tone: runs.length === 1 ? 1 : s.tone, dashed: true}));
  if (members) all.push(['Members', [...trained(l => l.workers, 'workers'), ...servers], false]);
  return all.map(([title, series, logarithmic]) => [title, series.filter(s => s.points.length), logarithmic]);
}
/** Means over the values before, the more the larger the share from 0 to 1, as TensorBoard makes them. */
function smoothed(points, share) {
  let sum = 0, weight = 0;
  return points.map(([step, value]) => {
    sum = sum * share + value * (1 - share), weight = weight * share + 1 - share;
    return [step, sum / weight];
  });
}
class chart_list {
  constructor(into) {
    Object.assign(this, {into, all: new Map(), curves: [], logarithmic: false});
    this.smoothing = html('input', {type: 'range', min: '0', max: '0.99', step: '0.01', value: '0'});
    this.smoothing.addEventListener('input', () => this.show(this.curves, this.logarithmic));
    into.before(html('label', {class: 'quiet'}, 'Smoothing ', this.smoothing));
  }
  show(curves, logarithmic) {
    Object.assign(this, {curves, logarithmic});
    const share = Number(this.smoothing.value);
    for (const [title, as_read, may] of curves) {
      const series = share > 0 ? as_read.map(s => ({...s, raw: s.points, points: smoothed(s.points, share)})) : as_read;
      if (series.length === 0) continue;
      if (!this.all.has(title)) this.all.set(title, new chart(title, this.into));
      this.all.get(title).show(series, may && logarithmic);
    }
    for (const [title, one] of this.all)
      if (!curves.some(c => c[0] === title && c[1].length)) one.figure.remove(), this.all.delete(title);
  }
}

// ---- A table of runs, of which some are chosen ----

const most_rows = 200, most_chosen = 8, in_order = new Intl.Collator('en', {numeric: true});

class run_table {
  /** `columns`: rows → [{name, text, key, number, wide}]. `changed`: what is chosen is. */
  constructor(into, columns, changed) {
    Object.assign(this, {columns, changed, rows: new Map(), chosen: new Map(), elements: new Map(), shown: most_rows, heads: ''});
    this.find = html('input', {type: 'search', autocomplete: 'off'});
    this.order = html('select');
    this.descending = html('input', {type: 'checkbox'});
    this.count = html('p', {class: 'quiet', role: 'status'});
    this.head = html('tr', {role: 'row'});
    this.body = html('tbody', {role: 'rowgroup'});
    this.more = html('button', {type: 'button', hidden: ''}, `Show ${most_rows} more`);
    into.append(html('div', {class: 'head'}, html('label', {}, 'Find ', this.find), html('label', {}, 'Order by ', this.order),
                     html('label', {}, this.descending, ' largest first')), this.count,
                html('table', {class: 'rows', role: 'table', 'aria-label': 'Runs'}, html('thead', {role: 'rowgroup'}, this.head), this.body), this.more);
    this.find.addEventListener('input', () => { this.shown = most_rows; this.draw(); });
    for (const one of [this.order, this.descending]) one.addEventListener('change', () => this.draw());
    this.more.addEventListener('click', () => { this.shown += most_rows; this.draw(); });
    this.body.addEventListener('change', e => this.choose(e.target.value, e.target.checked));
  }

  async choose(id, yes) {
    if (!yes) this.chosen.delete(id);
    else if (this.chosen.size < most_chosen) this.chosen.set(id, null);
    this.draw();
    this.changed();
    if (this.chosen.has(id)) await this.load(id);
  }
  async load(id) {
    try {
      const found = await ask(`api/runs/${encodeURIComponent(id)}`);
      if (this.chosen.has(id)) this.chosen.set(id, found);
    } catch (bad) {
      if (this.chosen.has(id)) this.chosen.set(id, {lines: [], problem: bad.message});
    }
    this.changed();
  }
  runs() {
    return [...this.chosen].filter(([, found]) => found).map(([id, found]) => ({name: id, ...found}));
  }

  draw() {
    const columns = this.columns([...this.rows.values()]), heads = columns.map(c => c.name).join('|');
    const focused = document.activeElement, of = this.body.contains(focused) ? focused.value : null;
    if (heads !== this.heads) {
      const before = this.order.value;
      this.heads = heads;
      this.elements.clear();
      this.body.replaceChildren();
      this.head.replaceChildren(...columns.map(c => html('th', {scope: 'col', role: 'columnheader', class: c.number ? 'number' : ''}, c.name)));
      this.order.replaceChildren(...columns.map(c => html('option', {}, c.name)));
      if (columns.some(c => c.name === before)) this.order.value = before;
    }
    const words = this.find.value.toLowerCase().split(' ').filter(w => w);
    const found = [...this.rows.values()].filter(r => {
      const text = words.length ? columns.map(c => c.text(r)).join(' ').toLowerCase() : '';
      return words.every(w => text.includes(w));
    });
    const by = columns.find(c => c.name === this.order.value), key = r => by.key ? by.key(r) : by.text(r);
    const sign = this.descending.checked ? -1 : 1, none = x => x === undefined || x === null;
    found.sort((a, b) => none(key(a)) - none(key(b)) ||  // what has none comes last in both orders
        sign * (typeof key(a) === 'string' ? in_order.compare(key(a), key(b)) : key(a) - key(b)));
    const rows = found.slice(0, this.shown).map(r => this.element(r, columns));
    rows.forEach((row, i) => { if (this.body.children[i] !== row) this.body.insertBefore(row, this.body.children[i] || null); });
    while (this.body.children.length > rows.length) this.body.lastChild.remove();
    if (of !== null && focused !== document.activeElement && this.rows.has(of)) this.elements.get(of).querySelector('input').focus();
    this.more.hidden = found.length <= this.shown;
    this.count.textContent = `${number(found.length)}${found.length < this.rows.size ? ` of ${number(this.rows.size)}` : ''} in the list` +
        `${found.length > this.shown ? `, the first ${this.shown} are shown` : ''}; ${this.chosen.size} of at most ${most_chosen} chosen`;
  }
  element(r, columns) {
    let row = this.elements.get(r.id);
    if (!row) {
      const box = html('input', {type: 'checkbox', value: r.id});
      row = html('tr', {role: 'row'}, html('th', {scope: 'row', role: 'rowheader'}, html('label', {}, box, ` ${columns[0].text(r)}`)),
                 ...columns.slice(1).map(c => html('td', {role: 'cell', 'data-column': c.name})));
      this.elements.set(r.id, row);
    }
    const box = row.querySelector('input');
    box.checked = this.chosen.has(r.id);
    box.disabled = !box.checked && this.chosen.size >= most_chosen;
    columns.slice(1).forEach((c, i) => {
      const cell = row.children[i + 1], text = c.text(r);
      if (cell.textContent !== text) cell.textContent = text;
      cell.className = `${text ? '' : 'blank '}${c.number ? 'number ' : ''}${c.wide ? 'wide ' : ''}${c.tone ? c.tone(r) : ''}`;
    });
    return row;
  }
}

const figure = (name, value) => ({name, number: true, key: value, text: r => { const v = value(r); return v === undefined || v === null ? '' : number(v); }});
/** Columns of the runs of a directory. */
function run_columns(rows) {
  const metrics = [...new Set(rows.flatMap(r => Object.keys(r.metrics || {})))].slice(0, 4);
  const all = [{name: 'Run', text: r => r.id}];
  if (rows.some(r => r.hyperparameters)) all.push({name: 'Hyperparameters', text: r => (r.hyperparameters || '').replaceAll(';', ' '), wide: true});
  if (rows.some(r => r.failure)) all.push({name: 'Failure', text: r => r.failure || '', wide: true, tone: () => 'given'});
  all.push(figure('Step', r => r.step), figure('Loss', r => r.loss));
  for (const m of metrics) all.push(figure(`Validation: ${m}`, r => (r.metrics || {})[m]));
  all.push({name: 'Last line', key: r => r.time, text: r => r.time ? ago(r.time) : ''});
  return all;
}
)page";
}

}  // namespace edl::train
