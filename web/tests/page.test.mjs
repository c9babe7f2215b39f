// What people do with the page, on a printer that is simulated by the program itself.

import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import { Server, launch, open, stateIs, view, slicedFile, until } from './harness.mjs';

let browser;
let server;
before(async () => { browser = await launch(); server = await Server.demo(); });
after(async () => { await server?.stop(); await browser?.close(); });

/** Runs a scenario on a fresh page; the browser must not complain, and must ask nobody else. */
const scenario = (name, act, options) => test(name, { timeout: 60000 }, async () => {
  const page = await open(browser, server.url, options);
  await page.locator('#state:not([data-state="connecting"], [data-state="offline"])').waitFor();
  await act(page);
  assert.deepEqual(page.complaints, []);
  assert.deepEqual(page.requests.filter((url) => !url.startsWith(server.url) && !url.startsWith('blob:')), []);
  await page.context().close();
});

const upload = (page, name, buffer = slicedFile()) => page.getByLabel('Files to upload').setInputFiles({ name, mimeType: 'text/plain', buffer });
const button = (page, name) => page.getByRole('button', { name, exact: true });

scenario('the page is small, compressed, and comes up', async (page) => {
  const times = [];
  for (let round = 0; round < 6; round += 1) {
    await page.goto('about:blank');
    await page.goto(server.url);
    await page.locator('.sensors tbody tr').first().waitFor();
    times.push(await page.evaluate(() => performance.now()));
  }
  // Told for docs/performance.md; the clock of a busy machine proves nothing.
  console.log(`usable after ${times.map(Math.round).join(', ')} ms`);
  const files = [...new Set(page.requests.filter((url) => url.startsWith('http')))];
  let all = 0;
  for (const url of files) {
    const answer = await fetch(url);
    assert.equal(answer.headers.get('content-encoding') === 'gzip', !url.endsWith('icon.svg') && !url.endsWith('favicon.ico'), url);
    assert.match(answer.headers.get('content-security-policy'), /default-src 'none'/);
    all += (await answer.arrayBuffer()).byteLength;
  }
  console.log(`${files.length} files, ${all} bytes`);
  assert.ok(all <= 150000, `${all} bytes`);
});

scenario('a file is uploaded and printed to its end', async (page) => {
  await upload(page, 'square.gcode');
  await button(page, 'Print square.gcode').click();
  await stateIs(page, 'printing');
  await page.locator('.print .picture img').waitFor();
  await page.getByText(/^\d+ of 10$/).waitFor();
  await stateIs(page, 'complete');
  await view(page, 'History');
  const record = page.getByRole('row', { name: /square\.gcode/ }).first();
  await record.getByText('Completed').waitFor();
  await view(page, 'Printer');
  await button(page, 'Print again').click();
  await stateIs(page, 'printing');
  await stateIs(page, 'complete');
});

scenario('upload with immediate print', async (page) => {
  await page.getByLabel('Print after upload').check();
  await upload(page, 'now.gcode');
  await page.getByText('Uploaded; the print began').waitFor();
  await until('it is printed', async () => (await server.get('/server/history/list?limit=1')).result.jobs[0].filename === 'now.gcode');
  await stateIs(page, 'complete');
});

scenario('pause, resume and cancel', async (page) => {
  await server.post('/printer/print/start', { filename: 'vase.gcode' });
  await stateIs(page, 'printing');
  await button(page, 'Pause').click();
  await stateIs(page, 'paused');
  await button(page, 'Resume').click();
  await stateIs(page, 'printing');
  await button(page, 'Cancel').click();
  await button(page, 'Back').click();
  await stateIs(page, 'printing');
  await button(page, 'Cancel').click();
  await button(page, 'Cancel the print').click();
  await stateIs(page, 'cancelled');
});

scenario('temperatures are set with the keyboard', async (page) => {
  const target = page.getByLabel('Target of Hotend in °C');
  await target.fill('60');
  await target.press('Enter');
  await until('the hotend warms up', async () => (await server.get('/printer/objects/query?extruder')).result.status.extruder.target === 60);
  const now = page.getByRole('row', { name: /Hotend/ }).getByRole('cell').first();
  await until('the page shows it', async () => Number.parseFloat(await now.textContent()) > 55);
  await button(page, 'Switch Hotend off').click();
  await until('it is off', async () => (await target.inputValue()) === '0');
  assert.equal((await server.get('/printer/objects/query?extruder')).result.status.extruder.target, 0);
});

scenario('the machine is homed and its motors are switched off', async (page) => {
  await button(page, 'Home all').click();
  await page.locator('.axes dd').first().filter({ hasText: /^\d/ }).waitFor();
  await button(page, 'Motors off').click();
  await page.getByText('not homed').first().waitFor();
});

scenario('a name is only ever text', async (page) => {
  const name = '<img src=x onerror=document.title=1>.gcode';
  await upload(page, name);
  await view(page, 'Files');
  await page.locator('main').getByText(name).waitFor();
  assert.equal(await page.locator('main img[src="x"]').count(), 0);
  await button(page, `Delete ${name}`).click();
  await button(page, 'Delete').click();
  await page.locator('main').getByText(name).waitFor({ state: 'detached' });
});

