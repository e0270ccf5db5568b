// SPDX-License-Identifier: Apache-2.0
// Curves, maps and columns, drawn to the width that there is.

const letterWidth = 7; // of a label, about

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  Object.assign(made, properties);
  made.append(...children);
  return made;
}

function drawn(tag, attributes = {}, text = '') {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== '') made.textContent = text;
  return made;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// A function from 0 ... 1 to the colours of a ramp.
function ramp(name) {
  const stops = colour(name).split(',').map(text => text.trim().match(/\w\w/g).map(two => parseInt(two, 16)));
  return share => {
    const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    const mixed = stops[low].map((part, i) => Math.round(part + (stops[low + 1][i] - part) * (place - low)));
    return `rgb(${mixed.join(',')})`;
  };
}

// Light or dark letters, whichever can be read on a colour.
function lettersOn(background) {
  const [red, green, blue] = background.match(/\d+/g).map(Number);
  return 0.3 * red + 0.59 * green + 0.11 * blue > 140 ? '#1c2530' : '#ffffff';
}

// Round numbers from `low` to `high`, about `wanted` of them; whole ones, if asked for.
function ticks(low, high, wanted, whole = false) {
  const span = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(span / wanted));
  let step = [1, 2, 5, 10].map(digit => digit * power).find(one => span / one <= wanted);
  if (whole) step = Math.max(1, step);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + span * 1e-9; ++i)
    found.push(parseFloat((i * step).toPrecision(12)));
  return found;
}

// A window that is being opened has no room yet, and is drawn anew as it gets some.
function widthOf(place) {
  return Math.max(200, place.clientWidth);
}

// -- the tip that follows the pointer --

const tip = document.getElementById('tip');

function showTip(event, text) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const {offsetWidth: width, offsetHeight: height} = tip;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18}px`;
}

// `tell` makes a text of a place in the target, or nothing.
function withTip(target, tell) {
  target.addEventListener('pointermove', event => {
    const box = target.getBoundingClientRect();
    showTip(event, tell(event.clientX - box.left, event.clientY - box.top));
  });
  target.addEventListener('pointerleave', event => showTip(event, ''));
}

// -- what every chart has --

function legend(entries) {
  return element('div', {className: 'legend'}, ...entries.map(([name, paint]) => {
    const swatch = element('i');
    swatch.style.background = paint;
    return element('span', {}, swatch, name);
  }));
}

// The text of a place below an axis; it ends where the picture does.
function labelBelow(x, y, right, text) {
  const half = text.length * letterWidth / 2;
  return drawn('text', {x: Math.min(x, right - half), y, 'text-anchor': 'middle'}, text);
}

function rampLegend(low, high, name) {
  const bar = element('span', {className: 'ramp'});
  bar.style.background = `linear-gradient(to right, ${colour(name)})`;
  return element('div', {className: 'legend'}, element('span', {}, low, bar, high));
}

function none(text) {
  return element('p', {className: 'none'}, text);
}

// Which labels of an axis have room, the first one always.
function shownLabels(labels, room) {
  const longest = Math.max(...labels.map(label => label.length), 1);
  const every = Math.max(1, Math.ceil((longest * letterWidth + 10) / room));
  return labels.map((label, i) => (i % every === 0 ? label : ''));
}

// Round values in a unit, [its size, its name], and how they are written.
function valueAxis(low, top, wanted, [size, name], whole = false) {
  const round = ticks(low / size, top / size, wanted, whole);
  return {yTicks: round.map(tick => tick * size), yTexts: round.map(tick => `${tick.toLocaleString('en', {maximumSignificantDigits: 12})}${name && ` ${name}`}`)};
}

// -- curves over steps --

// `curves`: {name, points: [first step, mean, least, greatest], width, paint, band, dots}.
function lineChart(place, {curves, label, low, top, unit = [1, ''], last}) {
  const width = widthOf(place);
  const height = Math.round(Math.min(Math.max(0.4 * width, 190), 300));
  const {yTicks, yTexts} = valueAxis(low, top, 5, unit);
  const left = Math.max(...yTexts.map(text => text.length)) * letterWidth + 12;
  const box = {left, right: width - 14, top: 10, bottom: height - 40};
  const first = Math.min(...curves.map(curve => curve.points[0][0]));
  const x = step => box.left + (box.right - box.left) * (last > first ? (step - first) / (last - first) : 0.5);
  const y = value => box.bottom - (box.bottom - box.top) * (value - low) / (top - low || 1);
  const svg = drawn('svg', {width, height, role: 'img', 'aria-label': label});
  const clip = `clip-${label.replace(/\W/g, '')}`;
  svg.append(drawn('clipPath', {id: clip}));
  svg.lastChild.append(drawn('rect', {x: box.left, y: box.top - 4, width: box.right - box.left + 8, height: box.bottom - box.top + 5}));
  yTicks.forEach((tick, i) => {
    svg.append(drawn('line', {x1: box.left, x2: box.right, y1: y(tick), y2: y(tick), stroke: colour('grid')}));
    svg.append(drawn('text', {x: box.left - 8, y: y(tick) + 4, 'text-anchor': 'end'}, yTexts[i]));
  });
  for (const tick of ticks(first, last, Math.max(2, (box.right - box.left) / 110), true))
    svg.append(labelBelow(x(tick), box.bottom + 18, width, count(tick)));
  svg.append(drawn('text', {x: (box.left + box.right) / 2, y: height - 4, 'text-anchor': 'middle'}, 'step'));
  const plot = drawn('g', {'clip-path': `url(#${clip})`});
  const middle = (curve, point) => Math.min(point[0] + (curve.width - 1) / 2, last);
  for (const curve of curves) {
    const at = curve.points.map(point => [x(middle(curve, point)), ...point.slice(1).map(y)]);
    if (curve.band && at.length > 1) {
      const upper = at.map(([px, , , greatest]) => `${px},${greatest}`);
      const lower = at.map(([px, , least]) => `${px},${least}`).reverse();
      plot.append(drawn('polygon', {points: [...upper, ...lower].join(' '), fill: curve.band}));
    }
    plot.append(drawn('polyline', {points: at.map(([px, py]) => `${px},${py}`).join(' '), fill: 'none',
      stroke: curve.paint, 'stroke-width': 1.6, 'stroke-linejoin': 'round'}));
    if (curve.dots || at.length === 1)
      for (const [px, py] of at) plot.append(drawn('circle', {cx: px, cy: py, r: 3, fill: curve.paint}));
  }
  const cursor = drawn('line', {y1: box.top, y2: box.bottom, stroke: colour('muted'), 'stroke-dasharray': '2 3', visibility: 'hidden'});
  svg.append(plot, cursor);
  withTip(svg, px => {
    cursor.setAttribute('visibility', px < box.left || px > box.right ? 'hidden' : 'visible');
    if (px < box.left || px > box.right) return '';
    const lines = curves.map(curve => {
      const near = curve.points.reduce((best, point) =>
        (Math.abs(x(middle(curve, point)) - px) < Math.abs(x(middle(curve, best)) - px) ? point : best));
      if (curve === curves[0]) {
        cursor.setAttribute('x1', x(middle(curve, near)));
        cursor.setAttribute('x2', x(middle(curve, near)));
      }
      return curve.tell(near);
    });
    return lines.join('\n');
  });
  svg.addEventListener('pointerleave', () => cursor.setAttribute('visibility', 'hidden'));
  place.append(svg);
}

