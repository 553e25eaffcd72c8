// Hands frames, keys, pointers and buttons to the page's Rust, which decides what they mean.
import init, { Page } from "./pkg/tower_defence_page.js";

const $ = (id) => document.getElementById(id);
const kept = {
  // Storage may be forbidden; then nothing is remembered.
  get: (key) => { try { return localStorage.getItem(key); } catch { return null; } },
  set: (key, value) => { try { localStorage.setItem(key, value); } catch { /* not remembered */ } },
};
const chance = () => crypto.getRandomValues(new Uint32Array(1))[0];

/** Bytes from hexadecimal digits. */
const bytes = (digits) => (digits.match(/../g) ?? []).map((byte) => Number.parseInt(byte, 16));

/** How to join the server that has sent this page; null if it says nothing of that. */
async function config() {
  try {
    const answer = await fetch("config.json", { cache: "no-store" });
    if (!answer.ok) return null;
    const { url, websocket, certificate_hashes = [], secret } = await answer.json();
    return { url, websocket, hashes: new Uint8Array(certificate_hashes.flatMap(bytes)), secret: new Uint8Array(bytes(secret)) };
  } catch {
    return null;
  }
}

/** The number with which a player gets their place back: random, kept for each server, and told to nobody else. */
function ticket(server) {
  const key = `ticket ${server}`;
  let digits = kept.get(key);
  if (!/^[0-9a-f]{16}$/.test(digits ?? "")) {
    digits = [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    kept.set(key, digits);
  }
  return BigInt(`0x${digits}`);
}

// First of all: what somebody types while the game is loading stays.
$("name").value = kept.get("name") ?? "";
const before = document.querySelector(`input[name=role][value="${kept.get("role")}"]`);
if (before) before.checked = true;

const wasm = new URL("./pkg/tower_defence_page_bg.wasm", import.meta.url);
const [server] = await Promise.all([config(), init({ module_or_path: wasm })]);
const page = new Page(chance());
const canvas = $("board");
const isPlaying = () => document.body.classList.contains("playing");

function begin(start) {
  kept.set("name", $("name").value.trim());
  kept.set("role", role());
  $("problem").hidden = true;
  try {
    start();
  } catch (problem) {
    $("problem").textContent = String(problem);
    $("problem").hidden = false;
    return;
  }
  document.body.classList.add("playing");
  document.activeElement?.blur();
}

function leave() {
  page.leave(chance());
  talk(false);
  document.body.classList.remove("playing", "sheet");
}

const role = () => document.querySelector("input[name=role]:checked").value;
const number = (id) => Number($(id).value);

function playHere() {
  for (const id of ["rtt", "loss"]) {
    $(`play-${id}`).value = $(id).value;
    $(`play-${id}`).dispatchEvent(new Event("input"));
  }
  begin(() => page.play_here($("name").value, role(), number("rtt"), number("loss"), number("bots"), chance()));
}

function join() {
  const { url, websocket, hashes, secret } = server;
  begin(() => page.join($("name").value, role(), ticket(url), url, websocket, hashes, secret));
}

function talk(isOn) {
  $("chat").hidden = !isOn;
  if (isOn) $("chat-text").focus();
  else { $("chat-text").value = ""; $("chat-text").blur(); }
}

function act(told) {
  if (told === "talk") { document.body.classList.remove("sheet"); talk(true); }
  if (told === "leave") leave();
  return told !== "";
}

// The start screen.
const units = { rtt: " ms", loss: " %", bots: "", "play-rtt": " ms", "play-loss": " %" };
for (const [id, unit] of Object.entries(units)) {
  const show = () => { $(`${id}-out`).textContent = $(id).value + unit; };
  $(id).addEventListener("input", show);
  show();
}
for (const id of ["play-rtt", "play-loss"]) {
  $(id).addEventListener("input", () => page.set_link(number("play-rtt"), number("play-loss")));
}
$("here").addEventListener("click", playHere);
if (server?.url) {
  $("join").hidden = false;
  $("join").addEventListener("click", join);
}
$("start-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (server?.url) join(); else playHere();
});

// Buttons of the game, and its keys.
document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.page === "sheet") document.body.classList.toggle("sheet");
  if (button?.dataset.do) {
    act(page.press(button.dataset.do));
    button.blur(); // the space bar builds; it does not press the last button again
  }
});
$("chat").addEventListener("submit", (event) => {
  event.preventDefault();
  page.say($("chat-text").value);
  talk(false);
});
const isTyping = (event) => event.target.closest?.("input") != null;
addEventListener("keydown", (event) => {
  if (!isPlaying() || event.ctrlKey || event.altKey || event.metaKey) return;
  if (isTyping(event)) {
    if (event.key === "Escape") talk(false);
    return;
  }
  if (event.key === "Escape" && document.body.classList.contains("sheet")) document.body.classList.remove("sheet");
  else if (!act(page.key(named(event), true))) return;
  event.preventDefault();
});
addEventListener("keyup", (event) => {
  if (isPlaying()) page.key(named(event), false);
});
/** Letters as without shift, so that a caps lock changes nothing. */
const named = (event) => (event.key.length === 1 ? event.key.toLowerCase() : event.key);

// Pointers on the board.
const at = (event) => {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};
canvas.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  event.preventDefault();
  document.activeElement?.blur();
  try { canvas.setPointerCapture(event.pointerId); } catch { /* it is lifted already */ }
  page.pointer("down", event.pointerId, ...at(event));
});
canvas.addEventListener("pointermove", (event) => {
  if (event.pointerType === "mouse") page.hover(...at(event));
  page.pointer("move", event.pointerId, ...at(event));
});
canvas.addEventListener("pointerup", (event) => page.pointer("up", event.pointerId, ...at(event)));
canvas.addEventListener("pointercancel", (event) => page.pointer("cancel", event.pointerId, ...at(event)));
canvas.addEventListener("pointerleave", () => page.hover(-1000, -1000));
canvas.addEventListener("contextmenu", (event) => event.preventDefault());
for (const gesture of ["gesturestart", "dblclick"]) {
  document.addEventListener(gesture, (event) => { if (isPlaying()) event.preventDefault(); });
}
addEventListener("blur", () => page.blurred());

// Frames; a tab in the background has none, but its session goes on.
function frame(now) {
  page.frame(now);
  if (page.takes_config()) ask();
  requestAnimationFrame(frame);
}
requestAnimationFrame(frame);
setInterval(() => { if (document.hidden) page.pump(performance.now()); }, 250);

/** A server that was started anew may have another certificate. */
async function ask() {
  const answer = await config();
  try {
    if (answer) page.moved(answer.url, answer.websocket, answer.hashes);
  } catch { /* the old one is tried again */ }
}

window.towerDefence = () => page.summary();
