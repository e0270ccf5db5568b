// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them.

function count(number) {
  return Math.round(number).toLocaleString('en');
}

// Three digits, or all of those before the point.
function quantity(number) {
  if (number === null || !isFinite(number)) return '–';
  if (Math.abs(number) >= 1000) return count(number);
  return String(parseFloat(number.toPrecision(3)));
}

function duration(seconds) {
  if (seconds === null || !isFinite(seconds)) return '–';
  if (seconds === 0) return '0 s';
  if (seconds < 1e-6) return `${quantity(seconds * 1e9)} ns`;
  if (seconds < 1e-3) return `${quantity(seconds * 1e6)} µs`;
  if (seconds < 1) return `${quantity(seconds * 1e3)} ms`;
  if (seconds < 120) return `${quantity(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds % 3600 / 60)} min`;
}

// The unit that times up to `longest` are read in. An axis without any time goes up to one second.
function timeUnit(longest) {
  if (longest === 0) return [1, 's'];
  return [[7200, 3600, 'h'], [120, 60, 'min'], [1, 1, 's'], [1e-3, 1e-3, 'ms'], [1e-6, 1e-6, 'µs'], [0, 1e-9, 'ns']]
    .find(([from]) => longest >= from).slice(1);
}

function percent(share, digits = 1) {
  return `${(100 * share).toFixed(digits)} %`;
}

function signedPercent(share) {
  const text = percent(Math.abs(share), Math.abs(share) < 0.1 ? 1 : 0);
  return share < 0 ? `−${text}` : `+${text}`;
}

function ordinal(number) {
  const tens = number % 100;
  const ending = tens >= 11 && tens <= 13 ? 'th' : ['th', 'st', 'nd', 'rd'][number % 10] || 'th';
  return `${count(number)}${ending}`;
}

// A cell of an axis that stands for several numbers: "replicas 8 to 15".
function cellName(one, many, axis, index, last = Infinity) {
  const first = index * axis.width;
  const end = Math.min(first + axis.width - 1, last);
  return end > first ? `${many} ${count(first)} to ${count(end)}` : `${one} ${count(first)}`;
}

function plural(number, one, many = `${one}s`) {
  return `${count(number)} ${number === 1 ? one : many}`;
}