// -- maps: a row for a replica, a cell for what it did --

// `paint(row, column)` gives a colour or nothing, `text` what stands in a cell that has room for it, `tell` the tip.
// `marks` are [column, text] below the map, instead of a label for each column.
function heatMap(place, {rows, columns, rowLabels, columnLabels, marks, columnTitle, label, paint, text, tell, gapBefore}) {
  const width = widthOf(place);
  const title = 18; // of the rows, on its side
  const left = title + Math.max(...rowLabels.map(name => name.length)) * letterWidth + 8;
  const gap = gapBefore === undefined ? 0 : 8;
  const cellWidth = Math.min((width - left - 2 - gap) / columns, 96);
  const cellHeight = Math.min(Math.max(320 / rows, 3), columns > 64 ? 26 : 34);
  const bottom = cellHeight * rows + 4;
  const height = Math.ceil(bottom + 38);
  const scale = devicePixelRatio || 1;
  const canvas = element('canvas', {width: width * scale, height: height * scale});
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', label);
  const pen = canvas.getContext('2d');
  pen.scale(scale, scale);
  const font = getComputedStyle(document.body).fontFamily;
  const seam = cellWidth > 12 && cellHeight > 8 ? 1.5 : 0;
  const edge = at => Math.round(at * scale) / scale; // cells meet at whole pixels
  const xOf = column => left + column * cellWidth + (gapBefore !== undefined && column >= gapBefore ? gap : 0);
  pen.textBaseline = 'middle';
  for (let row = 0; row < rows; ++row)
    for (let column = 0; column < columns; ++column) {
      const fill = paint(row, column) || colour('empty');
      const [x, y] = [edge(xOf(column)), edge(row * cellHeight)];
      pen.fillStyle = fill;
      pen.fillRect(x, y, edge(xOf(column) + cellWidth) - x - seam, edge((row + 1) * cellHeight) - y - seam);
      const words = text && cellHeight >= 16 ? text(row, column) : '';
      if (!words || words.length * letterWidth > cellWidth - 6) continue;
      pen.font = `12px ${font}`;
      pen.fillStyle = fill.startsWith('rgb') ? lettersOn(fill) : colour('muted');
      pen.textAlign = 'center';
      pen.fillText(words, x + (cellWidth - seam) / 2, y + (cellHeight - seam) / 2 + 0.5);
    }
  pen.fillStyle = colour('muted');
  pen.font = `12px ${font}`;
  pen.textAlign = 'right';
  const every = Math.ceil(15 / cellHeight);
  for (let row = 0; row < rows; row += every)
    pen.fillText(rowLabels[row], left - 8, row * cellHeight + Math.max(cellHeight, 12) / 2);
  pen.textAlign = 'center';
  const below = marks || shownLabels(columnLabels, cellWidth).map((name, column) => [column + 0.5, name]);
  for (const [column, name] of below) {
    const half = name.length * letterWidth / 2;
    const x = xOf(Math.floor(column)) + column % 1 * cellWidth;
    if (name) pen.fillText(name, Math.min(Math.max(x, left + half - 8), width - half), bottom + 9);
  }
  const right = xOf(columns - 1) + cellWidth;
  pen.fillText(columnTitle, Math.max((left + right) / 2, left + columnTitle.length * letterWidth / 2), bottom + 27);
  pen.rotate(-Math.PI / 2);
  pen.fillText('replica', -Math.max(bottom / 2, 24), title / 2 - 2);
  withTip(canvas, (x, y) => {
    const row = Math.floor(y / cellHeight);
    let column = Math.floor((x - left) / cellWidth);
    if (gapBefore !== undefined && column >= gapBefore) column = Math.floor((x - left - gap) / cellWidth);
    return row >= 0 && row < rows && column >= 0 && column < columns ? tell(row, column) : '';
  });
  place.append(canvas);
}

