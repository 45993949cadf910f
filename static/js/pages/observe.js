/** What another scheduler decides beside what we would: the rates, and every pod, live. */
import { setCut } from "../cut_text.js";
import { clockTime, count } from "../format.js";
import { debounce, keepChildren, one, parts, setHidden, setText, stamp } from "../lib/dom.js";
import { matches, ObservedRows, ratePercent, tallies, verdictKind, verdictWord } from "../observe_words.js";
import { startRunPage } from "../shell.js";
import { VirtualTable } from "../virtual_table.js";

const FIRST = 100;
const EARLIER = 500;
const MOST = 5_000;
const TYPING_MS = 250;

class ObservePage {
  #form = one("#observe-form");
  #more = one("#observe-more");
  #newer = one("#observe-newer");
  #shell;
  #table;
  #known = new ObservedRows();
  /** Pods of which something was said while someone reads further down. */
  #held = [];
  #complete = false;
  #loaded = false;
  #request = 0;

  start() {
    this.#shell = startRunPage({
      topics: ["observe"],
      change: (data, topics) => {
        if (topics.has("run")) this.#drawEmpty();
        if (topics.has("observe")) this.#pushed(data.observe);
      },
    });
    const { base } = this.#shell.page;
    this.#table = new VirtualTable(one("#observe-table"), {
      create: () => stamp("observed-row-template"),
      render: (tr, index) => drawRow(tr, this.#known.rows[index], base),
      key: (index) => this.#known.rows[index].id,
    });
    this.#form.addEventListener("submit", (event) => event.preventDefault());
    this.#form.addEventListener("input", debounce(() => this.#search(), TYPING_MS));
    this.#more.addEventListener("click", () => this.#load(this.#known.rows.at(-1)?.sequence));
    this.#newer.addEventListener("click", () => this.#table.scrollToTop());
    one("#tallies").addEventListener("click", (event) => this.#choose(event));
    addEventListener("scroll", () => this.#release(), { passive: true });
    this.#search();
  }

  get #filter() {
    return { verdict: this.#form.elements.verdict.value, namespace: this.#form.elements.namespace.value.trim() };
  }

  /** A tally is a filter; once more, and it is none. */
  #choose(event) {
    const chosen = event.target.closest("[data-verdict]")?.dataset.verdict;
    if (!chosen) return;
    const { verdict } = this.#form.elements;
    verdict.value = verdict.value === chosen ? "" : chosen;
    this.#search();
  }

  #search() {
    this.#known = new ObservedRows();
    this.#held = [];
    this.#loaded = false;
    const query = new URLSearchParams(Object.entries(this.#filter).filter(([, value]) => value)).toString();
    history.replaceState(null, "", query ? `?${query}` : location.pathname);
    this.#load();
  }

  async #load(before) {
    this.#request += 1;
    const request = this.#request;
    this.#more.disabled = true;
    try {
      const limit = before === undefined ? FIRST : EARLIER;
      const { pods } = await this.#shell.api.get("observe", { ...this.#filter, before, limit });
      if (request !== this.#request) return;
      this.#known.add(pods);
      this.#complete = pods.length < limit;
      this.#loaded = true;
      this.#shell.notices.clear("search");
      this.#draw();
    } catch (error) {
      this.#shell.notices.set("search", { text: `The pods could not be loaded: ${error.message}`, bad: true, action: { label: "Try again", run: () => this.#load(before) } });
    } finally {
      this.#more.disabled = false;
    }
  }

  #pushed(data) {
    drawRates(data);
    drawTallies(data.counts, this.#filter.verdict);
    if (!this.#loaded) return;
    this.#held = data.pods;
    if (!this.#table.isScrolled) this.#takeHeld();
    this.#draw();
  }

  #release() {
    if (this.#held.length === 0 || this.#table.isScrolled) return;
    this.#takeHeld();
    this.#draw();
  }

  #takeHeld() {
    const filter = this.#filter;
    this.#known.add(this.#held, (row) => matches(row, filter));
    this.#held = [];
    if (this.#known.trim(MOST)) this.#complete = false;
  }

  #newerRows() {
    const newest = this.#known.rows[0]?.sequence ?? 0;
    const filter = this.#filter;
    return this.#held.filter((row) => row.sequence > newest && matches(row, filter)).length;
  }

  #draw() {
    const { length } = this.#known.rows;
    this.#table.setCount(length);
    this.#drawEmpty();
    setHidden(this.#more, this.#complete || length === 0);
    setText(one("#observe-note"), length ? `${count(length)} shown, the latest word first${this.#complete ? "" : "; there are more"}` : "");
    const newer = this.#newerRows();
    setHidden(this.#newer, newer === 0);
    setText(this.#newer, `${count(newer)} newer`);
  }

  #drawEmpty() {
    if (!this.#shell || !this.#loaded) return;
    const empty = one("#observe-empty");
    const text = parts(empty);
    const { verdict, namespace } = this.#filter;
    const state = this.#shell.live.data.run?.state ?? this.#shell.page.initial.state;
    const [title, words] = emptyWords(Boolean(verdict || namespace), state);
    setHidden(empty, this.#known.rows.length > 0);
    setText(text.title, title);
    setText(text.text, words);
  }
}

function emptyWords(searching, state) {
  if (searching) return ["Nothing matches", "No observed pod has this verdict in this namespace."];
  if (state === "running") return ["Waiting for the first pod", "It appears here when another scheduler has a pod to place. Pods that ran before this observer began are not judged."];
  if (state === "paused") return ["Paused", "Pods that are placed meanwhile are not judged."];
  if (state === "failed") return ["It could not go on", "The message above says why."];
  if (state === "stopped") return ["Not observing", "Start it above: it reads, and writes nothing."];
  return ["Starting", "The cluster is being read."];
}

function drawRates({ whole, recent, recent_most: most, counts }) {
  const view = parts(one("#rates"));
  setText(view.whole, ratePercent(whole));
  setText(view.wholeNote, whole.placed ? `${count(whole.agree)} of ${count(whole.placed)} pods` : "no pod placed yet");
  setText(view.recent, ratePercent(recent));
  setText(view.recentNote, recent.placed ? `of the last ${count(recent.placed)} pods` : `of the last ${count(most)} pods`);
  const left = [
    [counts.daemon_set, "of DaemonSets"],
    [counts.preset, "made with a node"],
  ].filter(([number]) => number).map(([number, words]) => `${count(number)} ${words}`);
  setText(view.left, left.length ? `Left out: ${left.join(", ")}.` : "");
}

function drawTallies(counts, chosen) {
  keepChildren(one("#tallies"), tallies(counts), () => stamp("tally-template"), (button, tally) => {
    const text = parts(button);
    button.dataset.verdict = tally.verdict;
    button.dataset.outcome = tally.kind;
    button.setAttribute("aria-pressed", String(tally.verdict === chosen));
    button.classList.toggle("total-zero", tally.count === 0);
    setText(text.count, count(tally.count));
    setText(text.word, tally.word);
  });
}

function drawRow(tr, row, base) {
  const text = parts(tr);
  text.pod.href = `${base}observe/${row.id}/`;
  setText(text.pod, row.pod);
  text.pod.title = `${row.pod}, for ${row.scheduler}`;
  setText(text.ours, row.ours || "–");
  setText(text.actual, row.actual || "–");
  text.verdict.dataset.outcome = verdictKind(row.verdict);
  setText(text.verdict, verdictWord(row.verdict));
  setCut(text.why, row.why);
  setText(text.at, clockTime(row.at));
}

if (one("#observe-table")) new ObservePage().start();
else startRunPage({});
