// The contract, as a page: every operation and every notification under all its names.

import { h, setText } from './dom.js';
import { members, typeOf } from './schema.js';

const element = (id) => document.getElementById(id);
const GROUPS = [
  ['Server', /^server\.(?!files|history|job_queue|database|webcams|announcements|extensions|spool|sensors|analysis|mqtt)/], ['Printer', /^printer\./], ['Files', /^server\.files/],
  ['Queue', /^server\.job_queue/], ['History', /^server\.history/], ['Database', /^(server|debug)\.database/], ['Access', /^access\./], ['Machine', /^machine\./],
  ['Clients and extensions', /^(connection|server\.extensions)/], ['Webcams', /^server\.webcams/], ['Announcements', /^server\.announcements/], ['Slicers', /^slicer_api\./], ['Notifications', /^notify_/], ['Further', /./],
];

/** An access token, when somebody logged in on the other page. */
function token() {
  try { return JSON.parse(localStorage.getItem('bowsprit.session'))?.token; } catch { return undefined; }
}

async function fetched(path) {
  const answer = await fetch(path, { headers: token() ? { Authorization: `Bearer ${token()}` } : {} });
  if (answer.status === 401) throw new Error('You are not logged in. Open the printer’s page, log in there, and come back.');
  if (!answer.ok) throw new Error(`The server answered ${answer.status}.`);
  return answer.json();
}

/** The JSON schema of a request or an answer. */
const jsonOf = (holder) => holder?.content?.['application/json']?.schema;

/** Routes by method; those that belong to none stand for themselves. */
function routesOf(openapi) {
  const routes = new Map();
  for (const [path, verbs] of Object.entries(openapi.paths)) {
    for (const [verb, entry] of Object.entries(verbs)) {
      // The id is verb and method, and a number when the method has several routes for the verb.
      const method = entry.operationId?.split(':')[1];
      const key = method ?? `${verb.toUpperCase()} ${path}`;
      if (!routes.has(key)) routes.set(key, []);
      routes.get(key).push({ verb: verb.toUpperCase(), path, entry });
    }
  }
  return routes;
}

function part(title, ...content) {
  return h('div', {}, h('h3', {}, title), ...content);
}

function operation(method, routes, schemas) {
  const names = [method.name, method.alias].filter(Boolean);
  const inside = h('div', { class: 'inside' });
  const details = h('details', {},
    h('summary', {}, h('span', { class: 'method' }, method.name), h('span', { class: 'badge', 'data-access': method.access }, method.access), h('span', { class: 'doc' }, method.description)), inside);
  // Made when it is opened: there are many.
  details.addEventListener('toggle', () => {
    if (inside.firstChild) return;
    const lines = routes.map(({ verb, path }) => h('li', {}, h('span', { class: 'verb' }, verb), h('code', {}, path)));
    const parameters = method.params && members(method.params, schemas);
    const result = method.result && [h('p', { class: 'type muted' }, typeOf(method.result, schemas)), members(method.result, schemas)];
    inside.append(...[
      method.alias && part('Other name', h('code', {}, method.alias)),
      method.transports && part('Reachable over', h('p', {}, method.transports.join(', '))),
      lines.length > 0 && part('HTTP', h('ul', { class: 'routes' }, lines)),
      parameters && part('Parameters', parameters),
      result && part('Result', ...result.filter(Boolean)),
    ].filter(Boolean));
  });
  const words = [...names, method.description, ...routes.map(({ path }) => path)].join(' ').toLowerCase();
  return { element: details, words, access: method.access, name: method.name };
}

/** What the server tells unasked. */
function notification({ name, alias, description, params }, schemas) {
  const inside = h('div', { class: 'inside' });
  const details = h('details', {}, h('summary', {}, h('span', { class: 'method' }, name), h('span', { class: 'doc' }, description)), inside);
  details.addEventListener('toggle', () => {
    if (inside.firstChild) return;
    const parts = (params?.prefixItems ?? []).map((item) => [h('p', { class: 'type muted' }, typeOf(item, schemas)), members(item, schemas)]);
    inside.append(...[
      alias && part('Also sent as', h('code', {}, alias)),
      part('Parameters', ...(parts.length > 0 ? parts.flat().filter(Boolean) : [h('p', {}, 'none')])),
    ].filter(Boolean));
  });
  return { element: details, words: [name, alias, description].join(' ').toLowerCase(), access: 'view', name };
}

function show(openapi, rpc) {
  // A link carries no token; what was fetched with one is opened instead.
  for (const [path, document_] of token() ? [['server/openapi.json', openapi], ['server/rpc.json', rpc]] : []) {
    document.querySelector(`a[href="${path}"]`).href = URL.createObjectURL(new Blob([JSON.stringify(document_, null, 2)], { type: 'application/json' }));
  }
  const schemas = { ...openapi.components.schemas, ...rpc.components.schemas };
  const routes = routesOf(openapi);
  const all = rpc.methods.map((method) => operation(method, routes.get(method.name) ?? [], schemas));
  const methods = new Set(rpc.methods.map(({ name }) => name));
  for (const [name, list] of routes) {
    if (methods.has(name)) continue;
    const { entry } = list[0];
    const told = { name, description: entry.summary, access: entry['x-access'], params: jsonOf(entry.requestBody), result: jsonOf(entry.responses[200]) };
    all.push(operation(told, list, schemas));
  }
  all.push(...rpc.notifications.map((one) => notification(one, schemas)));
  const groups = GROUPS.map(([title]) => ({ title, operations: [] }));
  for (const one of all) {
    const name = one.name.includes('/server/files') ? 'server.files' : one.name;
    groups[GROUPS.findIndex(([, pattern]) => pattern.test(name))].operations.push(one);
  }
  for (const group of groups) {
    group.element = h('section', { class: 'group', 'aria-label': group.title }, h('h2', {}, group.title), group.operations.map((one) => one.element));
    if (group.operations.length > 0) element('operations').append(group.element);
  }
  const filter = () => {
    const words = element('words').value.toLowerCase().split(/\s+/).filter(Boolean);
    const access = element('access').value;
    let count = 0;
    for (const group of groups) {
      let shown = 0;
      for (const one of group.operations) {
        one.element.hidden = !(words.every((word) => one.words.includes(word)) && (!access || one.access === access));
        if (!one.element.hidden) shown += 1;
      }
      group.element.hidden = shown === 0;
      count += shown;
    }
    setText(element('notice'), `${count} of ${all.length} operations and notifications. Version ${rpc.version}.`);
  };
  element('filter').addEventListener('input', filter);
  element('filter').addEventListener('submit', (event) => event.preventDefault());
  filter();
}

Promise.all([fetched('server/openapi.json'), fetched('server/rpc.json')]).then(([openapi, rpc]) => show(openapi, rpc), (error) => setText(element('notice'), error.message));
