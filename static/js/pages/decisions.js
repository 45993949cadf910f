/** Every decision of the run: searched on the server, the newest ones live. */
import { outcomeKind, outcomeWord, whyOf } from "../cycle_row.js";
import { clockTime, count, milliseconds } from "../format.js";
import { debounce, keepChildren, one, parts, setHidden, setText, stamp } from "../lib/dom.js";
import { matches, mergeRows } from "../decision_list.js";
import { startRunPage } from "../shell.js";

const LIMIT = 100;
const TYPING_MS = 250;

class DecisionsPage {
  #form = one("#decisions-form");
  #more = one("#decisions-more");
  #shell;
  #rows = [];
  #complete = false;
  #request = 0;

  start() {
    this.#shell = startRunPage({
      topics: ["cycles"],
      change: (data, topics) => {
        if (topics.has("cycles")) this.#pushed(data.cycles.cycles);
      },
      failed: () => false,
    });
    this.#form.addEventListener("submit", (event) => event.preventDefault());
    this.#form.addEventListener("input", debounce(() => this.#search(), TYPING_MS));
    this.#more.addEventListener("click", () => this.#load(this.#rows.at(-1)?.sequence));
    this.#search();
  }

  get #filter() {
    return { q: this.#form.elements.q.value.trim(), outcome: this.#form.elements.outcome.value };
  }

  #search() {
    this.#rows = [];
    const query = new URLSearchParams(Object.entries(this.#filter).filter(([, value]) => value)).toString();
    history.replaceState(null, "", query ? `?${query}` : location.pathname);
    this.#load();
  }

  async #load(before) {
    this.#request += 1;
    const request = this.#request;
    this.#more.disabled = true;
    try {
      const { cycles } = await this.#shell.api.get("cycles", { ...this.#filter, before, limit: LIMIT });
      if (request !== this.#request) return;
      this.#rows = mergeRows(this.#rows, cycles);
      this.#complete = cycles.length < LIMIT;
      this.#shell.notices.clear("search");
      this.#draw();
    } catch (error) {
      this.#shell.notices.set("search", { text: `The decisions could not be loaded: ${error.message}`, bad: true, action: { label: "Try again", run: () => this.#load(before) } });
    } finally {
      this.#more.disabled = false;
    }
  }

  /** New rows that match the search join the list; known ones (a binding ended) are replaced. */
  #pushed(cycles) {
    const newest = this.#rows[0]?.sequence ?? 0;
    const known = new Set(this.#rows.map((row) => row.sequence));
    const filter = this.#filter;
    const news = cycles.filter((row) => known.has(row.sequence) || (row.sequence > newest && matches(row, filter)));
    if (news.length === 0) return;
    this.#rows = mergeRows(this.#rows, news);
    this.#draw();
  }

  #draw() {
    const { base } = this.#shell.page;
    keepChildren(one("#decisions"), this.#rows, () => stamp("decision-row-template"), (tr, row) => {
      const text = parts(tr);
      text.sequence.href = `${base}cycles/${row.sequence}/`;
      setText(text.sequence, row.sequence);
      setText(text.pod, row.pod);
      setText(text.attempt, row.attempt);
      text.outcome.dataset.outcome = outcomeKind(row);
      setText(text.outcome, outcomeWord(row));
      setText(text.why, whyOf(row));
      text.why.title = row.message;
      setText(text.feasible, `${count(row.nodes_feasible)}/${count(row.nodes_total)}`);
      setText(text.score, row.score === null ? "–" : count(row.score));
      setText(text.took, milliseconds(row.duration_ms));
      setText(text.at, clockTime(row.started_at));
    });
    this.#drawState();
  }

  #drawState() {
    const { q, outcome } = this.#filter;
    const searching = Boolean(q || outcome);
    const empty = one("#decisions-empty");
    const text = parts(empty);
    setHidden(empty, this.#rows.length > 0);
    setText(text.title, searching ? "Nothing matches" : "No decision yet");
    setText(text.text, searching ? "No decision of this run has such a pod, node or outcome." : "The first one appears here when the scheduler tries a pod.");
    setHidden(this.#more, this.#complete || this.#rows.length === 0);
    setText(one("#decisions-note"), this.#rows.length ? `${count(this.#rows.length)} shown, newest first${this.#complete ? "" : "; there are more"}` : "");
  }
}

new DecisionsPage().start();
