// The contract says what is true: live answers fit the schemas that the server itself hands out.

import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import Ajv from 'ajv/dist/2020.js';
import WebSocket from 'ws';
import { Server, slicedFile, until } from './harness.mjs';

let server;
let openapi;
let rpc;
let ajv;
/** What a client hears that listens to everything. */
const heard = [];
let listener;
before(async () => {
  server = await Server.demo();
  [openapi, rpc] = await Promise.all([server.get('/server/openapi.json'), server.get('/server/rpc.json')]);
  // Formats such as `uint32` say how large numbers become; `minimum` stands beside them.
  ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });
  ajv.addSchema({ components: openapi.components }, 'openapi');
  ajv.addSchema({ components: rpc.components }, 'rpc');
  listener = await Client.open();
  listener.onNotification = (notification) => heard.push(notification);
  const { result } = await listener.call('printer.objects.list');
  await listener.call('printer.objects.subscribe', { objects: Object.fromEntries(result.objects.map((name) => [name, null])) });
});
after(() => { listener?.socket.close(); return server?.stop(); });

/** A client on a websocket. */
class Client {
  static async open() {
    const client = new Client();
    client.waiting = new Map();
    client.socket = new WebSocket(`${server.url.replace('http', 'ws')}/websocket`);
    client.socket.addEventListener('message', ({ data }) => {
      const message = JSON.parse(data);
      if (message.method) client.onNotification?.(message);
      else client.waiting.get(message.id)?.(message);
    });
    await new Promise((resolve, reject) => { client.socket.onopen = resolve; client.socket.onerror = reject; });
    return client;
  }

  call(method, params) {
    const id = this.waiting.size;
    this.socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    return new Promise((resolve) => { this.waiting.set(id, resolve); });
  }
}

/** The schema with its references bound to the document that it comes from. */
const bound = (schema, document) => JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', `"${document}#/components/`));

function fits(schema, document, value, where) {
  const check = ajv.compile(bound(schema, document));
  assert.ok(check(value), `${where}: ${ajv.errorsText(check.errors)} in ${JSON.stringify(value).slice(0, 400)}`);
}

/** Arguments for reading operations that do not go without. */
const ARGUMENTS = {
  'server.files.metadata': { filename: 'cube.gcode' }, 'server.files.thumbnails': { filename: 'cube.gcode' },
  'printer.objects.query': { objects: { toolhead: null, extruder: ['target'] } },
  'server.database.get_item': { namespace: 'contract', key: 'a' }, 'server.history.get_job': { uid: '000001' },
  'server.webcams.get_item': { name: 'contract' }, 'debug.database.table': { table: 'namespace_store' },
};

/** Reading operations that have nothing to read on a demo, or need a connection of their own. */
const NOT_HERE = new Set(['server.websocket.id', 'printer.objects.subscribe']);

/** Operations that change something, in an order in which they work. */
const CHANGES = [
  ['server.database.post_item', { namespace: 'contract', key: 'a', value: { b: 1 } }], ['server.webcams.post_item', { name: 'contract', stream_url: '/stream' }],
  ['server.files.post_directory', { path: 'gcodes/made' }], ['server.files.copy', { source: 'gcodes/cube.gcode', dest: 'gcodes/made/cube.gcode' }],
  ['server.files.move', { source: 'gcodes/made/cube.gcode', dest: 'gcodes/made/other.gcode' }], ['server.files.metascan', { filename: 'made/other.gcode' }],
  ['server.files.zip', { items: ['gcodes/made/other.gcode'], dest: 'gcodes/made/packed.zip' }], ['server.files.delete_file', { path: 'gcodes/made/packed.zip' }],
  ['server.files.delete_directory', { path: 'gcodes/made', force: true }], ['server.job_queue.pause'], ['server.job_queue.post_job', { filenames: ['cube.gcode'] }],
  ['server.job_queue.delete_job', { all: true }], ['printer.gcode.script', { script: 'M117 contract' }], ['printer.print.start', { filename: 'cube.gcode' }],
  ['printer.print.pause'], ['printer.print.resume'], ['printer.print.cancel'],
];

const call = async (method, params) => server.post('/server/jsonrpc', { jsonrpc: '2.0', id: 1, method, params });

async function tried(method, params) {
  const declared = rpc.methods.find(({ name }) => name === method);
  assert.ok(declared, `${method} is not in the contract`);
  if (declared.params && Object.keys(declared.params).length > 0) fits(declared.params, 'rpc', params ?? {}, `parameters of ${method}`);
  const answer = await call(method, params);
  assert.ok(!answer.error, `${method}: ${JSON.stringify(answer.error)}`);
  fits(declared.result, 'rpc', answer.result, method);
}

