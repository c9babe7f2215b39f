// What was printed, and what became of it.

import { h, button, iconButton, card, setText, attempt, confirmed } from './dom.js';
import { duration, metres, moment, baseName, jobState } from './format.js';

const PAGE = 30;

export function history({ connection, printer, go }) {
  let limit = PAGE;
  const totals = ['Prints', 'Time printing', 'Filament', 'Longest print'].map((name) => ({ name, value: h('dd', {}, '–') }));
  const body = h('tbody');
  const empty = h('p', { class: 'empty' }, 'Nothing was printed yet.');
  const more = button('plus', 'Show more', () => { limit += PAGE; refresh(); }, { hidden: true });
  const table = h('table', { class: 'jobs' },
    h('thead', {}, h('tr', {}, ['File', 'Result', 'Begun', 'Duration', 'Filament'].map((title) => h('th', { scope: 'col' }, title)), h('td', {}))), body);
  const element = card('History', { class: 'wide' },
    h('dl', { class: 'facts totals' }, totals.map(({ name, value }) => h('div', {}, h('dt', {}, name), value))), empty, table, more);

  function line(job) {
    const name = baseName(job.filename);
    const again = async () => attempt(async () => { await connection.call('printer.print.start', { filename: job.filename }); go('printer'); });
    const remove = async () => {
      if (await confirmed(`Remove the record of ${name}?`, 'Remove')) await attempt(async () => { await connection.call('server.history.delete_job', { uid: job.job_id }); await refresh(); });
    };
    const cell = (title, text, attributes = {}) => h('td', { 'data-title': title, ...attributes }, text);
    return h('tr', {}, h('th', { scope: 'row', class: 'file-name' }, name),
      h('td', { 'data-title': 'Result' }, h('span', { class: 'badge', 'data-state': job.status }, jobState(job.status))),
      cell('Begun', moment(job.start_time)), cell('Duration', duration(job.total_duration)), cell('Filament', metres(job.filament_used)),
      h('td', { class: 'actions' },
        iconButton('play', `Print ${name} again`, again, { disabled: !job.exists || printer.isPrinting }),
        iconButton('trash', `Remove the record of ${name}`, remove, { disabled: job.status === 'in_progress' })));
  }

  async function refresh() {
    const [answer, sums] = await Promise.all([
      connection.call('server.history.list', { limit, order: 'desc' }), connection.call('server.history.totals'),
    ]).catch(() => []);
    if (!answer) return;
    body.replaceChildren(...answer.jobs.map(line));
    table.hidden = answer.jobs.length === 0;
    empty.hidden = answer.jobs.length > 0;
    more.hidden = answer.count <= limit;
    const { total_jobs: jobs, total_print_time: time, total_filament_used: filament, longest_print: longest } = sums.job_totals;
    [String(jobs), duration(time), metres(filament), duration(longest)].forEach((text, index) => setText(totals[index].value, text));
  }
  connection.on('notify_history_changed', () => { if (element.isConnected) refresh(); });
  return { element, shown: refresh };
}
