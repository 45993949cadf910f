/**
 * Shows what there is to know of a pod, a gang or a selection, asks for the comment, sends the word,
 * and says when it was too late; also where that happens while the dialog is open.
 */
import { factsOf, factsOfRows } from "./approval_words.js";
import { DecideFacts } from "./decide_facts.js";
import { ACTS, inPortions, meanwhile, requestForGang, requestForPod, requestForSelection } from "./decide_request.js";
import { countdown, count, plural } from "./format.js";
import { parts, setHidden, setText } from "./lib/dom.js";
import { isOpen } from "./store.js";
import { atDeadline, isApplied, resultInWords } from "./waiting_words.js";

const HURRY_SECONDS = 30;

function waits(row) {
  return Boolean(row) && isOpen(row);
}

export class DecideDialog {
  #dialog;
  #parts;
  #api;
  #clock;
  #row;
  #sent;
  #facts;
  #request = null;
  #sending = false;
  /** The server has said why not: its word stands. */
  #answeredNo = false;
  #asking = false;
  #commits = "";
  #clicked = new Map();

  /**
   * `row(id)` gives a wait as it is now, ended ones included; `sent(ids, verdict, words, commits)` is
   * called once the server has taken the decision; `commits`: id -> commit of its row at the click.
   */
  constructor(dialog, { api, clock, row, sent }) {
    this.#dialog = dialog;
    this.#parts = parts(dialog);
    this.#api = api;
    this.#clock = clock;
    this.#row = row;
    this.#sent = sent;
    this.#facts = new DecideFacts(this.#parts.facts);
    this.#parts.cancel.addEventListener("click", () => dialog.close());
    // What is on its way cannot be called back: its answer is waited for.
    dialog.addEventListener("cancel", (event) => {
      if (this.#sending) event.preventDefault();
    });
    dialog.addEventListener("close", () => {
      this.#request = null;
    });
    dialog.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
  }

  forPod(row, verdict) {
    this.#open(requestForPod(row, verdict));
  }

  forGang(gang, verdict) {
    this.#open(requestForGang(gang, verdict));
  }

  forSelection(rows, verdict) {
    this.#open(requestForSelection(rows, verdict));
  }

  /** Rows have changed: of some of these pods it may be decided already, or time may be over. */
  rowsChanged() {
    if (!this.#request || this.#sending) return;
    const rows = this.#rows();
    if (!this.#answeredNo) this.#tellMeanwhile(rows);
    if (!rows.some(waits)) this.#hideFacts();
    else if (this.#commitsOf(rows) !== this.#commits) this.#loadFacts(this.#request);
  }

  /** What became of the pods that cannot be decided so any more; whether there is one. */
  #tellMeanwhile(rows) {
    const { left, text } = meanwhile(rows, this.#request.verdict);
    if (text) this.#fail(text);
    if (left === 0) this.#over();
    return text !== "";
  }

  /** Time goes by. */
  tick() {
    if (!this.#request) return;
    const { left } = this.#parts;
    const open = this.#rows().filter((row) => waits(row) && (row.state === "waiting" || isApplied(row)));
    setHidden(left, open.length === 0);
    if (open.length === 0) return;
    const first = open.reduce((a, b) => (b.deadline < a.deadline ? b : a));
    const seconds = this.#clock.until(first.deadline);
    setText(left, seconds > 0 ? `${countdown(seconds)} left, ${atDeadline(first)}` : "Its time is up");
    left.classList.toggle("dialog-hurry", seconds < HURRY_SECONDS);
  }

  #rows() {
    return this.#request.ids.map((id) => this.#row(id));
  }

  #open(request) {
    this.#request = request;
    this.#sending = this.#answeredNo = false;
    const { title, text, comment, commentField, confirm, cancel, facts } = this.#parts;
    const { verdict } = request;
    const looks = verdict === "look";
    setText(title, request.title);
    setText(text, request.text);
    setHidden(text, !request.text);
    comment.value = "";
    setHidden(commentField, looks || verdict === "revoke");
    setText(confirm, ACTS[verdict] ?? "");
    confirm.classList.toggle("button-danger", verdict === "deny");
    confirm.classList.toggle("button-main", verdict !== "deny");
    confirm.disabled = false;
    setHidden(confirm, looks);
    setText(cancel, looks ? "Close" : "Cancel");
    this.#fail("");
    this.#why("");
    setHidden(facts, true);
    this.#loadFacts(request);
    this.tick();
    this.#dialog.showModal();
    facts.scrollTop = 0;
    ({ deny: comment }[verdict] ?? (looks ? cancel : confirm)).focus();
  }

  /** What there is to know comes a moment later; deciding does not wait for it. */
  async #loadFacts(request) {
    const rows = this.#rows();
    this.#commits = this.#commitsOf(rows);
    if (!request.facts) {
      this.#showFacts(factsOfRows(rows.filter(Boolean)));
      return;
    }
    if (this.#asking) return;
    this.#asking = true;
    // Of a gang the first member that still waits knows the others.
    const asked = rows.find((row) => row && isOpen(row))?.id ?? request.facts;
    const found = await this.#api.get(`waiting/${asked}`).catch(() => null);
    this.#asking = false;
    if (this.#request !== request) {
      if (this.#request) this.#loadFacts(this.#request);
      return;
    }
    if (found === null || !this.#rows().some(waits)) return;
    this.#showFacts(factsOf(found, Boolean(request.gang && found.gang)));
    this.#why(request.verdict === "approve" ? found.may.why : "");
    if (this.#commitsOf(this.#rows()) !== this.#commits) this.#loadFacts(request);
  }

  #showFacts(facts) {
    this.#facts.show(facts);
    setHidden(this.#parts.facts, false);
  }

  /** Nothing of it waits any more: what it holds and asks for is no longer so. */
  #hideFacts() {
    const { facts, left, text } = this.#parts;
    for (const part of [facts, left, text]) setHidden(part, true);
  }

  #commitsOf(rows) {
    return rows.map((row) => row?.commit_seq ?? 0).join();
  }

  async #submit() {
    const { verdict, targets, ids } = this.#request;
    const { confirm, comment, cancel } = this.#parts;
    if (confirm.disabled || confirm.hidden) return;
    confirm.disabled = cancel.disabled = true;
    this.#sending = true;
    this.#clicked = new Map(ids.map((id) => [id, this.#row(id)?.commit_seq]));
    const results = [];
    try {
      for (const target of targets) {
        results.push(...(await this.#post({ ...target, verdict, comment: comment.value.trim() })));
        if (targets.length > 1) setText(confirm, `${count(results.length)} of ${count(ids.length)} …`);
      }
    } catch (error) {
      this.#stopped(error, results, verdict);
      return;
    } finally {
      this.#sending = cancel.disabled = false;
    }
    this.#answered(results, verdict);
  }

  /** The results, also where none of these pods could be decided. */
  async #post(body) {
    try {
      return (await this.#api.post("waiting/decide", body)).results;
    } catch (error) {
      if ([403, 409].includes(error.status) && error.body.results) return error.body.results;
      throw error;
    }
  }

  #answered(results, verdict) {
    const { done, text } = resultInWords(results, verdict);
    if (done === 0) {
      this.#answeredNo = true;
      this.#fail(text);
      this.#over();
      return;
    }
    this.#tell(results, verdict, text);
    this.#dialog.close();
  }

  /** What was sent before the fault holds; the rest can be tried again. */
  #stopped(error, results, verdict) {
    const done = results.filter((result) => result.ok);
    if (done.length) {
      this.#tell(results, verdict, "");
      const known = new Set(results.map((result) => result.id));
      this.#request.ids = this.#request.ids.filter((id) => !known.has(id));
      this.#request.targets = inPortions(this.#request.ids);
    }
    const before = done.length ? `${plural(done.length, "pod")} sent, then: ` : "";
    this.#fail(`${before}${error.message}`);
    setText(this.#parts.confirm, ACTS[verdict]);
    this.#parts.confirm.disabled = false;
    if (error.status === 409) this.#over();
    // Nothing of it waits any more: what is known here says what became of it, now or in a moment.
    if (error.status === 404 && !this.#tellMeanwhile(this.#rows())) this.#over();
  }

  #tell(results, verdict, words) {
    this.#sent(results.filter((result) => result.ok).map((result) => result.id), verdict, words, this.#clicked);
  }

  /** Lost the race, or time is over: there is nothing left to confirm. */
  #over() {
    const { confirm, cancel, commentField } = this.#parts;
    if (confirm.hidden) return;
    setHidden(confirm, true);
    setHidden(commentField, true);
    setText(cancel, "Close");
    cancel.focus();
  }

  #fail(text) {
    setText(this.#parts.error, text);
    setHidden(this.#parts.error, !text);
  }

  /** Why this person's approval will not count; the server has the last word. */
  #why(text) {
    setText(this.#parts.why, text);
    setHidden(this.#parts.why, !text);
    if (text) this.#parts.confirm.disabled = true;
  }
}
