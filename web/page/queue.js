// Jobs that wait.

import { h, button, iconButton, card, setText, attempt, confirmed } from './dom.js';
import { duration, baseName } from './format.js';

export function queue({ connection, go }) {
  const state = h('p', { class: 'muted', role: 'status' });
  const list = h('ol', { class: 'list', 'aria-label': 'Jobs that wait' });
  const empty = h('p', { class: 'empty' }, 'No jobs wait. Put files here from the list of files.');
  const run = (method, params) => () => attempt(() => connection.call(`server.job_queue.${method}`, params));
  const start = button('play', 'Start', run('start'), { class: 'primary' });
  const pause = button('pause', 'Pause', run('pause'));
  const clear = button('trash', 'Remove all', async () => {
    if (await confirmed('Remove all jobs from the queue?', 'Remove all')) await run('delete_job', { all: true })();
  });
  const element = card('Queue', { class: 'wide' }, state, h('div', { class: 'row' }, start, pause, clear, button('folder', 'Files', () => go('files'))), empty, list);

  const STATES = { ready: 'Started: the next job begins when the printer is free', paused: 'Paused: no job begins by itself', loading: 'Loading the next job', starting: 'Starting the next job' };

  function show(jobs, queueState) {
    if (queueState) {
      setText(state, STATES[queueState] ?? queueState);
      start.disabled = queueState !== 'paused';
      pause.disabled = queueState === 'paused';
    }
    if (!jobs) return;
    list.replaceChildren(...jobs.map((job) => h('li', {},
      h('div', { class: 'grow' }, h('div', { class: 'file-name' }, baseName(job.filename)), h('div', { class: 'muted' }, `Waiting for ${duration(job.time_in_queue)}`)),
      h('div', { class: 'actions' }, iconButton('trash', `Remove ${baseName(job.filename)} from the queue`, run('delete_job', { job_ids: [job.job_id] }))))));
    empty.hidden = jobs.length > 0;
    clear.disabled = jobs.length === 0;
  }

  async function refresh() {
    const status = await connection.call('server.job_queue.status').catch(() => null);
    if (status) show(status.queued_jobs, status.queue_state);
  }
  connection.on('notify_job_queue_changed', ({ updated_queue: jobs, queue_state: queueState }) => show(jobs, queueState));
  return { element, shown: refresh };
}
