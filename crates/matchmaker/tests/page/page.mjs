// Looks at the page in Chromium: `run.sh` builds the matchmaker and starts this. PROGRAM is the matchmaker, CHROMIUM the browser.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import test, { after, before } from "node:test";
import { chromium } from "playwright-core";

const PATIENCE = 60_000; // for any machine
const SECRETS = { servers: "the-secret-of-servers", backend: "the-secret-of-the-backend", operator: "the-secret-of-operators" };
const HOSTILE = [
  `<img src=x onerror="window.hacked=1">`,
  `</td></tr><script>window.hacked=1</script>`,
  `<b id=state>&lt;i&gt;</b>'";alert(1)//`,
];
let browser, folder, matchmaker, url;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "whitewater-page-"));
  const file = async (name, text) => (await writeFile(join(folder, name), text), join(folder, name));
  const words = ["--listen", "127.0.0.1:0", "--protocol-id", "0x7", "--fleet-key", await file("fleet.key", "5a".repeat(32))];
  for (const [who, secret] of Object.entries(SECRETS)) words.push(`--${who}-token`, await file(who, `${secret}\n`));
  matchmaker = spawn(process.env.PROGRAM, words, { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(createInterface(matchmaker.stdout), "line");
  [url] = line.match(/http:.*/);
  const args = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-component-update", "--disable-sync"];
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args });
});

after(async () => {
  await browser?.close();
  matchmaker?.kill();
  await rm(folder, { recursive: true });
});

async function ask(method, path, secret, body) {
  const answer = await fetch(url + path, { method, headers: { authorization: `Bearer ${secret}` }, body: body && JSON.stringify(body) });
  const text = await answer.text();
  assert.ok(answer.ok, `${path}: ${answer.status} ${text}`);
  return text && JSON.parse(text);
}

/** A server that reports what it is told to. */
async function serve(name, region) {
  const { server, secret } = await ask("POST", "/servers", SECRETS.servers);
  const addresses = ["192.0.2.1:4000"];
  return {
    server,
    report: (more) => ask("PUT", `/servers/${server}`, secret, { name, region, addresses, capacity: 50, players: 0, ...more }),
    end: () => ask("DELETE", `/servers/${server}`, secret),
  };
}

async function open(secret) {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on("pageerror", (error) => { console.error(error); process.exitCode = 1; });
  await page.goto(url);
  await page.fill("#secret", secret);
  await page.click("button");
  return page;
}

const row = (page, { server }) => page.locator(`tr[data-server="${server}"]`);
const cells = async (row) => (await row.locator("td").allTextContents());

/** Waits for a state that the page refreshes to. */
const until = (page, text) => page.locator("#state", { hasText: text }).waitFor();

test("the page shows players, round trips, losses and leases of each server, and follows them", { timeout: 3 * PATIENCE }, async () => {
  const server = await serve("Frankfurt 1", "eu");
  await server.report({ players: 12, rtt_ms: 31.4, loss: 0.0625 });
  await ask("POST", "/join", SECRETS.backend, { clients: ["1", "2"], regions: ["eu"] });
  const page = await open(SECRETS.operator);
  await until(page, "1 servers, 12 of 50 players");
  const shown = await cells(row(page, server));
  assert.match(shown.splice(7, 1)[0], /^1?[0-9] s$/);
  assert.deepEqual(shown, ["Frankfurt 1", "eu", "192.0.2.1:4000", "12 / 50", "2", "31 ms", "6.3 %", "open"]);
  await server.report({ players: 13, draining: true });
  await until(page, "13 of 50 players");
  assert.equal((await cells(row(page, server))).at(-1), "draining");
  await server.end();
  await until(page, "0 servers");
  assert.equal(await row(page, server).count(), 0);
  await page.close();
});

test("whatever a server calls itself is text", { timeout: 3 * PATIENCE }, async () => {
  const servers = await Promise.all(HOSTILE.map((name) => serve(name, "eu")));
  await Promise.all(servers.map((server) => server.report()));
  const page = await open(SECRETS.operator);
  await until(page, "3 servers");
  for (const [index, server] of servers.entries()) {
    assert.equal((await cells(row(page, server)))[0], HOSTILE[index]);
  }
  assert.equal(await page.locator("tbody :not(tr, td)").count(), 0, "an element that is no cell");
  assert.equal(await page.locator("tbody tr").count(), 3);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  await Promise.all(servers.map((server) => server.end()));
  await page.close();
});

test("nobody sees servers without the operator's secret", { timeout: 3 * PATIENCE }, async () => {
  const server = await serve("Frankfurt 1", "eu");
  await server.report();
  const page = await open(SECRETS.backend);
  await until(page, "not the operator's secret");
  assert.equal(await page.locator("table").isVisible(), false);
  assert.equal((await page.content()).includes("Frankfurt"), false);
  await page.fill("#secret", SECRETS.operator);
  await page.click("button");
  await until(page, "1 servers");
  matchmaker.kill();
  await until(page, "The matchmaker does not answer");
  await page.close();
});