test('operations that change something answer as the contract says', async () => {
  for (const [method, params] of CHANGES) await tried(method, params);
  const form = new FormData();
  form.append('file', new Blob([slicedFile()]), 'contract.gcode');
  assert.equal((await fetch(`${server.url}/server/files/upload`, { method: 'POST', body: form })).status, 201);
  await until('the print ended', async () => (await server.get('/server/history/list')).result.jobs[0]?.status === 'cancelled');
});

test('every operation that only reads answers as the contract says, over JSON-RPC', async () => {
  const reading = rpc.methods.filter(({ name, access }) => (access === 'view' || access === 'open') && /(^|\.)(info|list|get_[a-z_]+|query|metadata|thumbnails|status|help|config|roots|totals|[a-z]+_store|[a-z_]+_stats|system_info|id)$/.test(name));
  let count = 0;
  for (const { name, transports } of reading) {
    if (NOT_HERE.has(name) || !transports.some((transport) => transport.toLowerCase() === 'http')) continue;
    const answer = await call(name, ARGUMENTS[name]);
    // What is not configured on a demo says so; that it says so in the agreed form is checked below.
    if (answer.error) { assert.ok(!ARGUMENTS[name] && answer.error.message, `${name}: ${JSON.stringify(answer)}`); continue; }
    fits(rpc.methods.find((method) => method.name === name).result, 'rpc', answer.result, name);
    count += 1;
  }
  console.log(`${count} of ${reading.length} reading methods answered`);
  assert.ok(count >= 20, `${count}`);
});

test('every GET route for whoever may look answers as the contract says', async () => {
  let count = 0;
  for (const [path, verbs] of Object.entries(openapi.paths)) {
    const entry = verbs.get;
    if (!entry?.operationId || !['view', 'open'].includes(entry['x-access'])) continue;
    const method = entry.operationId.split(':')[1];
    const query = method === 'printer.objects.query' ? 'toolhead' : new URLSearchParams(ARGUMENTS[method]).toString();
    const answer = await fetch(`${server.url}${path}?${query}`);
    const body = await answer.json();
    const response = entry.responses[answer.ok ? answer.status : 'default'];
    assert.ok(response, `GET ${path}: ${answer.status}`);
    assert.ok(answer.ok || !ARGUMENTS[method], `GET ${path}: ${JSON.stringify(body)}`);
    fits(response.content['application/json'].schema, 'openapi', body, `GET ${path}`);
    if (answer.ok) count += 1;
  }
  console.log(`${count} routes answered`);
  assert.ok(count >= 25, `${count}`);
});

test('every method of the contract stands behind its other name, too', async () => {
  for (const { name, alias, params } of rpc.methods.filter((method) => method.alias)) {
    const answer = await call(alias, { unlikely: 1 });
    assert.notEqual(answer.error?.message, 'Method not found', `${alias} for ${name} ${JSON.stringify(params)}`);
  }
});

/** Occasions for notifications that the changes above do not give. */
async function giveFurtherOccasions() {
  const agent = await Client.open();
  await agent.call('server.connection.identify', { client_name: 'contract', version: '1', type: 'agent', url: 'http://127.0.0.1' });
  await agent.call('connection.send_event', { event: 'spoke', data: { any: ['thing'] } });
  agent.socket.close();
  const user = { username: 'contract', password: 'secret of it' };
  await tried('access.post_user', user);
  await tried('access.login', user);
  await tried('access.delete_user', { username: user.username });
  await tried('server.webcams.delete_item', { name: 'contract' });
  await call('printer.emergency_stop');
  await until('the printer has stopped', async () => (await server.get('/server/info')).result.fwhost_state === 'shutdown');
  await call('printer.firmware_restart');
  await until('the printer is ready again', () => heard.some(({ method }) => method === 'notify_klippy_ready'));
}

test('notifications that arrive are those of the contract, under all their names', async () => {
  await giveFurtherOccasions();
  const declared = new Map(rpc.notifications.flatMap((one) => [one.name, one.alias].filter(Boolean).map((name) => [name, one])));
  for (const { method, params } of heard) {
    const one = declared.get(method);
    assert.ok(one, `${method} is not in the contract`);
    assert.equal(params === undefined, one.params === undefined, `${method}: params`);
    if (params) fits(one.params, 'rpc', params, method);
  }
  const names = new Set(heard.map(({ method }) => method));
  for (const { name, alias } of rpc.notifications.filter((one) => one.alias)) assert.equal(names.has(name), names.has(alias), `${name} goes with ${alias}`);
  const expected = ['status_update', 'proc_stat_update', 'gcode_response', 'filelist_changed', 'history_changed', 'job_queue_changed', 'webcams_changed',
    'agent_event', 'user_created', 'user_deleted', 'fwhost_shutdown', 'fwhost_disconnected', 'fwhost_ready'];
  for (const name of expected) assert.ok(names.has(`notify_${name}`), `notify_${name} did not arrive`);
  console.log(`${heard.length} notifications of ${names.size} names fit`);
});
