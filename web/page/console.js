// Lines of the firmware host, and commands to it.

import { h, card, attempt } from './dom.js';

/** Temperatures that the firmware host reports while it waits for them: many, and shown elsewhere. */
const REPORT = /^(ok )?[BCT]\d*:/;
/** Lines that are kept on the page. */
const LINES = 500;

export function consoleView({ connection, printer }) {
  const log = h('div', { class: 'log', role: 'log', 'aria-label': 'Lines of the printer', tabindex: '0' });
  const input = h('input', { id: 'command', autocomplete: 'off', autocapitalize: 'characters', spellcheck: 'false', list: 'commands' });
  const known = h('datalist', { id: 'commands' });
  const sent = [];
  let place = 0;
  const form = h('form', {
    class: 'command',
    onsubmit: (event) => {
      event.preventDefault();
      const script = input.value.trim();
      if (!script) return;
      if (sent.at(-1) !== script) sent.push(script);
      place = sent.length;
      input.value = '';
      add({ message: script, type: 'command', time: Date.now() / 1000 });
      printer.script(script).catch((error) => add({ message: `!! ${error.message}`, type: 'response', time: Date.now() / 1000 }));
    },
  }, h('label', { for: 'command' }, 'Command'), input, h('button', { class: 'primary' }, 'Send'), known);
  input.addEventListener('keydown', (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!step || sent.length === 0) return;
    event.preventDefault();
    place = Math.min(sent.length, Math.max(0, place + step));
    input.value = sent[place] ?? '';
  });
  const reports = h('input', { type: 'checkbox' });
  reports.addEventListener('change', () => shown());
  const element = card('Console', { class: 'wide console' }, log, form, h('label', { class: 'check' }, reports, 'Show reports of temperatures'));

  function line({ message, type, time }) {
    const kind = type === 'command' ? 'command' : message.startsWith('!!') ? 'error' : message.startsWith('//') ? 'note' : 'response';
    const at = new Date(time * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' });
    return h('div', { class: `line ${kind}` }, h('time', {}, at), h('span', {}, message.replace(/^(\/\/|!!) /gm, '')));
  }

  function add(...entries) {
    const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    for (const entry of entries) {
      if (!reports.checked && REPORT.test(entry.message)) continue;
      // An error comes twice: as a line, and as the answer to the command.
      const key = `${entry.type}\n${entry.message}`;
      if (entry.message.startsWith('!!') && key === log.lastElementChild?.dataset.key) continue;
      const added = line(entry);
      added.dataset.key = key;
      log.append(added);
    }
    while (log.children.length > LINES) log.firstChild.remove();
    if (isAtEnd) log.scrollTop = log.scrollHeight;
  }

  connection.on('notify_gcode_response', (message) => add({ message, type: 'response', time: Date.now() / 1000 }));

  async function shown() {
    await attempt(async () => {
      if (!connection.isOpen) return;
      const { gcode_store: lines } = await connection.call('server.gcode_store', { count: 200 });
      log.replaceChildren();
      add(...lines);
      log.scrollTop = log.scrollHeight;
      if (known.children.length === 0) {
        const help = await connection.call('printer.gcode.help').catch(() => ({}));
        known.append(...Object.entries(help).map(([value, text]) => h('option', { value }, text)));
      }
    });
  }
  return { element, shown };
}
