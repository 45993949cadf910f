/** Approve or deny a pod, a gang or a selection: asks for the comment, sends, says when it was too late. */
import { factsInWords } from "./approval_words.js";
import { count, plural } from "./format.js";
import { parts, setHidden, setText } from "./lib/dom.js";
import { resultInWords } from "./waiting_words.js";

/** Pods in one request: the server decides them in one transaction, which others wait for. */
const PODS_AT_ONCE = 500;

export class DecideDialog {
  #dialog;
  #parts;
  #api;
  #sent;
  #request = null;

  /** `sent(ids, verdict, words)` is called once the server has taken the decision. */
  constructor(dialog, api, sent) {
    this.#dialog = dialog;
    this.#parts = parts(dialog);
    this.#api = api;
    this.#sent = sent;
    this.#parts.cancel.addEventListener("click", () => dialog.close());
    dialog.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
  }

  forPod(row, verdict) {
    const approve = verdict === "approve";
    this.#open({
      verdict,
      targets: [{ pods: [row.id] }],
      ids: [row.id],
      facts: row.id,
      title: `${approve ? "Approve" : "Deny"} ${row.pod}?`,
      text: approve
        ? `It holds ${row.node} and is bound there once every plugin has allowed it.`
        : `It gives up ${row.node} and goes back to the queue.${row.pod_group ? ` It belongs to the gang ${row.pod_group}, which may break up.` : ""}`,
    });
  }

  forGang(gang, verdict) {
    const approve = verdict === "approve";
    const pods = plural(gang.rows.length, "pod");
    this.#open({
      verdict,
      targets: [{ pod_group: gang.name }],
      ids: gang.rows.map((row) => row.id),
      facts: gang.rows[0]?.id,
      title: `${approve ? "Approve" : "Deny"} the gang ${gang.name}?`,
      text: approve
        ? `All ${pods} that wait are approved.${gang.waiting < gang.minMember ? ` ${gang.minMember - gang.waiting} more must still find a node before any is bound.` : ""}`
        : `All ${pods} give up their nodes and go back to the queue.`,
    });
  }

  forSelection(rows, verdict) {
    const approve = verdict === "approve";
    const ids = rows.map((row) => row.id);
    const nodes = new Set(rows.map((row) => row.node)).size;
    const gangs = new Set(rows.filter((row) => row.pod_group).map((row) => row.pod_group)).size;
    const places = ids.length === 1 ? `It holds ${rows[0].node}` : `They hold room on ${plural(nodes, "node")}`;
    this.#open({
      verdict,
      targets: chunks(ids).map((pods) => ({ pods })),
      ids,
      title: `${approve ? "Approve" : "Deny"} ${plural(ids.length, "pod")}?`,
      text: approve
        ? `${places}. A pod is bound once every plugin has allowed it.`
        : `${places}, which they give up, and go back to the queue.${gangs ? ` ${plural(gangs, "gang")} may break up.` : ""}`,
    });
  }

  #open(request) {
    this.#request = request;
    const { title, text, comment, confirm, cancel } = this.#parts;
    const approve = request.verdict === "approve";
    setText(title, request.title);
    setText(text, request.text);
    comment.value = "";
    setText(confirm, approve ? "Approve" : "Deny");
    confirm.classList.toggle("button-danger", !approve);
    confirm.classList.toggle("button-main", approve);
    confirm.disabled = false;
    setHidden(confirm, false);
    setText(cancel, "Cancel");
    this.#fail("");
    this.#showFacts(request);
    this.#dialog.showModal();
    (approve ? confirm : comment).focus();
  }

  /** What there is to know comes a moment later; deciding does not wait for it. */
  async #showFacts(request) {
    const { facts } = this.#parts;
    facts.replaceChildren();
    setHidden(facts, true);
    if (!request.facts) return;
    const found = await this.#api.get(`waiting/${request.facts}`).catch(() => null);
    if (found === null || this.#request !== request) return;
    facts.replaceChildren(...factsInWords(found).map(line));
    setHidden(facts, false);
  }

  async #submit() {
    const { verdict, targets, ids } = this.#request;
    const { confirm, comment } = this.#parts;
    if (confirm.disabled || confirm.hidden) return;
    confirm.disabled = true;
    const results = [];
    try {
      for (const target of targets) {
        results.push(...(await this.#post({ ...target, verdict, comment: comment.value.trim() })));
        if (targets.length > 1) setText(confirm, `${count(results.length)} of ${count(ids.length)} …`);
      }
    } catch (error) {
      this.#stopped(error, results, verdict);
      return;
    }
    this.#answered(results, verdict);
  }

  /** The results, also where none of these pods could be decided. */
  async #post(body) {
    try {
      return (await this.#api.post("waiting/decide", body)).results;
    } catch (error) {
      if (error.status === 409 && error.body.results) return error.body.results;
      throw error;
    }
  }

  #answered(results, verdict) {
    const { done, text } = resultInWords(results, verdict);
    if (done === 0) {
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
      this.#request.targets = chunks(this.#request.ids).map((pods) => ({ pods }));
    }
    const before = done.length ? `${plural(done.length, "pod")} sent, then: ` : "";
    this.#fail(`${before}${error.message}`);
    setText(this.#parts.confirm, verdict === "approve" ? "Approve" : "Deny");
    this.#parts.confirm.disabled = false;
    if (error.status === 409) this.#over();
  }

  #tell(results, verdict, words) {
    this.#sent(results.filter((result) => result.ok).map((result) => result.id), verdict, words);
  }

  /** Lost the race: there is nothing left to confirm. */
  #over() {
    setHidden(this.#parts.confirm, true);
    setText(this.#parts.cancel, "Close");
    this.#parts.cancel.focus();
  }

  #fail(text) {
    setText(this.#parts.error, text);
    setHidden(this.#parts.error, !text);
  }
}

function line(text) {
  const item = document.createElement("li");
  item.textContent = text;
  return item;
}

function chunks(ids) {
  const found = [];
  for (let start = 0; start < ids.length; start += PODS_AT_ONCE) found.push(ids.slice(start, start + PODS_AT_ONCE));
  return found;
}
