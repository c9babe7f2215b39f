// Uploads: one after the other, with progress, and a print at the end when wanted.

import { h, button, iconButton, icon, card, setText, toast, attempt } from './dom.js';
import { bytes } from './format.js';

/** Files that wait, are under way or are done. Emits `change`. */
export class Uploads extends EventTarget {
  items = [];
  print = false;
  #session;
  #isBusy = false;

  constructor(session) {
    super();
    this.#session = session;
  }

  add(files) {
    for (const file of files) this.items.push({ file, sent: 0, state: 'waiting', print: this.print });
    this.#changed();
    this.#work();
  }

  remove(item) {
    item.request?.abort();
    this.items = this.items.filter((other) => other !== item);
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }

  async #work() {
    if (this.#isBusy) return;
    this.#isBusy = true;
    for (let item; (item = this.items.find(({ state }) => state === 'waiting'));) {
      item.state = 'sending';
      try {
        item.answer = await this.#send(item);
        item.state = 'done';
        toast(`${item.file.name} is uploaded${item.answer.print_started ? ' and is being printed' : ''}`);
      } catch (error) {
        item.state = 'failed';
        item.problem = error.message;
        if (this.items.includes(item)) toast(`${item.file.name}: ${error.message}`, true);
      }
      this.#changed();
    }
    this.#isBusy = false;
  }

  async #send(item) {
    const headers = await this.#session.headers();
    const form = new FormData();
    form.append('root', 'gcodes');
    form.append('print', String(item.print));
    form.append('file', item.file);
    return new Promise((resolve, reject) => {
      // fetch() tells nothing about the progress of what it sends.
      const request = new XMLHttpRequest();
      item.request = request;
      request.open('POST', 'server/files/upload');
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      request.responseType = 'json';
      request.upload.onprogress = (event) => { item.sent = event.loaded / event.total; this.#changed(); };
      request.onload = () => {
        if (request.status === 201) resolve(request.response);
        else reject(new Error(request.response?.error?.message ?? `The server answered ${request.status}`));
      };
      request.onerror = () => reject(new Error('The connection broke off'));
      request.onabort = () => reject(new Error('Cancelled'));
      request.send(form);
    });
  }
}

/** The card with the button, the drop zone and the list. */
export function uploadCard(app) {
  const { uploads, printer, connection } = app;
  const input = h('input', { type: 'file', multiple: true, accept: '.gcode,.g,.gco,.gc,.ufp,.nc', class: 'hidden-text', 'aria-label': 'Files to upload', tabindex: '-1' });
  input.addEventListener('change', () => { uploads.add(input.files); input.value = ''; });
  const print = h('input', { type: 'checkbox' });
  print.addEventListener('change', () => { uploads.print = print.checked; });
  const list = h('ul', { class: 'uploads', 'aria-label': 'Uploads' });
  const element = card('Upload', { class: 'upload' },
    h('div', { class: 'drop' }, icon('upload'),
      h('p', {}, 'Drop sliced files anywhere on this page'),
      h('div', { class: 'row center' }, button('folder', 'Select files', () => input.click()), input, h('label', { class: 'check' }, print, 'Print after upload'))),
    list);
  const lines = new Map();

  function show() {
    for (const [item, line] of lines) if (!uploads.items.includes(item)) { line.element.remove(); lines.delete(item); }
    for (const item of uploads.items) {
      if (!lines.has(item)) { lines.set(item, uploadLine(item, uploads, connection)); list.append(lines.get(item).element); }
      lines.get(item).update();
    }
    list.hidden = uploads.items.length === 0;
  }
  uploads.addEventListener('change', show);
  show();
  return { element, update: () => { print.disabled = printer.isPrinting; if (printer.isPrinting && print.checked) { print.checked = false; uploads.print = false; } } };
}

function uploadLine(item, uploads, connection) {
  const { name } = item.file;
  const bar = h('progress', { max: '1', 'aria-label': `Upload of ${name}` });
  const state = h('span', { class: 'muted' });
  const print = button('play', 'Print', () => attempt(() => connection.call('printer.print.start', { filename: item.answer.item.path })), { hidden: true, 'aria-label': `Print ${name}` });
  const element = h('li', {}, h('div', { class: 'grow' }, h('div', { class: 'file-name' }, name), bar, state), print,
    iconButton('cancel', `Remove ${name} from the list`, () => uploads.remove(item)));
  function update() {
    bar.value = item.state === 'done' ? 1 : item.sent;
    bar.hidden = item.state === 'done' || item.state === 'failed';
    print.hidden = item.state !== 'done' || item.answer.print_started;
    const words = {
      waiting: 'Waiting', sending: `${Math.floor(item.sent * 100)} % of ${bytes(item.file.size)}`, failed: item.problem,
      done: item.answer?.print_started ? 'Uploaded; the print began' : 'Uploaded',
    };
    setText(state, words[item.state]);
    element.dataset.state = item.state;
  }
  return { element, update };
}

/** Files that are dropped on the page, wherever that is, are uploaded. */
export function dropAnywhere({ uploads, go }) {
  const root = document.documentElement;
  const hasFiles = (event) => event.dataTransfer?.types.includes('Files');
  addEventListener('dragover', (event) => { if (hasFiles(event)) { event.preventDefault(); root.dataset.dropping = ''; } });
  addEventListener('dragleave', (event) => { if (!event.relatedTarget) delete root.dataset.dropping; });
  addEventListener('drop', (event) => {
    delete root.dataset.dropping;
    if (!hasFiles(event)) return;
    event.preventDefault();
    uploads.add(event.dataTransfer.files);
    go('printer');
  });
}
