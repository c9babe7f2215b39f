// A server of our own and a browser to look at it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { chromium } from 'playwright-core';

const QUIET = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];

export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM, args: QUIET });

export async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Calls `look` until it gives something, for at most `seconds`. */
export async function until(what, look, seconds = 30) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not within ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The program with these arguments, ready when its port answers. */
export class Server {
  static async start(args, port) {
    const server = new Server();
    server.port = port;
    server.url = `http://127.0.0.1:${port}`;
    server.child = spawn(process.env.BOWSPRIT, args, { stdio: 'ignore' });
    // A test that fails must not leave a server behind, which would keep the runner waiting, too.
    server.child.unref();
    process.once('exit', () => server.child.kill());
    await until('the server answers', () => fetch(`${server.url}/`).then((answer) => answer.ok, () => false));
    return server;
  }

  /** With the simulated printer. */
  static async demo({ port, speed = 100 } = {}) {
    const chosen = port ?? await freePort();
    const server = await Server.start(['demo', '--port', String(chosen), '--speed', String(speed)], chosen);
    await until('the printer is ready', async () => (await server.get('/server/info')).result?.fwhost_state === 'ready');
    return server;
  }

  /** Without a printer; nobody is trusted, and there is one user. */
  static async locked(user) {
    const port = await freePort();
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'bowsprit-page-'));
    fs.mkdirSync(path.join(folder, 'config'));
    fs.writeFileSync(path.join(folder, 'config/bowsprit.conf'),
      `[server]\nhost: 127.0.0.1\nport: ${port}\nfwhost_uds_address: ${folder}/none.sock\n[announcements]\nenable_remote_feeds: false\n`);
    const server = await Server.start(['serve', '-d', folder], port);
    server.folder = folder;
    await server.overSocket('access.post_user', user);
    return server;
  }

  async get(route) {
    return (await fetch(this.url + route)).json();
  }

  async post(route, body = {}) {
    const answer = await fetch(this.url + route, { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } });
    return answer.json();
  }

  /** A call as the owner, over the unix socket. */
  async overSocket(method, params) {
    const socket = net.connect(path.join(this.folder, 'comms/core.sock'));
    await once(socket, 'connect');
    socket.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })}\x03`);
    let text = '';
    const answer = await until(`an answer to ${method}`, async () => {
      text += socket.read()?.toString() ?? '';
      return text.split('\x03').slice(0, -1).map((part) => JSON.parse(part)).find(({ id }) => id === 1);
    });
    socket.destroy();
    if (answer.error) throw new Error(answer.error.message);
    return answer.result;
  }

  async stop() {
    if (this.child.exitCode === null) {
      this.child.kill('SIGTERM');
      await once(this.child, 'exit');
    }
    if (this.folder) fs.rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A page that collects everything a browser complains about. */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  page.complaints = [];
  page.requests = [];
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) page.complaints.push(message.text()); });
  page.on('pageerror', (error) => page.complaints.push(error.message));
  page.on('request', (request) => page.requests.push(request.url()));
  page.setDefaultTimeout(20000);
  await page.goto(url);
  return page;
}

export const stateIs = (page, state) => page.locator(`#state[data-state="${state}"]`).waitFor();

export const view = async (page, name) => {
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name }).click();
  await page.getByRole('heading', { name, level: 1 }).waitFor({ state: 'attached' });
};

/** A small sliced file with a preview: squares on top of each other. */
export function slicedFile(layers = 10) {
  const preview = fs.readFileSync(new URL('preview.png', import.meta.url)).toString('base64').match(/.{1,78}/g);
  const length = preview.join('').length;
  const lines = ['; generated by PrusaSlicer 2.8.0 on 2026-01-01 at 00:00:00 UTC', '', `; thumbnail begin 64x64 ${length}`, ...preview.map((line) => `; ${line}`), '; thumbnail end', '',
    `SET_PRINT_STATS_INFO TOTAL_LAYER=${layers}`, 'M104 S200', 'G28', 'G90', 'M83', 'M109 S200'];
  for (let layer = 1; layer <= layers; layer += 1) {
    lines.push(`SET_PRINT_STATS_INFO CURRENT_LAYER=${layer}`, `G1 Z${(layer * 0.2).toFixed(2)} F600`);
    for (const [x, y] of [[100, 100], [140, 100], [140, 140], [100, 140]]) lines.push(`G1 X${x} Y${y} E1.5 F2400`);
  }
  lines.push('M104 S0', '; estimated printing time (normal mode) = 1m 30s', '; filament used [mm] = 60', '; layer_height = 0.2');
  return Buffer.from(lines.join('\n'));
}
