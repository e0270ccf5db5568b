// SPDX-License-Identifier: Apache-2.0
// The sections of the page, each a function of what the run has come to. Texts of files get in as text, never as HTML.

function section(id, about) {
  const card = document.getElementById(id);
  card.querySelector('.about').textContent = about;
  const place = card.querySelector('.chart');
  place.replaceChildren();
  return place;
}

function tile(id, label, value, note, share) {
  const made = element('div', {className: 'tile', id: `tile-${id}`}, element('div', {className: 'label'}, label),
    element('div', {className: 'value'}, value), element('div', {className: 'note'}, note));
  if (share !== undefined) {
    const filled = element('div');
    filled.style.width = `${100 * Math.min(share, 1)}%`;
    made.append(element('div', {className: 'bar'}, filled));
  }
  return made;
}

function table(heads, lines) {
  const kind = i => (heads[i].startsWith('#') ? 'number' : 'text');
  const cells = (tag, line) => line.map((cell, i) => {
    const made = element(tag, {className: kind(i)});
    made.append(cell);
    return made;
  });
  return element('table', {},
    element('thead', {}, element('tr', {}, ...cells('th', heads.map(head => head.replace('#', ''))))),
    element('tbody', {}, ...lines.map(line => element('tr', {}, ...cells('td', line)))));
}

function stretchWords(width, what) {
  return width > 1 ? `Mean of every ${count(width)} steps; the band reaches from the least to the greatest ${what}.` : '';
}

function replicaLabels(axis) {
  return Array.from({length: axis.count}, (_, row) => count(row * axis.width));
}

// -- sections --

function showHeading(run) {
  document.title = `${run.name} · troupe run`;
  document.getElementById('name').textContent = run.name;
  document.getElementById('setup').textContent = run.setup;
  document.getElementById('written').textContent = `${run.is_live ? 'as of' : 'written'} ${run.written}`;
  const state = document.getElementById('state');
  state.textContent = run.state;
  state.className = `state ${run.is_lost ? 'lost' : run.is_live ? 'live' : ''}`;
}

function showTiles(run) {
  const {progress, loss, evaluations, step_seconds: times} = run;
  const [accepted, stale, cancelled] = run.gradients;
  const all = accepted + stale + cancelled;
  const planned = progress.step_count;
  const late = run.replicas.filter(replica => replica.health !== 'well');
  const worst = late.find(replica => replica.health === 'silent')
    || late.sort((one, other) => (other.slow_down || 0) - (one.slow_down || 0))[0];
  const left = run.is_live && planned ? (planned - progress.step) / progress.steps_per_second : 0;
  const took = duration(progress.seconds) + (left > 0 ? `, ${duration(left)} left` : '');
  document.getElementById('tiles').replaceChildren(
    tile('steps', 'Steps', count(progress.step), planned ? `of ${count(planned)}, in ${took}` : `in ${took}`,
      planned ? progress.step / planned : undefined),
    tile('loss', loss.unit ? `Loss, ${loss.unit}` : 'Loss', quantity(loss.last),
      evaluations.points.length ? `held out: ${quantity(evaluations.last)} ${evaluations.measure}` : 'of the last step'),
    tile('step_time', 'Mean step', duration(times.mean),
      `median ${duration(times.p50)}, p90 ${duration(times.p90)}, longest ${duration(times.longest)}`),
    tile('speed', 'Speed', `${quantity(progress.steps_per_second)} steps/s`,
      progress.examples ? `${quantity(progress.examples_per_second)} examples/s` : ''),
    tile('gradients', 'Gradients used', percent(accepted / all),
      `${count(accepted)} accepted, ${count(stale)} late, ${count(cancelled)} cancelled`),
    tile('health', 'Replicas', progress.live ? `${count(progress.live)} live` : `${count(run.replica_count)} seen`,
      `${count(progress.needed)} needed; ${worst ? `replica ${worst.replica} ${worst.words}` : 'all of them keep up'}`));
}

