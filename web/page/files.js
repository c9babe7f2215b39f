// The sliced files: search, order, print, queue, download, delete.

import { h, button, iconButton, icon, card, setText, toast, attempt, confirmed } from './dom.js';
import { bytes, duration, moment, baseName, folderOf } from './format.js';

/** Rows that are shown at once; more on request. */
const PAGE = 50;

export function files(app) {
  const { connection } = app;
  let all = [];
  let limit = PAGE;
  const known = new Map();
  const search = h('input', { type: 'search', id: 'search', placeholder: 'Search', autocomplete: 'off', spellcheck: 'false' });
  const order = h('select', { id: 'order' }, [['modified', 'Newest first'], ['path', 'By name'], ['size', 'Largest first']].map(([value, text]) => h('option', { value }, text)));
  const count = h('p', { class: 'muted', role: 'status' });
  const list = h('ul', { class: 'list files', 'aria-label': 'Files' });
  const more = button('plus', 'Show more', () => { limit += PAGE; show(); });
  const element = card('Files', { class: 'wide' },
    h('div', { class: 'tools' },
      h('div', { class: 'field grow' }, h('label', { for: 'search' }, 'Search'), search),
      h('div', { class: 'field' }, h('label', { for: 'order' }, 'Order'), order)),
    count, list, more);
  search.addEventListener('input', () => { limit = PAGE; show(); });
  order.addEventListener('change', show);

  const by = {
    modified: (a, b) => b.modified - a.modified,
    path: (a, b) => a.path.localeCompare(b.path, undefined, { numeric: true }),
    size: (a, b) => b.size - a.size,
  };

  function show() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = all.filter(({ path }) => words.every((word) => path.toLowerCase().includes(word))).sort(by[order.value]);
    setText(count, found.length === all.length ? `${all.length} ${all.length === 1 ? 'file' : 'files'}` : `${found.length} of ${all.length} files`);
    list.replaceChildren(...found.slice(0, limit).map(line));
    more.hidden = found.length <= limit;
  }

  function line(file) {
    const key = `${file.path}\n${file.modified}`;
    if (!known.has(key)) known.set(key, fileLine(app, file));
    return known.get(key);
  }

  async function refresh() {
    const answer = await connection.call('server.files.list', { root: 'gcodes' }).catch(() => null);
    if (!answer) return;
    all = answer;
    const current = new Set(all.map(({ path, modified }) => `${path}\n${modified}`));
    for (const key of known.keys()) if (!current.has(key)) known.delete(key);
    show();
  }
  let planned = 0;
  connection.on('notify_filelist_changed', ({ item, source_item: source }) => {
    if (item.root !== 'gcodes' && source?.root !== 'gcodes') return;
    clearTimeout(planned);
    planned = setTimeout(refresh, 100);
  });
  return { element, shown: refresh };
}

function fileLine(app, file) {
  const { connection, session, printer } = app;
  const name = baseName(file.path);
  const picture = h('div', { class: 'picture small' }, icon('cube'));
  const facts = [bytes(file.size), moment(file.modified)];
  const detail = h('div', { class: 'muted' }, facts.join(' · '));
  connection.call('server.files.metadata', { filename: file.path }).then((metadata) => {
    if (metadata.estimated_time) facts.unshift(duration(metadata.estimated_time));
    if (metadata.filament_weight_total) facts.push(`${Math.round(metadata.filament_weight_total)} g`);
    setText(detail, facts.join(' · '));
    thumbnail(app, picture, metadata);
  }, () => {});
  const print = async () => {
    if (printer.isPrinting) { toast('A print is running: put the file into the queue', true); return; }
    await attempt(async () => { await connection.call('printer.print.start', { filename: file.path }); app.go('printer'); });
  };
  const enqueue = () => attempt(async () => {
    await connection.call('server.job_queue.post_job', { filenames: [file.path] });
    toast(`${name} is in the queue`);
  });
  const download = () => attempt(async () => {
    const path = file.path.split('/').map(encodeURIComponent).join('/');
    h('a', { href: await session.address(`server/files/gcodes/${path}`), download: name }).click();
  });
  const remove = async () => {
    if (await confirmed(`Delete ${name}?`, 'Delete')) await attempt(() => connection.call('server.files.delete_file', { path: `gcodes/${file.path}` }));
  };
  const folder = folderOf(file.path);
  return h('li', {}, picture,
    h('div', { class: 'grow' }, h('div', { class: 'file-name' }, folder && h('span', { class: 'muted' }, `${folder}/`), name), detail),
    h('div', { class: 'actions' },
      button('play', 'Print', print, { 'aria-label': `Print ${name}` }),
      iconButton('plus', `Put ${name} into the queue`, enqueue),
      iconButton('download', `Download ${name}`, download),
      iconButton('trash', `Delete ${name}`, remove)));
}

/** Puts the largest preview of a file into `box`, or a symbol when there is none. */
export async function thumbnail({ session }, box, metadata) {
  const best = (metadata?.thumbnails ?? []).reduce((a, b) => (a && a.width >= b.width ? a : b), null);
  if (!best) { box.replaceChildren(icon('cube')); return; }
  const folder = folderOf(metadata.filename);
  const path = [...(folder ? folder.split('/') : []), ...best.relative_path.split('/')].map(encodeURIComponent).join('/');
  const url = `server/files/gcodes/${path}?v=${Math.round(metadata.modified)}`;
  const picture = h('img', { alt: '', loading: 'lazy', width: best.width, height: best.height });
  picture.addEventListener('error', () => box.replaceChildren(icon('cube')), { once: true });
  if (session.isLoggedIn) {
    // A picture element cannot carry a token.
    const answer = await fetch(url, { headers: await session.headers() }).catch(() => null);
    if (!answer?.ok) return;
    picture.src = URL.createObjectURL(await answer.blob());
    picture.addEventListener('load', () => URL.revokeObjectURL(picture.src), { once: true });
    picture.removeAttribute('loading');
  } else {
    picture.src = url;
  }
  box.replaceChildren(picture);
}
