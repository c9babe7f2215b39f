// The first view: the print, temperatures, and the machine.

import { h, button, icon, card, setText, attempt, confirmed } from './dom.js';
import { duration, clock, metres, fixed, baseName, bytes } from './format.js';
import { temperatures } from './heat.js';
import { uploadCard } from './upload.js';
import { thumbnail } from './files.js';

/** The view. */
export function dashboard(app) {
  const parts = [printCard(app), temperatures(app), machineCard(app), uploadCard(app)];
  const [print, heat, machine, upload] = parts.map((part) => part.element);
  return {
    element: h('div', { class: 'dashboard' }, h('div', { class: 'column' }, print, upload), h('div', { class: 'column' }, heat, machine)),
    update: () => parts.forEach((part) => part.update?.()),
  };
}

function printCard(app) {
  const { printer, connection } = app;
  const picture = h('div', { class: 'picture' }, icon('cube'));
  const title = h('p', { class: 'file-name' });
  const detail = h('p', { class: 'muted' });
  const bar = h('progress', { max: '100', value: '0', 'aria-label': 'Progress of the print' });
  const percent = h('span', { class: 'percent' });
  const fact = (name) => { const value = h('dd', {}, '–'); return { row: h('div', {}, h('dt', {}, name), value), value }; };
  const facts = { left: fact('Time left'), end: fact('Done at'), spent: fact('Printing for'), layer: fact('Layer'), filament: fact('Filament'), speed: fact('Speed') };
  const list = h('dl', { class: 'facts' }, Object.values(facts).map(({ row }) => row));
  const control = (method) => async (event) => {
    const pressed = event.currentTarget;
    pressed.disabled = true;
    await attempt(() => connection.call(`printer.print.${method}`));
    pressed.disabled = false;
  };
  const pause = button('pause', 'Pause', control('pause'), { class: 'primary' });
  const resume = button('play', 'Resume', control('resume'), { class: 'primary' });
  const cancel = button('cancel', 'Cancel', async () => {
    if (await confirmed(`Cancel the print of ${baseName(printer.status.print_stats.filename)}?`, 'Cancel the print')) {
      await attempt(() => connection.call('printer.print.cancel'));
    }
  });
  const again = button('play', 'Print again', () => attempt(() => connection.call('printer.print.start', { filename: printer.status.print_stats.filename })), { class: 'primary' });
  const choose = button('folder', 'Choose a file', () => app.go('files'));
  const running = h('div', { class: 'running' }, h('div', { class: 'progress-row' }, bar, percent), list);
  const element = card('Print', { class: 'print' },
    h('div', { class: 'print-head' }, picture, h('div', { class: 'grow' }, title, detail)),
    running, h('div', { class: 'row' }, pause, resume, cancel, again, choose));

  printer.addEventListener('file', () => thumbnail(app, picture, printer.file));

  function update() {
    const stats = printer.status.print_stats ?? {};
    const name = stats.filename ?? '';
    const { isPrinting, job } = printer;
    const isReady = printer.state === 'ready';
    setText(title, name ? baseName(name) : 'Nothing is being printed');
    setText(detail, note(job, name, stats, printer.file));
    running.hidden = !isPrinting;
    pause.hidden = job !== 'printing';
    resume.hidden = job !== 'paused';
    cancel.hidden = !isPrinting;
    again.hidden = isPrinting || !name;
    choose.hidden = isPrinting;
    for (const one of [again, resume, pause, cancel]) if (!isReady) one.disabled = true; else if (one.matches('[disabled]') && !one.matches(':active')) one.disabled = false;
    if (!isPrinting) return;
    const done = printer.progress * 100;
    bar.value = done;
    setText(percent, `${Math.floor(done)} %`);
    const left = printer.secondsLeft;
    setText(facts.left.value, duration(left));
    setText(facts.end.value, left === null ? '–' : clock(new Date(Date.now() + left * 1000)));
    setText(facts.spent.value, duration(stats.print_duration));
    const { current_layer: layer, total_layer: layers } = stats.info ?? {};
    setText(facts.layer.value, layer ? `${layer} of ${layers ?? printer.file?.layer_count ?? '?'}` : '–');
    setText(facts.filament.value, metres(stats.filament_used));
    setText(facts.speed.value, `${Math.round((printer.status.gcode_move?.speed_factor ?? 1) * 100)} %`);
  }
  return { element, update };
}

function note(job, name, stats, file) {
  if (job === 'error') return stats.message || 'The print failed';
  if (job === 'complete') return `Completed in ${duration(stats.total_duration)}`;
  if (job === 'cancelled') return `Cancelled after ${duration(stats.total_duration)}`;
  if (!name) return 'Choose a file or upload one to begin.';
  const facts = [file?.slicer, file?.estimated_time && duration(file.estimated_time), file?.size && bytes(file.size)];
  return facts.filter(Boolean).join(' · ') || 'Sliced file';
}

function machineCard({ printer }) {
  const axes = ['X', 'Y', 'Z'].map((axis) => ({ axis, value: h('dd', { class: 'number' }, '–') }));
  const fan = h('dd', { class: 'number' }, '–');
  const run = (script) => () => attempt(() => printer.script(script));
  const home = button('home', 'Home all', run('G28'));
  const off = button('cancel', 'Motors off', run('M84'));
  const cool = button('stop', 'Heaters off', run('TURN_OFF_HEATERS'));
  const element = card('Machine', { class: 'machine' },
    h('dl', { class: 'axes' }, axes.map(({ axis, value }) => h('div', {}, h('dt', {}, axis), value)), h('div', {}, h('dt', {}, 'Fan'), fan)),
    h('div', { class: 'row' }, home, off, cool));
  function update() {
    const position = printer.status.gcode_move?.gcode_position ?? [];
    const homed = printer.status.toolhead?.homed_axes ?? '';
    axes.forEach(({ axis, value }, index) => setText(value, homed.includes(axis.toLowerCase()) ? fixed(position[index], 2) : 'not homed'));
    const speed = printer.status.fan?.speed;
    setText(fan, speed === undefined ? '–' : `${Math.round(speed * 100)} %`);
    const isIdle = printer.state === 'ready' && printer.job !== 'printing';
    home.disabled = !isIdle;
    off.disabled = !isIdle;
    cool.disabled = !isIdle;
  }
  return { element, update };
}
