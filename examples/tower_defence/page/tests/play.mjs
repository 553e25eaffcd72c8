// Plays the page in a headless Chromium against native bots: `just page` builds and runs this. It takes the program as its argument, and a
// folder for screenshots.
//
// A promise that does not hold within 30 s fails. Nothing else depends on how fast the machine is.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import dgram from "node:dgram";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [program, pictures] = process.argv.slice(2);
const LIMIT = 30_000;

/** The server, as a newcomer starts it but for its ports: those of the page and of browsers, or any. */
async function serve(page = "127.0.0.1:0", web = "127.0.0.1:0") {
  const words = ["serve", "--bots", "7", "--pass", "four words by chance", "--page", page, "--web", web, "--udp", "127.0.0.1:0"];
  const child = spawn(program, words, { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface(child.stdout)) {
    console.log(line);
    const [, url] = line.match(/play in a browser: +(\S+)/) ?? [];
    if (url) return { child, url };
  }
  throw new Error("the server has ended");
}

/** A relay that loses one datagram in ten each way, by a fixed sequence of numbers. */
async function lossy(port) {
  const relay = dgram.createSocket("udp4");
  const ways = new Map();
  let state = 7;
  const isLost = () => ((state = (Math.imul(state, 1664525) + 1013904223) >>> 0) >>> 16) % 10 === 0;
  relay.on("message", (datagram, from) => {
    let way = ways.get(from.port);
    if (!way) {
      way = dgram.createSocket("udp4");
      ways.set(from.port, way);
      way.on("message", (back) => { if (!isLost()) relay.send(back, from.port, from.address); });
    }
    if (!isLost()) way.send(datagram, port, "127.0.0.1");
  });
  await new Promise((bound) => relay.bind(0, "127.0.0.1", bound));
  return { port: relay.address().port, close: () => [relay, ...ways.values()].forEach((socket) => socket.close()) };
}

/** A port that swallows all. */
async function silent() {
  const socket = dgram.createSocket("udp4");
  await new Promise((bound) => socket.bind(0, "127.0.0.1", bound));
  return { port: socket.address().port, close: () => socket.close() };
}

/** A page in a context of its own; `change` changes how it joins. */
async function open(browser, url, { change, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.on("pageerror", (error) => { console.error(error); process.exitCode = 1; });
  if (change) {
    await page.route("**/config.json", async (route) => {
      const config = await (await route.fetch()).json();
      change(config);
      await route.fulfill({ json: config });
    });
  }
  await page.goto(url);
  return page;
}

async function join(page, name, role) {
  await page.fill("#name", name);
  await page.locator(`input[name=role][value=${role}]`).check({ force: true });
  await page.click("#join");
  await until(page, "there is a game", (now) => now.state === "playing" && now.isLive);
}

const summary = (page) => page.evaluate(() => window.towerDefence());

/** Waits until that is so, and returns the summary then. */
async function until(page, promise, isSo) {
  const end = Date.now() + LIMIT;
  for (;;) {
    const now = await summary(page);
    if (isSo(now)) return now;
    if (Date.now() > end) assert.fail(`not so: ${promise}: ${JSON.stringify(now)}`);
    await page.waitForTimeout(50);
  }
}

/** Builds on for so many seconds of the game: it goes on all the time, what the server sends arrives, and turrets are built. */
async function goOn(page, seconds) {
  const start = await summary(page);
  const [ticks, end] = [30 * seconds, Date.now() + 1000 * seconds + LIMIT];
  let [now, built] = [start, 0];
  for (let cell = 0; now.tick < start.tick + ticks; cell++) {
    assert.ok(Date.now() < end, `only ${now.tick - start.tick} of ${ticks} ticks`);
    await page.keyboard.press(["ArrowUp", "ArrowLeft", "ArrowDown", "ArrowLeft"][cell % 4]);
    await page.keyboard.press("Space");
    await page.waitForTimeout(500);
    const next = await summary(page);
    assert.deepEqual([next.state, next.transport, next.you], ["playing", start.transport, start.you]);
    assert.ok(next.tick >= now.tick, `back from ${now.tick} to ${next.tick}`);
    built += Math.max(0, next.turrets - now.turrets);
    now = next;
  }
  await until(page, "it is live after all that time", (now) => now.isLive);
  const snapshots = now.figures.snapshots - start.figures.snapshots;
  assert.ok(snapshots > 0.8 * ticks, `${snapshots} of ${ticks} snapshots have arrived`);
  assert.ok(built > 0, "nobody has built anything");
  assert.ok(now.players >= 8, `${now.players} are left`);
  console.log(`    ${now.tick - start.tick} ticks, ${snapshots} snapshots, ${built} turrets, wave ${now.wave}`);
}

/** How many pixels of the board have about that colour. */
function pixels(page, colour) {
  return page.evaluate((colour) => {
    const board = document.getElementById("board");
    const { data } = board.getContext("2d").getImageData(0, 0, board.width, board.height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) {
      count += colour.every((value, index) => Math.abs(data[at + index] - value) < 40);
    }
    return count;
  }, colour);
}

const tests = {
  async "a builder builds, the board shows what the game has, and a minute later it goes on"(browser, url) {
    const page = await open(browser, url);
    await join(page, "Ann", "build");
    assert.equal((await summary(page)).transport, "WebTransport");
    const before = await until(page, "there are others", (now) => now.players >= 8 && now.turrets > 0 && now.runners > 0);
    // Not every cell has room. Only what is built costs money.
    let { money } = before;
    for (let cell = 0; cell < 12 && money >= before.money; cell++) {
      await page.keyboard.press(cell % 2 ? "ArrowUp" : "ArrowRight");
      await page.keyboard.press("Space");
      await page.waitForTimeout(300);
      ({ money } = await summary(page));
    }
    assert.ok(money < before.money, `nothing was built: ${money} of ${before.money}`);
    const now = await until(page, "all are drawn", ({ drawn, turrets, runners }) => drawn.turrets === turrets && drawn.runners === runners && runners > 0 && drawn.coins > 1);
    const { palette } = now;
    for (const colour of ["red", "green", "blue", "gold"]) {
      assert.ok(await pixels(page, palette[colour]) > 20, `nothing is ${colour}`);
    }
    await until(page, "somebody shoots", ({ drawn }) => drawn.beams > 0);
    await page.screenshot({ path: `${pictures}/builder.png` });
    await goOn(page, 60);
    await page.context().close();
  },

  async "a runner runs at once, and gets its place back after a reload"(browser, url) {
    const page = await open(browser, url);
    await join(page, "Bob", "run");
    const { you, own } = await until(page, "it runs", (now) => now.role === "runner" && now.own);
    await page.keyboard.down("ArrowRight");
    await until(page, "it has moved", (now) => now.own && Math.hypot(now.own.x - own.x, now.own.y - own.y) > 1);
    await page.keyboard.up("ArrowRight");
    await page.screenshot({ path: `${pictures}/runner.png` });
    await page.reload();
    await join(page, "Bob", "run");
    assert.equal((await summary(page)).you, you);
    await page.context().close();
  },

  async "a tenth of all datagrams is lost, and the game goes on"(browser, url) {

    const config = await (await fetch(new URL("config.json", url))).json();
    const relay = await lossy(Number(new URL(config.url).port));
    const page = await open(browser, url, {
      change: (config) => {
        config.url = `https://127.0.0.1:${relay.port}/`;
        config.websocket = "ws://127.0.0.1:1/"; // there is none that could be faster
      },
    });
    await join(page, "Cleo", "run");
    const start = await summary(page);
    assert.equal(start.transport, "WebTransport");
    const now = await until(page, "ten seconds have been played", (now) => now.tick > start.tick + 300);
    const snapshots = now.figures.snapshots - start.figures.snapshots;
    assert.ok(snapshots > 200, `${snapshots} of 300 snapshots have arrived`);
    const { figures } = await until(page, "the loss is known", ({ figures }) => figures.loss !== null);
    assert.ok(figures.loss > 0.02 && figures.loss < 0.3, `measured: ${figures.loss}`);
    console.log(`    loss ${figures.loss.toFixed(3)}, round trip ${figures.rtt.toFixed(1)} ms, ${snapshots} snapshots`);
    await page.context().close();
    relay.close();
  },

  async "where UDP is blocked a WebSocket carries the same game"(browser, url) {
    const hole = await silent();
    const page = await open(browser, url, { change: (config) => { config.url = `https://127.0.0.1:${hole.port}/`; } });
    await join(page, "Dora", "watch");
    assert.equal((await summary(page)).transport, "WebSocket");
    const { tick } = await summary(page);
    await until(page, "the game goes on", (now) => now.tick > tick + 60);
    await page.context().close();
    hole.close();
  },

  async "whoever plays is back when a server that was killed has started again"(browser, url) {
    const { host } = new URL((await (await fetch(new URL("config.json", url))).json()).url);
    const page = await open(browser, url);
    await join(page, "Eve", "build");
    const before = await until(page, "the game goes on", (now) => now.tick > 60);
    const ended = new Promise((over) => server.child.once("exit", over));
    server.child.kill("SIGKILL");
    await ended;
    server = await serve(new URL(url).host, host);
    const back = Date.now();
    const now = await until(page, "it is another game", (now) => now.state === "playing" && now.isLive && now.tick < before.tick);
    // A WebSocket is tried 2 s after WebTransport: on a slow machine, it can be first.
    assert.equal(now.role, "builder");
    assert.notEqual(now.transport, "here");
    console.log(`    back after ${((Date.now() - back) / 1000).toFixed(1)} s by ${now.transport}`);
    await page.context().close();
  },

  async "a finger steers on a phone, without a server"(browser, url) {
    const page = await open(browser, url, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 });
    await page.locator("input[name=role][value=run]").check({ force: true });
    await page.tap("#here");
    const { own } = await until(page, "it runs", (now) => now.transport === "here" && now.own);
    const board = await page.locator("#board").boundingBox();
    const [x, y] = [board.x + board.width / 2, board.y + board.height / 2];
    const finger = await page.context().newCDPSession(page);
    const touch = (type, at) => finger.send("Input.dispatchTouchEvent", { type, touchPoints: at ? [at] : [] });
    await touch("touchStart", { x, y });
    // Towards the exit, whichever way the board is turned.
    const { layout } = await summary(page);
    const [right, down] = layout.isTurned ? [0, 60] : [60, 0];
    await touch("touchMove", { x: x + right, y: y + down });
    await until(page, "it has moved", (now) => now.own && Math.hypot(now.own.x - own.x, now.own.y - own.y) > 1);
    await touch("touchEnd");
    await page.screenshot({ path: `${pictures}/phone.png` });
    const small = await page.evaluate(() => [...document.querySelectorAll("button")]
      .filter((button) => button.checkVisibility())
      .map((button) => [button.textContent.trim(), button.getBoundingClientRect()])
      .filter(([, { width, height }]) => Math.min(width, height) < 43.5)
      .map(([text, { width, height }]) => `${text} ${width} x ${height}`));
    assert.deepEqual(small, [], "buttons too small for a finger");
    await page.context().close();
  },
};

let server = await serve();
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  for (const [name, test] of Object.entries(tests)) {
    const begun = Date.now();
    await test(browser, server.url);
    console.log(`ok ${((Date.now() - begun) / 1000).toFixed(1)} s  ${name}`);
  }
} finally {
  await browser.close();
  server.child.kill();
}
