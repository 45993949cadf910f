/** Every decision of the run: searched on the server, the newest ones live. */
import { outcomeKind, outcomeWord, whyOf } from "../cycle_row.js";
import { setCut } from "../cut_text.js";
import { DecisionRows, matches, MOST_ROWS } from "../decision_list.js";
import { clockTime, count, milliseconds } from "../format.js";
import { debounce, one, parts, setHidden, setText, stamp } from "../lib/dom.js";
import { startRunPage } from "../shell.js";
import { VirtualTable } from "../virtual_table.js";

const FIRST = 100;
const EARLIER = 500;
const TYPING_MS = 250;

class DecisionsPage {
  #form = one("#decisions-form");
  #more = one("#decisions-more");
  #newer = one("#decisions-newer");
  #shell;
  #table;
  #known = new DecisionRows();
  /** New rows that wait while someone reads further down. */
  #held = new DecisionRows();
  /** Pod uid -> number of its newest attempt that was pushed, where only the latest are listed. */
  #newestOf = new Map();
  #complete = false;
  #request = 0;
  #skippedBefore = 0;
  #skipped = 0;

  start() {
    this.#shell = startRunPage({
      topics: ["cycles"],
      change: (data, topics) => {
        if (topics.has("cycles")) this.#pushed(data.cycles);
      },
      failed: () => false,
    });
    const { base } = this.#shell.page;
    this.#table = new VirtualTable(one("#decisions-table"), {
      create: () => stamp("decision-row-template"),
      render: (tr, index) => drawRow(tr, this.#known.rows[index], base),
      key: (index) => this.#known.rows[index].sequence,
    });
    this.#form.addEventListener("submit", (event) => event.preventDefault());
    this.#form.addEventListener("input", debounce(() => this.#search(), TYPING_MS));
    this.#more.addEventListener("click", () => this.#load(this.#known.rows.at(-1)?.sequence));
    this.#newer.addEventListener("click", () => this.#table.scrollToTop());
    addEventListener("scroll", () => this.#release(), { passive: true });
    this.#search();
  }

  get #filter() {
    const { q, outcome, attempts } = this.#form.elements;
    return { q: q.value.trim(), outcome: outcome.value, attempts: attempts.value };
  }

  #search() {
    this.#known = new DecisionRows();
    this.#held = new DecisionRows();
    this.#newestOf.clear();
    this.#skippedBefore += this.#skipped;
    this.#skipped = 0;
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
      const { cycles } = await this.#shell.api.get("cycles", { ...this.#filter, before, limit });
      if (request !== this.#request) return;
      this.#known.add(cycles);
      this.#complete = cycles.length < limit;
      this.#shell.notices.clear("search");
      this.#draw();
    } catch (error) {
      this.#shell.notices.set("search", { text: `The decisions could not be loaded: ${error.message}`, bad: true, action: { label: "Try again", run: () => this.#load(before) } });
    } finally {
      this.#more.disabled = false;
    }
  }

  /** New rows that match the search join the list; known ones (a binding ended) are replaced. */
  #pushed({ cycles, skipped }) {
    this.#skipped = skipped - this.#skippedBefore;
    const newest = this.#known.rows[0]?.sequence ?? 0;
    const filter = this.#filter;
    this.#known.add(cycles.filter((row) => this.#known.has(row.sequence)));
    this.#held.add(cycles.filter((row) => row.sequence > newest && matches(row, filter)));
    this.#held.trim(MOST_ROWS);
    if (filter.attempts) this.#noteNewest(cycles);
    if (!this.#table.isScrolled) this.#takeHeld();
    this.#draw();
  }

  /** The earlier attempts leave, those in the list once nobody reads further down. */
  #noteNewest(cycles) {
    for (const { uid, sequence } of cycles) if (!(this.#newestOf.get(uid) >= sequence)) this.#newestOf.set(uid, sequence);
    this.#held.keepNewest(this.#newestOf);
  }

  #release() {
    if ((this.#held.rows.length === 0 && this.#newestOf.size === 0) || this.#table.isScrolled) return;
    this.#takeHeld();
    this.#draw();
  }

  #takeHeld() {
    this.#known.add(this.#held.rows);
    this.#held = new DecisionRows();
    this.#known.keepNewest(this.#newestOf);
    this.#newestOf.clear();
    if (this.#known.trim(MOST_ROWS)) this.#complete = false;
  }

  #draw() {
    this.#table.setCount(this.#known.rows.length);
    const { q, outcome } = this.#filter;
    const searching = Boolean(q || outcome);
    const { length } = this.#known.rows;
    const empty = one("#decisions-empty");
    const text = parts(empty);
    setHidden(empty, length > 0);
    setText(text.title, searching ? "Nothing matches" : "No decision yet");
    setText(text.text, searching ? "No decision of this run has such a pod, node or outcome." : "The first one appears here when the scheduler tries a pod.");
    setHidden(this.#more, this.#complete || length === 0);
    setText(one("#decisions-note"), length ? noteOf(length, this.#complete, this.#skipped) : "");
    const held = this.#held.rows.length;
    setHidden(this.#newer, held === 0);
    setText(this.#newer, `${count(held)} newer`);
  }
}

function noteOf(shown, complete, skipped) {
  const missed = skipped > 0 ? `; ${count(skipped)} went by too fast to list here, a search finds them` : "";
  return `${count(shown)} shown, newest first${complete ? "" : "; there are more"}${missed}`;
}

function drawRow(tr, row, base) {
  const text = parts(tr);
  text.sequence.href = `${base}cycles/${row.sequence}/`;
  setText(text.sequence, row.sequence);
  setText(text.pod, row.pod);
  text.pod.title = row.pod;
  setText(text.attempt, row.attempt);
  text.outcome.dataset.outcome = outcomeKind(row);
  setText(text.outcome, outcomeWord(row));
  setCut(text.why, whyOf(row), row.message || whyOf(row));
  setText(text.feasible, `${count(row.nodes_feasible)}/${count(row.nodes_total)}`);
  setText(text.score, row.score === null ? "–" : count(row.score));
  setText(text.took, milliseconds(row.duration_ms));
  setText(text.at, clockTime(row.started_at));
}

new DecisionsPage().start();
