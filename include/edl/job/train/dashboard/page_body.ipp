// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "edl/core/inline.hpp"
#include "edl/job/train/dashboard/page.hpp"

namespace edl::train {

EDL_INLINE std::string_view dashboard_body() {
  return R"page(
<body>
<a class="skip" href="#main">Skip to the job</a>
<header>
  <h1 id="name">edl</h1>
  <p class="state" id="state">connecting</p>
  <p class="link" id="link" role="status">Connecting</p>
</header>
<main id="main" tabindex="-1">
  <section aria-labelledby="progress-title">
    <h2 id="progress-title" class="unseen">Progress</h2>
    <p class="bar"><progress id="bar" max="1" value="0" aria-labelledby="bar-text"></progress>
      <span id="bar-text">Nothing is known yet</span></p>
    <p id="notice" class="notice" hidden></p>
    <dl class="tiles">
      <div><dt>Step</dt><dd id="step">–</dd></div>
      <div><dt>Epoch</dt><dd id="epoch">–</dd></div>
      <div><dt>Loss</dt><dd id="loss">–</dd></div>
      <div><dt>Records per second</dt><dd id="records-per-s">–</dd></div>
      <div><dt>Steps per second</dt><dd id="steps-per-s">–</dd></div>
      <div><dt>Time left</dt><dd id="left">–</dd></div>
    </dl>
  </section>
  <section aria-labelledby="curves-title">
    <div class="head">
      <h2 id="curves-title">Curves</h2>
      <label><input type="checkbox" id="log"> Logarithmic loss and learning rate</label>
    </div>
    <p id="no-curves" class="quiet">There is no line of history yet. One comes every <code>--history_steps</code>
      steps, and with each evaluation.</p>
    <div id="charts" class="charts"></div>
    <details id="compare"><summary>Compare with other runs, whose directories lie beside this one's</summary>
      <div id="others"></div></details>
  </section>
  <section aria-labelledby="processes-title">
    <h2 id="processes-title">Processes</h2>
    <table class="rows" role="table" aria-labelledby="processes-title">
      <thead role="rowgroup"><tr role="row" id="process-columns"></tr></thead>
      <tbody role="rowgroup" id="processes"></tbody>
    </table>
    <p id="more-processes" class="quiet" hidden></p>
  </section>
  <section aria-labelledby="account-title">
    <h2 id="account-title">Account</h2>
    <dl class="tiles small">
      <div><dt>Records counted once</dt><dd id="counted">–</dd></div>
      <div><dt>Records skipped as damaged</dt><dd id="skipped">–</dd></div>
      <div><dt>Processes lost</dt><dd id="lost">–</dd></div>
      <div><dt>Tasks repeated</dt><dd id="repeated">–</dd></div>
      <div><dt>Tasks recovered</dt><dd id="recovered">–</dd></div>
    </dl>
    <ul id="account-epochs" class="quiet"></ul>
  </section>
  <section aria-labelledby="worst-title" id="worst" hidden>
    <h2 id="worst-title">Worst records</h2>
    <div id="worst-records"></div>
  </section>
  <section aria-labelledby="events-title">
    <div class="head">
      <h2 id="events-title">What happened</h2>
      <label>Show <select id="filter">
        <option value="all">everything</option>
        <option value="processes">processes</option>
        <option value="model">the model</option>
        <option value="trouble">warnings and errors</option>
      </select></label>
    </div>
    <div id="strip" class="strip" aria-hidden="true"></div>
    <ol id="events" class="events" reversed tabindex="0" aria-labelledby="events-title"></ol>
    <p id="no-events" class="quiet">Nothing has happened yet.</p>
    <button id="all-events" type="button" hidden>Show all</button>
  </section>
</main>
<footer>
  <p>As JSON: <a data-path="api/job" href="api/job">job</a>, <a data-path="api/history" href="api/history">history</a>,
    <a data-path="api/events" href="api/events">events</a>. Nothing on this page changes the job.</p>
</footer>
<div id="say" class="unseen" aria-live="polite"></div>
</body>
)page";
}

}  // namespace edl::train
