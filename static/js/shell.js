/** What every page of a run has in common: header, state, controls, connection, notices. */
import { Api, ApiError } from "./api.js";
import { ServerClock } from "./clock.js";
import { openCutTexts } from "./cut_text.js";
import { one } from "./lib/dom.js";
import { startMenus } from "./lib/menu.js";
import { startTheme } from "./lib/theme.js";
import { LiveRun } from "./live.js";
import { Notices } from "./notices.js";
import { RunControls } from "./run_controls.js";
import { LiveSocket } from "./socket.js";

/** What the server wrote into the page. */
export function readPage() {
  const { run, base, state, desired, message, mode, clockRate, login, user } = document.body.dataset;
  return {
    run,
    base,
    login,
    user,
    mode,
    clockRate: Number(clockRate) || 1,
    mayDecide: "mayDecide" in document.body.dataset,
    mayControl: "mayControl" in document.body.dataset,
    initial: { state, desired_state: desired, message },
    token: one('meta[name="csrf-token"]').content,
  };
}

/**
 * Start the page: `topics` are the JSON topics it draws, `change(data, topics)` draws them.
 * Further handlers: matrix(buffer, ack), themeChanged(theme), failed(topic, error).
 * Returns {page, api, clock, live, notices, socket}.
 */
export function startRunPage({ topics = [], binaryTopics = [], change = () => {}, matrix, themeChanged, failed }) {
  const page = readPage();
  const api = new Api(`/api/runs/${page.run}/`, page.token);
  const clock = new ServerClock({ rate: page.clockRate });
  const notices = new Notices(one("#notices"));
  const jsonTopics = ["run", ...topics];
  const live = new LiveRun({
    api,
    clock,
    topics: jsonTopics,
    handlers: {
      change: (data, changed) => {
        if (changed.has("run")) controls.show(data.run);
        change(data, changed);
      },
      matrix,
      status: (word) => showLink(word, notices, page, live.data),
      failed: (topic, error) => {
        if (failed?.(topic, error)) return;
        notices.set("fetch", { text: error instanceof ApiError ? error.message : String(error), bad: true });
      },
    },
  });
  const controls = new RunControls({ api, page, notices, applied: (frame) => live.put("run", frame) });
  controls.show(page.initial);
  openCutTexts();
  const socket = new LiveSocket(socketUrl(page.run, [...jsonTopics, ...binaryTopics]), live.socketHandlers());
  live.start(socket);
  addEventListener("online", () => socket.hurry());
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) socket.hurry();
  });
  startChrome(themeChanged);
  return { page, api, clock, live, notices, socket };
}

/** The parts that pages without a run have as well. */
export function startChrome(themeChanged) {
  startTheme(one("#theme-toggle"), themeChanged);
  startMenus();
  showOwnTab();
}

/** On a phone the tabs do not fit: the page's own one is brought into view, sideways only. */
function showOwnTab() {
  const tab = one('.tab[aria-current="page"]');
  if (!tab) return;
  const row = tab.parentElement;
  row.scrollLeft = tab.offsetLeft - row.offsetLeft - (row.clientWidth - tab.offsetWidth) / 2;
}

function socketUrl(run, topics) {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  return `${scheme}://${location.host}/ws/runs/${run}/?topics=${topics.join(",")}`;
}

const LINK_WORDS = {
  connected: "live",
  reconnecting: "reconnecting",
  offline: "offline",
  "signed-out": "logged out",
  forbidden: "not allowed",
  gone: "run removed",
};
const LINK_NOTICES = {
  offline: "The connection is lost: what you see is from before. Trying again.",
  "signed-out": "Your session has ended.",
  forbidden: "You may not watch this run.",
  gone: "This run has been removed.",
};

function showLink(word, notices, page) {
  const indicator = one("#link-state");
  indicator.dataset.status = word;
  one('[data-part="word"]', indicator).textContent = LINK_WORDS[word] ?? word;
  document.body.dataset.link = word;
  if (word === "connected") notices.clear("fetch");
  const text = LINK_NOTICES[word];
  if (!text) {
    notices.clear("link");
    return;
  }
  const action = word === "signed-out" ? { label: "Log in", run: () => location.assign(`${page.login}?next=${encodeURIComponent(location.pathname + location.search)}`) } : null;
  notices.set("link", { text, bad: true, action });
}