scenario('files are found, downloaded, queued and printed', async (page) => {
  await view(page, 'Files');
  await page.getByText('samples/').waitFor();
  await page.getByLabel('Search').fill('TWISTED');
  await page.getByText(/^1 of \d+ files$/).waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), button(page, 'Download twisted-prism.gcode').click()]);
  assert.equal(download.suggestedFilename(), 'twisted-prism.gcode');
  await button(page, 'Put twisted-prism.gcode into the queue').click();
  await page.getByText('twisted-prism.gcode is in the queue').waitFor();
  await button(page, 'Print twisted-prism.gcode').click();
  await stateIs(page, 'printing');
  await server.post('/printer/print/cancel');
  await stateIs(page, 'cancelled');
});

scenario('the queue', async (page) => {
  await server.post('/server/job_queue/pause');
  await server.post('/server/job_queue/job', { filenames: ['cube.gcode', 'vase.gcode'], reset: true });
  await view(page, 'Queue');
  await page.getByText('vase.gcode').waitFor();
  await button(page, 'Remove vase.gcode from the queue').click();
  await page.getByText('vase.gcode').waitFor({ state: 'detached' });
  await button(page, 'Start').click();
  await stateIs(page, 'printing');
  await page.getByText('No jobs wait').waitFor();
  await stateIs(page, 'complete');
  await server.post('/server/job_queue/job', { filenames: ['cube.gcode'] });
  await server.post('/server/job_queue/pause');
});

scenario('records of the history are removed', async (page) => {
  await view(page, 'History');
  const records = page.locator('.jobs tbody tr');
  await records.first().waitFor();
  const count = await records.count();
  await records.first().getByRole('button', { name: /Remove the record/ }).click();
  await button(page, 'Remove').click();
  await until('one is gone', async () => (await records.count()) === count - 1);
});

scenario('the console', async (page) => {
  await view(page, 'Console');
  const command = page.getByLabel('Command');
  await command.fill('M117 hello from the page');
  await command.press('Enter');
  await until('it was run', async () => (await server.get('/printer/objects/query?display_status')).result.status.display_status.message === 'hello from the page');
  await command.fill('NO_SUCH_COMMAND');
  await button(page, 'Send').click();
  await page.getByRole('log').getByText(/Unknown command/).first().waitFor();
  await command.press('ArrowUp');
  assert.equal(await command.inputValue(), 'NO_SUCH_COMMAND');
  await command.press('ArrowUp');
  assert.equal(await command.inputValue(), 'M117 hello from the page');
});

scenario('emergency stop, and back', async (page) => {
  await button(page, 'Emergency stop').click();
  await stateIs(page, 'shutdown');
  await button(page, 'Firmware restart').click();
  await stateIs(page, 'standby');
});

scenario('the theme is chosen and kept', async (page) => {
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  assert.equal(await theme(), 'dark');
  await page.getByRole('button', { name: 'Theme: auto' }).click();
  assert.equal(await theme(), 'light');
  await page.reload();
  assert.equal(await theme(), 'light');
}, { colorScheme: 'dark' });

scenario('a phone shows everything without scrolling sideways', async (page) => {
  for (const name of ['Printer', 'Files', 'Queue', 'History', 'Console']) {
    await view(page, name);
    const [content, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(content <= screen, `${name}: ${content} > ${screen}`);
  }
}, { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true });

scenario('everything is reached with the keyboard', async (page) => {
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Files', level: 1 }).waitFor({ state: 'attached' });
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'H1');
});

test('the page comes back by itself when the server does', { timeout: 60000 }, async () => {
  const first = await Server.demo();
  const page = await open(browser, first.url);
  await stateIs(page, 'standby');
  await first.stop();
  await stateIs(page, 'offline');
  await page.getByText('Trying again').waitFor();
  const second = await Server.demo({ port: first.port });
  await stateIs(page, 'standby');
  await page.context().close();
  await second.stop();
});

test('strangers log in, and out', { timeout: 60000 }, async () => {
  const locked = await Server.locked({ username: 'anna', password: 'a long password' });
  const page = await open(browser, locked.url);
  await page.getByLabel('Name').fill('anna');
  await page.getByLabel('Password').fill('wrong');
  await button(page, 'Log in').click();
  await page.getByRole('alert').filter({ hasText: /./ }).waitFor();
  await page.getByLabel('Password').fill('a long password');
  await button(page, 'Log in').click();
  await stateIs(page, 'disconnected');
  await upload(page, 'mine.gcode');
  await page.getByText('Uploaded', { exact: true }).waitFor();
  await page.reload();
  await stateIs(page, 'disconnected');
  await view(page, 'Files');
  const [download] = await Promise.all([page.waitForEvent('download'), button(page, 'Download mine.gcode').click()]);
  assert.equal(download.suggestedFilename(), 'mine.gcode');
  await button(page, 'Log out').click();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  await page.context().close();
  await locked.stop();
});

scenario('the interface is searched', async (page) => {
  await page.goto(`${server.url}/docs`);
  const count = page.getByRole('status').filter({ hasText: /of \d+ operations/ });
  await count.waitFor();
  await page.getByLabel('Search names').fill('klippysocket nothing');
  await page.getByText(/^0 of/).waitFor();
  await page.getByLabel('Search names').fill('print/pause');
  await page.getByText(/^1 of/).waitFor();
  await page.getByText('printer.print.pause', { exact: true }).click();
  await page.getByText('/printer/print/pause', { exact: true }).waitFor();
  await page.getByLabel('Search names').fill('');
  await page.getByRole('combobox', { name: 'Access' }).selectOption('admin');
  await page.getByText('server.restart', { exact: true }).waitFor();
  await page.getByText('server.info', { exact: true }).waitFor({ state: 'hidden' });
});
