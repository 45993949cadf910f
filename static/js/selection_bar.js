/** The line above a list with which all that is shown is chosen, and what is chosen is decided. */
import { count, plural } from "./format.js";
import { parts, setHidden, setText } from "./lib/dom.js";

export class SelectionBar {
  #root;
  #parts;

  /** actions: {all(chosen), approve(), deny(), clear()}. */
  constructor(root, actions) {
    this.#root = root;
    this.#parts = parts(root);
    this.#parts.all.addEventListener("change", () => actions.all(this.#parts.all.checked));
    this.#parts.approve.addEventListener("click", actions.approve);
    this.#parts.deny.addEventListener("click", actions.deny);
    this.#parts.clear.addEventListener("click", actions.clear);
  }

  /** `state`: "all", "some" or "none" of the `shown` rows are chosen; `approvable` of the `chosen` ones. */
  show({ shown, filtered, state, chosen, approvable }) {
    const { all, label, note, approve, deny, clear } = this.#parts;
    setHidden(this.#root, shown === 0 && chosen === 0);
    setCheckbox(all, state);
    all.disabled = shown === 0;
    setText(label, `Select ${filtered ? "the" : "all"} ${count(shown)}${filtered ? " shown" : ""}`);
    setText(note, chosen ? `${plural(chosen, "pod")} selected` : "");
    for (const button of [approve, deny, clear]) setHidden(button, chosen === 0);
    setHidden(approve, approvable === 0);
    setText(approve, `Approve ${count(approvable)}`);
    setText(deny, `Deny ${count(chosen)}`);
  }
}

/** Show "all", "some" or "none" in a checkbox. */
export function setCheckbox(box, state) {
  box.checked = state === "all";
  box.indeterminate = state === "some";
}