function showLoss(run) {
  const {loss, evaluations} = run;
  const place = section('loss', loss.points.length ? stretchWords(loss.width, 'loss') : '');
  const curves = [];
  const unit = loss.unit ? ` ${loss.unit}` : '';
  if (loss.points.length)
    curves.push({...loss, name: `training${loss.unit ? `, ${loss.unit}` : ''}`, paint: colour('main'), band: colour('band'),
      tell: ([step, mean]) => `step ${count(step)}: ${quantity(mean)}${unit}`});
  if (evaluations.points.length)
    curves.push({...evaluations, name: `held out, ${evaluations.measure}`, paint: colour('other'), dots: evaluations.points.length < 60,
      tell: ([step, mean]) => `held out at step ${count(step)}: ${quantity(mean)}`});
  if (!curves.length) return place.append(none('This run reports no loss.'));
  place.append(legend(curves.map(curve => [curve.name, curve.paint])));
  const values = curves.flatMap(curve => curve.points.map(point => point[1]));
  const [least, greatest] = [Math.min(...values), Math.max(...values)];
  const margin = 0.06 * (greatest - least || Math.abs(greatest) || 1);
  lineChart(place, {curves, label: 'Loss by step', low: least >= 0 ? Math.max(0, least - margin) : least - margin,
    top: greatest + margin, last: run.progress.step});
}

function showStepTime(run) {
  const times = run.step_seconds;
  const top = times.longest < 3 * times.p99 ? 1.05 * times.longest : 2 * times.p99;
  const beyond = times.longest > top ? ` The longest took ${duration(times.longest)}, beyond the edge.` : '';
  const place = section('step_seconds', stretchWords(times.width, 'step') + beyond);
  place.append(legend([[`mean ${duration(times.mean)}, p99 ${duration(times.p99)}`, colour('main')]]));
  lineChart(place, {curves: [{...times, paint: colour('main'), band: colour('band'),
    tell: ([step, mean, least, greatest]) => `step ${count(step)}: ${duration(mean)}`
      + (times.width > 1 ? `\n${duration(least)} to ${duration(greatest)}` : '')}],
    label: 'Step time by step', low: 0, top, unit: timeUnit(top), last: run.progress.step});
}

function showSlowDowns(run) {
  const {rows, columns, cells} = run.slow_downs;
  const grouped = rows.width > 1 ? ` A row stands for ${rows.width} replicas, of which it shows the slowest.` : '';
  const place = section('slow_downs', 'What a gradient took, over the median of its step: 1 is like the others.' + grouped);
  if (!columns.count) return place.append(none('The gradients of this run took no time.'));
  const most = Math.max(2, ...cells.flat().map(hundredths => hundredths / 100));
  const scale = ramp('heat');
  const first = run.progress.first_step + 1;
  place.append(rampLegend('as the others ', ` ${quantity(most)} times as long`, 'heat'));
  heatMap(place, {rows: rows.count, columns: columns.count, label: 'Slow-downs by replica and step',
    rowLabels: replicaLabels(rows), columnTitle: 'step',
    marks: ticks(first, run.progress.step, Math.max(2, widthOf(place) / 110), true).map(step => [(step - first) / columns.width, count(step)]),
    paint: (row, column) => cells[row][column] && scale(Math.log2(Math.max(cells[row][column] / 100, 1)) / Math.log2(most)),
    tell: (row, column) => {
      const from = first + column * columns.width;
      const steps = columns.width > 1 ? `steps ${count(from)} to ${count(Math.min(from + columns.width - 1, run.progress.step))}` : `step ${count(from)}`;
      const value = cells[row][column];
      return `${cellName('replica', 'replicas', rows, row, lastReplica(run))}, ${steps}\n`
        + (value ? `${quantity(value / 100)} times as long as the others` : 'no gradient');
    }});
}

// Rows of a map can stand for replicas that there are not.
function lastReplica(run) {
  return Math.max(run.replica_count - 1, ...run.replicas.map(replica => replica.replica));
}

