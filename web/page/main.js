// Puts the page together: header, views, and what connects them to the server.

import { Connection } from './connection.js';
import { Session } from './session.js';
import { Printer } from './printer.js';
import { h, icon, button, setText, announce, attempt } from './dom.js';
import { dashboard } from './dashboard.js';
import { files } from './files.js';
import { queue } from './queue.js';
import { history } from './history.js';
import { consoleView } from './console.js';
import { Uploads, dropAnywhere } from './upload.js';

const connection = new Connection();
const session = new Session(connection);
const printer = new Printer(connection);
const app = { connection, session, printer, go, uploads: new Uploads(session) };

const VIEWS = [
  { id: 'printer', title: 'Printer', icon: 'gauge', build: dashboard },
  { id: 'files', title: 'Files', icon: 'folder', build: files },
  { id: 'queue', title: 'Queue', icon: 'list', build: queue },
  { id: 'history', title: 'History', icon: 'clock', build: history },
  { id: 'console', title: 'Console', icon: 'terminal', build: consoleView },
];

const element = (id) => document.getElementById(id);
const main = element('main');
let current = null;

// --- views ---

for (const view of VIEWS) {
  view.link = h('a', { href: `#${view.id}` }, icon(view.icon), h('span', {}, view.title));
  element('nav').append(view.link);
}

function go(id) {
  location.hash = id;
}

function show() {
  const view = VIEWS.find(({ id }) => `#${id}` === location.hash) ?? VIEWS[0];
  if (view === current) return;
  const isFirst = current === null;
  current?.link.removeAttribute('aria-current');
  current = view;
  view.link.setAttribute('aria-current', 'page');
  view.part ??= view.build(app);
  main.replaceChildren(h('h1', { class: 'hidden-text', tabindex: '-1' }, view.title), view.part.element);
  view.part.shown?.();
  view.part.update?.();
  // The place of reading follows the view, except at the start, where it belongs to the browser.
  if (!isFirst) { main.querySelector('h1').focus({ preventScroll: true }); scrollTo(0, 0); }
}
addEventListener('hashchange', show);

// --- header ---

const THEMES = { auto: 'light', light: 'dark', dark: 'auto' };
function showTheme() {
  const { choice } = window.bowspritTheme;
  element('theme').replaceChildren(icon(choice));
  element('theme').setAttribute('aria-label', `Theme: ${choice}`);
  element('theme').title = `Theme: ${choice}`;
}
element('theme').addEventListener('click', () => {
  window.bowspritTheme.choice = THEMES[window.bowspritTheme.choice] ?? 'auto';
  showTheme();
});
showTheme();

element('logout').append(icon('exit'));
element('logout').setAttribute('aria-label', 'Log out');
element('logout').title = 'Log out on all devices';
element('logout').addEventListener('click', () => session.logOut());

element('stop').append(icon('stop'), h('span', {}, 'Emergency stop'));
element('stop').setAttribute('aria-label', 'Emergency stop');
element('stop').addEventListener('click', () => attempt(() => connection.call('printer.emergency_stop')));

const WORDS = {
  connecting: 'Connecting …', offline: 'Not connected', disconnected: 'Firmware not connected', startup: 'Starting', error: 'Error', shutdown: 'Shut down',
  standby: 'Ready', printing: 'Printing', paused: 'Paused', complete: 'Completed', cancelled: 'Cancelled',
};

function showState() {
  const state = printer.state === 'ready' ? printer.job : printer.state;
  const pill = element('state');
  const words = WORDS[state] ?? state;
  if (pill.dataset.state !== state) {
    pill.dataset.state = state;
    announce(words);
  }
  setText(pill, state === 'printing' ? `${words} · ${Math.floor(printer.progress * 100)} %` : words);
  setText(element('printer-name'), printer.name || 'Bowsprit');
  const title = state === 'printing' ? `${Math.floor(printer.progress * 100)} % · ${printer.name}` : printer.name || 'Bowsprit';
  if (document.title !== title) document.title = title;
  element('stop').disabled = printer.state !== 'ready';
  element('logout').hidden = !session.isLoggedIn;
  showBanner();
}

let bannerFor = '';
function showBanner() {
  const banner = element('banner');
  const key = `${printer.state}\n${printer.message}`;
  if (key === bannerFor) return;
  bannerFor = key;
  banner.hidden = printer.state === 'ready' || printer.state === 'connecting';
  const say = {
    offline: 'The connection to the server is interrupted. Trying again …',
    disconnected: 'The server runs, but the printer’s firmware host does not answer. Trying again …',
    startup: 'The firmware host is starting.',
  };
  const text = say[printer.state] ?? (printer.message || 'The firmware host reports a problem.');
  const canRestart = printer.state === 'shutdown' || printer.state === 'error';
  banner.replaceChildren(h('p', {}, text), canRestart && h('div', { class: 'row' },
    button(null, 'Firmware restart', () => attempt(() => connection.call('printer.firmware_restart')), { class: 'primary' }),
    button(null, 'Restart', () => attempt(() => connection.call('printer.restart')))) || '');
}

// --- the server ---

connection.addEventListener('open', async () => {
  try {
    await session.identify();
    connection.settled();
    await printer.synchronise();
    for (const view of VIEWS) view.part?.refresh?.();
    if (current?.part.shown) current.part.shown();
  } catch {
    // The connection ended on the way, or the server is about to restart: the next attempt follows from `close`.
    if (connection.isOpen) connection.restart();
  }
});
connection.addEventListener('close', () => printer.offline());

// Many notifications arrive between two frames; the page is written once for all of them.
let isPlanned = false;
printer.addEventListener('change', () => {
  if (isPlanned) return;
  isPlanned = true;
  setTimeout(() => {
    isPlanned = false;
    showState();
    current?.part.update?.();
  }, 50);
});

dropAnywhere(app);
show();
showState();
connection.connect();
