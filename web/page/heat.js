// Temperatures: a table with targets to set, and the chart above it.

import { h, card, setText, attempt, announce } from './dom.js';
import { sensorName, fixed } from './format.js';
import { Chart } from './chart.js';

/** Number of colours for curves in the style sheet. */
const COLOURS = 6;

export function temperatures({ printer }) {
  const chart = new Chart(printer);
  const body = h('tbody');
  const element = card('Temperatures', { class: 'heat' }, chart.element,
    h('div', { class: 'scroll' }, h('table', { class: 'sensors' },
      h('thead', {}, h('tr', {}, ['Sensor', 'Now', 'Target'].map((title) => h('th', { scope: 'col' }, title)))), body)));
  let rows = [];
  let shownFor = '';

  function build() {
    rows = printer.sensors.map((name, index) => row(printer, name, index % COLOURS));
    body.replaceChildren(...rows.map(({ element: line }) => line));
  }

  function update() {
    const key = printer.sensors.join('\n');
    if (key !== shownFor) { shownFor = key; build(); }
    for (const one of rows) one.update();
    chart.draw();
  }
  return { element, update };
}

function row(printer, name, colour) {
  const label = sensorName(name);
  const now = h('td', { class: 'number now' });
  const isHeater = printer.heaters.includes(name);
  const target = h('td');
  let update = () => {};
  if (isHeater) {
    const input = h('input', { type: 'number', min: '0', max: '400', step: '1', inputmode: 'numeric', 'aria-label': `Target of ${label} in °C` });
    const set = h('button', { 'aria-label': `Set target of ${label}` }, 'Set');
    const off = h('button', { type: 'button', class: 'quiet', 'aria-label': `Switch ${label} off`, onclick: () => send(0) }, 'Off');
    const send = async (value) => {
      await attempt(async () => { await printer.setTarget(name, value); announce(`Target of ${label}: ${value} °C`); });
      input.blur();
      input.dataset.changed = '';
    };
    input.addEventListener('input', () => { input.dataset.changed = 'yes'; });
    target.append(h('form', { class: 'target', onsubmit: (event) => { event.preventDefault(); send(Number(input.value)); } }, input, h('span', { class: 'unit', 'aria-hidden': 'true' }, '°C'), set, off));
    update = () => {
      const value = String(Math.round(printer.status[name]?.target ?? 0));
      if (input.dataset.changed !== 'yes' && document.activeElement !== input && input.value !== value) input.value = value;
      const isOn = value !== '0';
      line.dataset.on = isOn;
      off.disabled = !isOn;
    };
  }
  const line = h('tr', {}, h('th', { scope: 'row' }, h('span', { class: `swatch c${colour}`, 'aria-hidden': 'true' }), label), now, target);
  return { element: line, update: () => { setText(now, `${fixed(printer.status[name]?.temperature, 1)} °C`); update(); } };
}

export { COLOURS };
