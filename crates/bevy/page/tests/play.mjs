// Plays the game in Chromium: `run.sh` builds it and starts this. PROGRAM is the server's program, PAGE the folder of the wasm file, CHROMIUM the
// browser.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import http from "node:http";
import { createInterface } from "node:readline";
import test, { after, before } from "node:test";
import { chromium } from "playwright-core";

const { PROGRAM: program, PAGE: folder } = process.env;
const PATIENCE = 60_000; // for any machine: the page has code without optimisation
const NAME = "bevy_whitewater_page";
let browser, files, server, place;

before(async () => {
  server = spawn(program, { stdio: ["ignore", "pipe", "inherit"] });
  [place] = await once(createInterface(server.stdout), "line");
  files = http.createServer(async (request, response) => {
    const file = { [`/${NAME}.js`]: "text/javascript", [`/${NAME}_bg.wasm`]: "application/wasm" }[request.url];
    const page = `<script type="module">
      Object.assign(globalThis, { place: ${place}, clicks: 0, seen: "" }, globalThis.change);
      await (await import("/${NAME}.js")).default({ module_or_path: "/${NAME}_bg.wasm" });
    </script>`;
    response.writeHead(200, { "content-type": file ?? "text/html" }).end(file ? await readFile(folder + request.url) : page);
  });
  await new Promise((done) => files.listen(0, "127.0.0.1", done));
  const args = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-component-update", "--disable-sync"];
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args });
});

after(async () => {
  await browser?.close();
  files?.close();
  server?.kill();
});

async function open(prepare = () => {}) {
  const page = await browser.newPage();
  page.on("pageerror", (error) => console.error(error));
  await page.addInitScript(prepare);
  await page.goto(`http://127.0.0.1:${files.address().port}/`);
  return page;
}

const sees = (page, wanted) => page.waitForFunction((wanted) => globalThis.seen === wanted, wanted, { timeout: PATIENCE });
const click = (page, times) => page.evaluate((times) => { globalThis.clicks += times; }, times);

test("two players in browsers see the same world, one by WebTransport and one by WebSocket", async () => {
  const first = await open();
  const second = await open(() => { delete globalThis.WebTransport; });
  await sees(first, "Connected [0]");
  await sees(second, "Connected [0]");
  await click(first, 3);
  await Promise.all([first, second].map((page) => sees(page, "Connected [3]")));
  await click(second, 4);
  await Promise.all([first, second].map((page) => sees(page, "Connected [7]")));
  await second.close();
  await click(first, 1);
  await sees(first, "Connected [8]");
});

test("a page hears that its server has ended", async () => {
  const page = await open();
  await page.waitForFunction(() => globalThis.seen.startsWith("Connected ["), undefined, { timeout: PATIENCE });
  server.kill("SIGKILL");
  await page.waitForFunction(() => globalThis.seen.startsWith("Disconnected"), undefined, { timeout: PATIENCE });
});
