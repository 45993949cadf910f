/** Approve or deny, a pod or a gang: asks for the comment, sends, and says when it was too late. */
import { plural } from "./format.js";
import { parts, setHidden, setText } from "./lib/dom.js";
import { resultInWords } from "./waiting_groups.js";

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
      body: { pods: [row.id], verdict },
      ids: [row.id],
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
      body: { pod_group: gang.name, verdict },
      ids: gang.rows.map((row) => row.id),
      title: `${approve ? "Approve" : "Deny"} the gang ${gang.name}?`,
      text: approve
        ? `All ${pods} that wait are approved.${gang.waiting < gang.minMember ? ` ${gang.minMember - gang.waiting} more must still find a node before any is bound.` : ""}`
        : `All ${pods} give up their nodes and go back to the queue.`,
    });
  }

  #open(request) {
    this.#request = request;
    const { title, text, comment, confirm, cancel } = this.#parts;
    const approve = request.body.verdict === "approve";
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
    this.#dialog.showModal();
    (approve ? confirm : comment).focus();
  }

  async #submit() {
    const { body, ids } = this.#request;
    const { confirm, comment } = this.#parts;
    if (confirm.disabled || confirm.hidden) return;
    confirm.disabled = true;
    try {
      const answer = await this.#api.post("waiting/decide", { ...body, comment: comment.value.trim() });
      const taken = answer.results.filter((result) => result.ok).map((result) => result.id);
      this.#sent(taken, body.verdict, resultInWords(answer.results, body.verdict).text);
      this.#dialog.close();
    } catch (error) {
      const results = error.body?.results;
      this.#fail(results ? resultInWords(results, body.verdict).text : error.message);
      confirm.disabled = false;
      if (error.status === 409) this.#over(ids);
    }
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