function showArrivals(run) {
  const {rows, columns, cells} = run.arrivals;
  const place = section('arrivals', 'How often a replica\'s gradient was the first, the second, ... that a step took, and how often it came too late.');
  const late = run.rows.gradients.map(([, stale, cancelled]) => stale + cancelled);
  const all = cells.map((line, row) => line.reduce((sum, cell) => sum + cell, late[row]));
  const value = (row, column) => (column < columns.count ? cells[row][column] : late[row]);
  const name = column => (column === columns.count ? 'late' : columns.width > 1
    ? `${count(column * columns.width + 1)}–${count((column + 1) * columns.width)}` : ordinal(column + 1));
  const most = Math.max(...cells.flatMap((line, row) => [...line, late[row]].map(cell => cell / (all[row] || 1))));
  const scale = ramp('count');
  place.append(rampLegend('never ', ` ${percent(most, 0)} of its gradients`, 'count'));
  heatMap(place, {rows: rows.count, columns: columns.count + 1, gapBefore: columns.count, label: 'Arrivals by replica and place',
    rowLabels: replicaLabels(rows), columnLabels: Array.from({length: columns.count + 1}, (_, i) => name(i)),
    columnTitle: 'place among the gradients of a step',
    paint: (row, column) => value(row, column) && scale(value(row, column) / all[row] / most),
    text: (row, column) => (value(row, column) ? percent(value(row, column) / all[row], 0) : ''),
    tell: (row, column) => `${cellName('replica', 'replicas', rows, row, lastReplica(run))}: ${name(column)}\n`
      + `${count(value(row, column))} of ${plural(all[row], 'gradient')}`});
}

function showWaits(run) {
  const {rows, columns, cells} = run.waits;
  const place = section('waits', 'How long the replica of a row waited, from its own gradient until that of the column\'s completed the step.');
  const most = Math.max(0, ...cells.flat());
  if (!most) return place.append(none('No replica waited for another one.'));
  const scale = ramp('heat');
  place.append(rampLegend('not at all ', ` ${duration(most)}`, 'heat'));
  heatMap(place, {rows: rows.count, columns: columns.count, label: 'Which replica waits for which',
    rowLabels: replicaLabels(rows), columnLabels: replicaLabels(columns), columnTitle: 'replica that completed the step',
    paint: (row, column) => cells[row][column] && scale(Math.sqrt(cells[row][column] / most)),
    text: (row, column) => (cells[row][column] ? duration(cells[row][column]) : ''),
    tell: (row, column) => `${cellName('replica', 'replicas', rows, row, lastReplica(run))} waited `
      + `${duration(cells[row][column])}\nfor ${cellName('replica', 'replicas', columns, column, lastReplica(run))}`});
}

function showColumns(run, id, about, values, names, paints, format, unit) {
  const place = section(id, about);
  const axis = {width: run.rows.width, count: values.length};
  place.append(legend(names.map((name, kind) => [name, colour(paints[kind])])));
  stackedColumns(place, {values, names, paints: paints.map(colour), format, unit, label: about, title: 'replica',
    columnLabels: replicaLabels(axis), columnName: i => cellName('replica', 'replicas', axis, i, lastReplica(run))});
}

function showReplicas(run) {
  const shown = run.replicas.length;
  const place = section('replicas', shown < run.replica_count
    ? `The ${shown} of ${count(run.replica_count)} that most should be looked at.` : 'What each of them did, and how it does.');
  place.append(table(['#replica', 'health', '#used', '#late', '#cancelled', '#computing', '#waiting', '#held others up'],
    run.replicas.map(replica => [count(replica.replica),
      element('span', {className: `mark ${replica.health}`}, replica.words),
      ...replica.gradients.map(count),
      duration(replica.computing), duration(replica.waiting), duration(replica.held_up)])));
}

