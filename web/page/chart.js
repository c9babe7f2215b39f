// The last twenty minutes of all temperatures, drawn on a canvas. The table below it says the same in words.

import { h } from './dom.js';
import { HISTORY_SECONDS } from './printer.js';
import { sensorName, fixed } from './format.js';

const COLOURS = 6;
const LEFT = 38;
const BOTTOM = 22;
const TOP = 8;

export class Chart {
  #printer;
  #canvas = h('canvas', { class: 'chart', role: 'img', 'aria-label': 'Temperatures of the last 20 minutes' });
  #tip = h('div', { class: 'tip', hidden: true, 'aria-hidden': 'true' });
  #pointer = null;
  #styles = null;
  #drawnAt = 0;

  constructor(printer) {
    this.#printer = printer;
    this.element = h('div', { class: 'chart-box' }, this.#canvas, this.#tip);
    this.#canvas.addEventListener('pointermove', (event) => { this.#pointer = event.offsetX; this.draw(true); });
    this.#canvas.addEventListener('pointerleave', () => { this.#pointer = null; this.draw(true); });
    new ResizeObserver(() => this.draw(true)).observe(this.element);
    addEventListener('themechange', () => { this.#styles = null; this.draw(true); });
  }

  /** At most twice a second, unless something else than the temperatures changed. */
  draw(atOnce = false) {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    if (!width || (!atOnce && performance.now() - this.#drawnAt < 450)) return;
    this.#drawnAt = performance.now();
    const scale = devicePixelRatio || 1;
    if (this.#canvas.width !== Math.round(width * scale) || this.#canvas.height !== Math.round(height * scale)) {
      this.#canvas.width = Math.round(width * scale);
      this.#canvas.height = Math.round(height * scale);
    }
    const context = this.#canvas.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const highest = this.#highest();
    const plot = {
      x: (age) => width - 6 - (age / (HISTORY_SECONDS - 1)) * (width - LEFT - 6),
      y: (value) => height - BOTTOM - (value / highest) * (height - BOTTOM - TOP),
    };
    this.#grid(context, plot, width, highest);
    this.#printer.sensors.forEach((name, index) => this.#curve(context, plot, name, this.#style.curves[index % COLOURS]));
    this.#hover(context, plot, width, height);
  }

  get #style() {
    if (!this.#styles) {
      const computed = getComputedStyle(document.documentElement);
      const value = (name) => computed.getPropertyValue(name).trim();
      this.#styles = { line: value('--line'), text: value('--muted'), curves: Array.from({ length: COLOURS }, (_, index) => value(`--c${index}`)) };
    }
    return this.#styles;
  }

  #highest() {
    let highest = 60;
    for (const name of this.#printer.sensors) {
      const { temperatures = [], targets = [] } = this.#printer.past[name] ?? {};
      for (const value of temperatures) if (value > highest) highest = value;
      for (const value of targets) if (value > highest) highest = value;
    }
    const step = highest > 160 ? 50 : 20;
    return Math.ceil((highest * 1.04) / step) * step;
  }

  #grid(context, plot, width, highest) {
    const step = highest > 160 ? 50 : 20;
    context.lineWidth = 1;
    context.strokeStyle = this.#style.line;
    context.fillStyle = this.#style.text;
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.textAlign = 'right';
    for (let value = 0; value <= highest; value += step) {
      const y = Math.round(plot.y(value)) + 0.5;
      context.beginPath();
      context.moveTo(LEFT, y);
      context.lineTo(width - 6, y);
      context.stroke();
      context.fillText(`${value}°`, LEFT - 8, y);
    }
    context.textBaseline = 'alphabetic';
    for (const minutes of width < 420 ? [20, 10, 0] : [20, 15, 10, 5, 0]) {
      context.textAlign = minutes === 0 ? 'right' : minutes === 20 ? 'left' : 'center';
      const x = minutes === 20 ? LEFT : plot.x(minutes * 60);
      context.fillText(minutes === 0 ? 'now' : `−${minutes} min`, x, plot.y(0) + 17);
    }
  }

  #curve(context, plot, name, colour) {
    const { temperatures = [], targets = [] } = this.#printer.past[name] ?? {};
    context.strokeStyle = colour;
    const line = (values, skipZero) => {
      context.beginPath();
      let isDown = false;
      values.forEach((value, index) => {
        if (skipZero && !value) { isDown = false; return; }
        const x = plot.x(values.length - 1 - index);
        if (isDown) context.lineTo(x, plot.y(value)); else context.moveTo(x, plot.y(value));
        isDown = true;
      });
      context.stroke();
    };
    context.lineWidth = 1.25;
    context.setLineDash([4, 4]);
    context.globalAlpha = 0.75;
    line(targets, true);
    context.setLineDash([]);
    context.globalAlpha = 1;
    context.lineWidth = 2;
    context.lineJoin = 'round';
    line(temperatures, false);
  }

  #hover(context, plot, width, height) {
    this.#tip.hidden = this.#pointer === null || this.#pointer < LEFT;
    if (this.#tip.hidden) return;
    const age = Math.max(0, Math.round(((width - 6 - this.#pointer) / (width - LEFT - 6)) * (HISTORY_SECONDS - 1)));
    context.strokeStyle = this.#style.text;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(plot.x(age), TOP);
    context.lineTo(plot.x(age), height - BOTTOM);
    context.stroke();
    const lines = this.#printer.sensors.map((name) => {
      const values = this.#printer.past[name]?.temperatures ?? [];
      const value = values[values.length - 1 - age];
      return value === undefined ? null : h('div', {}, `${sensorName(name)} ${fixed(value, 1)} °C`);
    }).filter(Boolean);
    this.#tip.hidden = lines.length === 0;
    this.#tip.replaceChildren(h('div', { class: 'muted' }, age < 1 ? 'now' : `${Math.floor(age / 60)} min ${age % 60} s ago`), ...lines);
    this.#tip.style.setProperty('--x', `${Math.min(this.#pointer, width - 160)}px`);
  }
}
