// Building the page. Texts are only ever set as text, so nothing that a printer or a file name says can become markup.

const SVG = 'http://www.w3.org/2000/svg';

/** An element: h('button', {class: 'x', onclick: f}, 'text', child, …). Properties whose value is undefined or false are left out. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false || value === null) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

const ICONS = {
  gauge: 'M4 18a9 9 0 1 1 16 0M12 14l4-5',
  folder: 'M3 6h6l2 2h10v11H3z',
  list: 'M8 6h13M8 12h13M8 18h13M3.500 6h.01M3.500 12h.01M3.500 18h.01',
  clock: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 7v5l3 2',
  terminal: 'M4 6l6 6-6 6M12 18h8',
  stop: 'M8 3h8l5 5v8l-5 5H8l-5-5V8zM12 8v5M12 16h.01',
  play: 'M7 4l13 8-13 8z',
  pause: 'M8 5v14M16 5v14',
  cancel: 'M6 6l12 12M18 6L6 18',
  upload: 'M12 16V4M7 9l5-5 5 5M4 20h16',
  download: 'M12 4v12M7 11l5 5 5-5M4 20h16',
  trash: 'M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13',
  plus: 'M12 5v14M5 12h14',
  home: 'M4 11l8-7 8 7v9h-5v-6H9v6H4z',
  auto: 'M12 4a8 8 0 1 0 0 16zM12 4a8 8 0 0 1 0 16',
  light: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.500 1.500M17.500 17.500L19 19M5 19l1.500-1.500M17.500 6.500L19 5',
  dark: 'M20 14A8 8 0 1 1 10 4a6.500 6.500 0 0 0 10 10z',
  exit: 'M10 4H4v16h6M15 8l4 4-4 4M19 12H9',
  cube: 'M12 3l8 4.500v9L12 21l-8-4.500v-9zM4 7.500l8 4.500 8-4.500M12 12v9',
};

/** A decorative line icon; the control that holds it carries the name. */
export function icon(name) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(SVG, 'path');
  path.setAttribute('d', ICONS[name]);
  svg.append(path);
  return svg;
}

/** A button with an icon and a visible text. */
export const button = (iconName, text, onclick, attributes = {}) =>
  h('button', { type: 'button', onclick, ...attributes }, iconName && icon(iconName), h('span', {}, text));

/** A button with only an icon; `label` is its name. */
export const iconButton = (iconName, label, onclick, attributes = {}) =>
  h('button', { type: 'button', class: 'icon-button', 'aria-label': label, title: label, onclick, ...attributes }, icon(iconName));

/** A titled part of a view. */
export function card(title, attributes = {}, ...children) {
  const id = `card-${title.toLowerCase().replace(/[^a-z]+/g, '-')}`;
  return h('section', { ...attributes, class: `card ${attributes.class ?? ''}`, 'aria-labelledby': id }, h('h2', { id }, title), ...children);
}

/** Sets a text without touching the page when it is the same. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Says something to screen readers without showing it. */
export function announce(text) {
  document.getElementById('announcer').textContent = text;
}

/** A passing message; errors stay until they are closed. */
export function toast(text, isError = false) {
  const box = document.getElementById('toasts');
  if ([...box.children].some((other) => other.firstChild.textContent === text)) return;
  const item = h('div', { class: isError ? 'toast error' : 'toast', role: isError ? 'alert' : 'status' }, h('span', {}, text),
    iconButton('cancel', 'Close message', () => item.remove()));
  box.append(item);
  while (box.children.length > 4) box.firstChild.remove();
  setTimeout(() => item.remove(), isError ? 15000 : 4000);
}

/** Runs an action of a control and shows what went wrong, if anything did. */
export async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    toast(error.message, true);
    return undefined;
  }
}

/** Asks before something that cannot be undone; true when confirmed. */
export function confirmed(question, yes) {
  return new Promise((resolve) => {
    const dialog = h('dialog', { 'aria-labelledby': 'question' },
      h('form', { method: 'dialog' },
        h('h2', { id: 'question' }, question),
        h('div', { class: 'row end' }, h('button', { value: '' }, 'Back'), h('button', { value: 'yes', class: 'danger' }, yes))));
    dialog.addEventListener('close', () => { resolve(dialog.returnValue === 'yes'); dialog.remove(); });
    document.body.append(dialog);
    dialog.showModal();
  });
}