function changeWords(answer, now) {
  if (answer.stalled) return `stalls: ${answer.stalled}`;
  if (answer.is_lower_bound) return `${duration(answer.mean)} at least`;
  const share = value => value / now - 1;
  if (answer.low === null || answer.low === answer.high) return answer.mean === now ? 'no difference' : signedPercent(share(answer.mean));
  if (share(answer.low) <= 0 && share(answer.high) >= 0) return 'no difference to be told from chance';
  return `${signedPercent(share(answer.mean))} (${signedPercent(share(answer.low))} to ${signedPercent(share(answer.high))})`;
}

function showWhatIf(run) {
  const what = run.what_if;
  const place = section('what_if', what && what.answers.length
    ? `Steps ${count(what.first_step)} to ${count(what.last_step)}, replayed with one thing changed; in brackets where another run lies in 95 of 100 cases.` : '');
  if (!what) return place.append(none('The ledger is being replayed.'));
  if (!what.answers.length) return place.append(none(what.why_none || 'Nothing to change: no replica is slow, and a step waits for all.'));
  const finite = what.answers.filter(answer => answer.mean !== null);
  const reach = Math.max(0.05, ...finite.flatMap(answer => [answer.low, answer.mean, answer.high])
    .filter(value => value !== null).map(value => Math.abs(value / what.mean - 1)));
  const line = answer => [element('span', {title: `troupe sim replay ${answer.option}`}, answer.change), duration(answer.mean),
    answer.mean === null || answer.stalled ? '' : intervalMark(answer.low === null ? null : answer.low / what.mean - 1, answer.mean / what.mean - 1,
      answer.high === null ? null : answer.high / what.mean - 1, reach),
    changeWords(answer, what.mean), quantity(answer.needed / answer.mean)];
  place.append(table(['change', '#a step takes', `±${percent(reach, 0)}`, 'against the run', '#gradients used a second'],
    [['as it was', duration(what.mean), '', '', quantity(what.needed / what.mean)], ...what.answers.map(line)]));
}

function showNotices(run) {
  const place = section('notices', '');
  if (!run.notices.length) return place.append(none('Nothing was said beside the progress.'));
  place.append(table(['#step', 'what was said'], run.notices.map(([step, text]) => [count(step), text]).reverse()));
}

// -- all of it, now and whenever the window or the run changes --

let run = JSON.parse(document.getElementById('run').textContent);

function showAll() {
  const hasSteps = run.progress.steps > 0;
  showHeading(run);
  document.getElementById('no_step').hidden = hasSteps;
  document.querySelector('main').hidden = !hasSteps;
  if (!hasSteps) return;
  showTiles(run);
  showLoss(run);
  showStepTime(run);
  showSlowDowns(run);
  showArrivals(run);
  showWaits(run);
  showColumns(run, 'gradients', 'What became of each replica\'s gradients.', run.rows.gradients,
    ['used', 'late', 'cancelled'], ['used', 'late', 'cut'], count);
  showColumns(run, 'times', 'What each replica\'s time went to.', run.rows.seconds,
    ['gradients that were used', 'gradients that were not', 'waiting for a token'], ['used', 'late', 'waiting'],
    duration, timeUnit(Math.max(...run.rows.seconds.map(([used, wasted, waiting]) => used + wasted + waiting))));
  showReplicas(run);
  showWhatIf(run);
  showNotices(run);
}

showAll();

let shownWidth = innerWidth;
addEventListener('resize', () => {
  if (innerWidth !== shownWidth) requestAnimationFrame(showAll);
  shownWidth = innerWidth;
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', showAll);

// The job that serves this page tells what is new, until it is over. A browser would ask a job that is gone for ever.
const news = run.is_live ? new EventSource(`events${location.search}`) : null;
if (news) {
  news.onmessage = event => {
    run = JSON.parse(event.data);
    if (!run.is_live) news.close();
    showAll();
  };
  news.onerror = () => {
    const why = news.readyState === EventSource.CLOSED // as after an answer that is not 200
      ? 'the job tells its news to too many others; load this page again later' : 'the job does not answer';
    news.close();
    run = {...run, is_lost: true, state: `${run.state} when it was seen last: ${why}`};
    showHeading(run);
  };
}