// -- columns: a replica's total, in parts that lie on each other --

function stackedColumns(place, {values, paints, names, columnName, columnLabels, title, label, format, unit = [1, '']}) {
  const width = widthOf(place);
  const height = Math.round(Math.min(Math.max(0.5 * width, 190), 280));
  const top = Math.max(...values.map(parts => parts.reduce((sum, part) => sum + part, 0))) || 1;
  const {yTicks, yTexts} = valueAxis(0, top, 4, unit, !unit[1]);
  const left = Math.max(...yTexts.map(text => text.length)) * letterWidth + 12;
  const box = {left, right: width - 4, top: 10, bottom: height - 40};
  const room = Math.min((box.right - box.left) / values.length, 90);
  const bar = room > 4 ? room * 0.78 : room;
  const y = value => box.bottom - (box.bottom - box.top) * value / top;
  const svg = drawn('svg', {width, height, role: 'img', 'aria-label': label});
  yTicks.forEach((tick, i) => {
    svg.append(drawn('line', {x1: box.left, x2: box.right, y1: y(tick), y2: y(tick), stroke: colour('grid')}));
    svg.append(drawn('text', {x: box.left - 8, y: y(tick) + 4, 'text-anchor': 'end'}, yTexts[i]));
  });
  const labels = shownLabels(columnLabels, room);
  values.forEach((parts, i) => {
    const x = box.left + i * room + (room - bar) / 2;
    let sum = 0;
    parts.forEach((part, kind) => {
      if (part > 0) svg.append(drawn('rect', {x, width: bar, y: y(sum + part), height: y(sum) - y(sum + part), fill: paints[kind]}));
      sum += part;
    });
    if (labels[i]) svg.append(labelBelow(x + bar / 2, box.bottom + 18, width, labels[i]));
  });
  svg.append(drawn('text', {x: box.left + values.length * room / 2, y: height - 4, 'text-anchor': 'middle'}, title));
  withTip(svg, x => {
    const i = Math.floor((x - box.left) / room);
    if (i < 0 || i >= values.length) return '';
    return [columnName(i), ...values[i].map((part, kind) => `${names[kind]}: ${format(part)}`)].join('\n');
  });
  place.append(svg);
}

// -- a change and how sure it is: a dot and its interval about "no change" --

function intervalMark(low, mean, high, reach) {
  const [width, height] = [150, 18];
  const x = share => width / 2 + (width / 2 - 6) * Math.max(-1, Math.min(1, share / reach));
  const svg = drawn('svg', {width, height, 'aria-hidden': true});
  svg.append(drawn('line', {x1: x(0), x2: x(0), y1: 0, y2: height, stroke: colour('muted'), opacity: 0.5}));
  if (low !== null)
    svg.append(drawn('line', {x1: x(low), x2: x(high), y1: height / 2, y2: height / 2, stroke: colour('main'), 'stroke-width': 3,
      'stroke-linecap': 'round', opacity: 0.45}));
  svg.append(drawn('circle', {cx: x(mean), cy: height / 2, r: 4, fill: colour('main')}));
  return svg;
}
