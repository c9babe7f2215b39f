// No rule of axe-core is broken on any view, in either theme, on desktop and phone.

import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { Server, launch, open, stateIs, view, slicedFile } from './harness.mjs';

const AXE = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const SIZES = { desktop: { width: 1280, height: 860 }, phone: { width: 390, height: 844 } };
/** Where pictures for the README go, when they are wanted. */
const { SCREENSHOTS } = process.env;

let browser;
let server;
before(async () => { browser = await launch(); server = await Server.demo({ speed: 4 }); });
after(async () => { await server?.stop(); await browser?.close(); });

async function check(page, where) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run());
  assert.deepEqual(violations.map(({ id, nodes }) => `${where}: ${id}: ${nodes[0].html}`), []);
}

test('all views in both themes on both sizes', { timeout: 120000 }, async () => {
  const form = new FormData();
  form.append('file', new Blob([slicedFile(60)]), 'calibration-square.gcode');
  form.append('print', 'true');
  await fetch(`${server.url}/server/files/upload`, { method: 'POST', body: form });
  await server.post('/server/job_queue/job', { filenames: ['cube.gcode'] });
  for (const theme of ['light', 'dark']) {
    for (const [size, viewport] of Object.entries(SIZES)) {
      // The page's own policy would keep the checker out.
      const page = await open(browser, server.url, { colorScheme: theme, viewport, bypassCSP: true });
      await stateIs(page, 'printing');
      await page.locator('.print .picture img').waitFor();
      for (const name of ['Printer', 'Files', 'Queue', 'History', 'Console']) {
        await view(page, name);
        await page.waitForLoadState('networkidle');
        await check(page, `${name}, ${theme}, ${size}`);
        if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/${name.toLowerCase()}-${theme}-${size}.png` });
      }
      await view(page, 'Printer');
      await page.getByRole('button', { name: 'Cancel', exact: true }).click();
      await check(page, `question, ${theme}, ${size}`);
      await page.context().close();
    }
  }
});

test('what is shown when something is wrong', { timeout: 120000 }, async () => {
  const locked = await Server.locked({ username: 'anna', password: 'a long password' });
  for (const theme of ['light', 'dark']) {
    const page = await open(browser, locked.url, { colorScheme: theme, bypassCSP: true });
    await page.getByRole('heading', { name: 'Log in' }).waitFor();
    await check(page, `login, ${theme}`);
    await page.getByLabel('Name').fill('anna');
    await page.getByLabel('Password').fill('a long password');
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
    await page.locator('#banner p').waitFor();
    await check(page, `banner, ${theme}`);
    await page.context().close();
  }
  await locked.stop();
});

test('the page of the interface', { timeout: 60000 }, async () => {
  for (const theme of ['light', 'dark']) {
    for (const [size, viewport] of Object.entries(SIZES)) {
      const page = await open(browser, `${server.url}/docs`, { colorScheme: theme, viewport, bypassCSP: true });
      await page.getByText('printer.info', { exact: true }).click();
      await page.getByText('server.files.metadata', { exact: true }).click();
      await check(page, `docs, ${theme}, ${size}`);
      if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/docs-${theme}-${size}.png` });
      await page.context().close();
    }
  }
});
