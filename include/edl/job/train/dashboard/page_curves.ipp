// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/inline.hpp"
#include "edl/job/train/dashboard/page.hpp"

namespace edl::train {

EDL_INLINE std::string_view dashboard_curves() {
  return R"page(
'use strict';
const svg_space = 'http://www.w3.org/2000/svg';

// Text becomes a node of text, never HTML.
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
const html = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
const drawn = (name, attributes = {}, ...children) => fill(document.createElementNS(svg_space, name), attributes, children);

const whole = new Intl.NumberFormat('en-US', {maximumFractionDigits: 0});
function number(x) {
  if (x === null || x === undefined || !Number.isFinite(x)) return '–';
  if (Number.isInteger(x) || Math.abs(x) >= 1000) return whole.format(x);
  if (x !== 0 && Math.abs(x) < 1e-5) return x.toExponential(2).replace('e-', 'e−');
  return String(Number(x.toPrecision(4)));
}

/** Round values between two, about so many. */
function ticks(low, high, about) {
  const rough = (high - low) / about, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(f => f * power >= rough * 0.999);
  const all = [], first = Math.ceil(low / step - 1e-9);
  // Between neighbouring numbers there is no other, and a sum goes no further.
  for (let i = 0; i < about + 2 && (first + i) * step <= high + step * 1e-9; ++i) all.push((first + i) * step);
  return [...new Set(all)];
}
function log_ticks(low, high) {
  const all = [], decades = high - low;
  for (let power = Math.floor(low); power <= high; ++power)
    for (const f of decades < 2 ? [1, 2, 5] : [1]) {
      const at = power + Math.log10(f);
      if (at >= low - 1e-9 && at <= high + 1e-9) all.push(at);
    }
  const every = Math.ceil(all.length / 6);
  return all.filter((_, i) => i % every === 0);
}
const short = x => x >= 1e6 ? `${Number((x / 1e6).toPrecision(4))}M` : x >= 1e4 ? `${Number((x / 1e3).toPrecision(4))}k` : number(x);

const style_of = s => `s${s.tone || 0}${s.dashed ? ' dashed' : ''}`;

/** A curve of one or more series over steps: a picture, what it says at a step, and a table. */
class chart {
  constructor(title, into) {
    this.title = title;
    this.series = [];  // {name, points: [[step, value], …], raw: before they were smoothed, tone, dashed}
    this.logarithmic = false;
    this.at = null;    // the step that is read
    this.keys = html('span', {class: 'keys'});
    this.plot = drawn('svg', {class: 'plot', tabindex: '0', role: 'img'});
    this.readout = html('p', {class: 'readout'});
    this.readout.setAttribute('aria-live', 'polite');
    this.values = html('div', {class: 'values', tabindex: '0', role: 'region', 'aria-label': `${title}, table`});
    this.table = html('details', {}, html('summary', {}, 'Table', html('span', {class: 'unseen'}, ` of ${title}`)), this.values);
    this.table.addEventListener('toggle', () => this.fill_table());
    this.plot.addEventListener('pointermove', e => {
      const box = this.plot.getBoundingClientRect();
      if (this.scale) this.read(this.nearest(this.scale.step(e.clientX - box.left)));
    });
    this.plot.addEventListener('pointerleave', () => this.read(null));
    this.plot.addEventListener('blur', () => this.read(null));
    this.plot.addEventListener('keydown', e => this.key(e));
    into.append(this.figure = html('figure', {}, html('figcaption', {}, html('h3', {}, title), this.keys), this.plot, this.readout,
                     this.table));
  }

  steps() {
    return [...new Set(this.series.flatMap(s => s.points.map(p => p[0])))].sort((a, b) => a - b);
  }
  nearest(step) {
    let best = null;
    for (const s of this.series)
      for (const [x] of s.points) if (best === null || Math.abs(x - step) < Math.abs(best - step)) best = x;
    return best;
  }
  key(e) {
    const all = this.steps(), i = this.at === null ? all.length : all.indexOf(this.at);
    const to = {ArrowLeft: i - 1, ArrowRight: i + 1, Home: 0, End: all.length - 1, Escape: -2}[e.key];
    if (to === undefined || all.length === 0) return;
    e.preventDefault();
    this.read(to === -2 ? null : all[Math.max(0, Math.min(all.length - 1, to))]);
  }
  read(step) {
    if (this.at === step) return;
    this.at = step;
    this.draw();
  }

  show(series, logarithmic) {
    this.series = series;
    this.logarithmic = logarithmic && series.every(s => s.points.every(p => p[1] > 0));
    this.draw();
    this.fill_table();
  }

  draw() {
    const width = Math.max(200, this.plot.clientWidth || 400), height = 208;
    const values = this.series.flatMap(s => [...s.points, ...(s.raw || [])]);
    this.plot.replaceChildren();
    this.plot.setAttribute('viewBox', `0 0 ${width} ${height}`);
    this.keys.replaceChildren(...this.series.map(s => html('span', {class: `key ${style_of(s)}`},
        `${s.name ? `${s.name} ` : ''}${number(s.points.length ? s.points[s.points.length - 1][1] : null)} `)));
    if (values.length === 0) return;
    const y_of = v => this.logarithmic ? Math.log10(v) : v;
    let x0 = Infinity, x1 = -Infinity, y0 = Infinity, y1 = -Infinity;
    for (const [x, v] of values) {
      const y = y_of(v);
      x0 = Math.min(x0, x), x1 = Math.max(x1, x), y0 = Math.min(y0, y), y1 = Math.max(y1, y);
    }
    if (x0 === x1) x0 -= 1, x1 += 1;
    const pad = (y1 - y0) * 0.06 || Math.abs(y1) * 0.1 || 1;
    if (y0 >= 0 && y0 - pad < 0 && !this.logarithmic) y0 = 0, y1 += pad; else y0 -= pad, y1 += pad;
    const counts = values.every(p => Number.isInteger(p[1])) && y1 - y0 < 8;
    const marks = this.logarithmic ? log_ticks(y0, y1) : ticks(y0, y1, 4).filter(m => !counts || Number.isInteger(m));
    const labels = marks.map(m => short(this.logarithmic ? Number((10 ** m).toPrecision(3)) : Number(m.toPrecision(6))));
    const left = 12 + 6.6 * Math.max(2, ...labels.map(l => l.length)), right = 12, top = 8, bottom = 22;
    const X = s => left + (s - x0) / (x1 - x0) * (width - left - right);
    const Y = y => height - bottom - (y - y0) / (y1 - y0) * (height - top - bottom);
    this.scale = {step: px => x0 + (px - left) / (width - left - right) * (x1 - x0)};
    marks.forEach((m, i) => this.plot.append(
        drawn('line', {class: 'grid', x1: left, x2: width - right, y1: Y(m), y2: Y(m)}),
        drawn('text', {x: left - 6, y: Y(m) + 4, 'text-anchor': 'end'}, labels[i])));
    for (const t of ticks(x0, x1, Math.max(3, width / 90)))
      if (Number.isInteger(t)) this.plot.append(drawn('text', {x: X(t), y: height - 6, 'text-anchor': X(t) > width - 25 ? 'end' : 'middle'}, short(t)));
    this.plot.append(drawn('line', {class: 'axis', x1: left, x2: width - right, y1: height - bottom, y2: height - bottom}));
    const path_of = points => points.map(([x, v], i) => `${i ? 'L' : 'M'}${X(x).toFixed(1)} ${Y(y_of(v)).toFixed(1)}`).join('');
    this.series.forEach(s => {
      if (s.raw) this.plot.append(drawn('path', {class: `${style_of(s)} raw`, d: path_of(s.raw)}));
      this.plot.append(drawn('path', {class: style_of(s), d: path_of(s.points)}));
      if (s.points.length <= 40)
        for (const [x, v] of s.points) this.plot.append(drawn('circle', {class: style_of(s), cx: X(x), cy: Y(y_of(v)), r: 2.5}));
    });
    if (this.at !== null) this.cross(X, Y, y_of, top, height - bottom);
    else this.readout.replaceChildren();
    this.plot.setAttribute('aria-label', this.summary());
  }

  cross(X, Y, y_of, top, bottom) {
    const said = [];
    this.plot.append(drawn('line', {class: 'cross', x1: X(this.at), x2: X(this.at), y1: top, y2: bottom}));
    this.series.forEach(s => {
      const p = s.points.find(one => one[0] === this.at);
      if (!p) return;
      said.push(`${s.name ? `${s.name} ` : ''}${number(p[1])}`);
      this.plot.append(drawn('circle', {class: style_of(s), cx: X(p[0]), cy: Y(y_of(p[1])), r: 4}));
    });
    this.readout.replaceChildren(`step ${number(this.at)}: ${said.join(', ')}`);
  }

  summary() {
    const all = this.series.filter(s => s.points.length).map(s => {
      const first = s.points[0], last = s.points[s.points.length - 1];
      return `${s.name} from ${number(first[1])} at step ${number(first[0])} to ${number(last[1])} at step ${number(last[0])}`;
    });
    return `${this.title}: ${all.join('; ')}. Arrow keys read single steps; a table follows.`;
  }

  fill_table() {
    if (!this.table.open) return;
    const all = this.steps().reverse(), every = Math.ceil(all.length / 200);
    const of = this.series.map(s => new Map(s.points));
    const row = step => html('tr', {}, html('th', {scope: 'row'}, number(step)), ...of.map(m => html('td', {}, number(m.get(step)))));
    this.values.replaceChildren(html('table', {}, html('thead', {}, html('tr', {}, html('th', {scope: 'col'}, 'Step'),
        ...this.series.map(s => html('th', {scope: 'col'}, s.name || this.title)))),
        html('tbody', {}, ...all.filter((_, i) => i % every === 0).map(row))));
  }
}
)page";
}

}  // namespace edl::train
