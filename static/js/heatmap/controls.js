/** Sort, filter, scale and view: read from the form, remembered where that helps. */
import { debounce, one } from "../lib/dom.js";
import { remember, recall } from "../lib/storage.js";
import { PLUGIN_PREFIX, SORT_NAME, SORT_REJECTION, SORT_TOTAL } from "./order.js";

const TABLE_UP_TO_NODES = 40;
/** Narrower than this a table's names leave no room for its scores. */
const TABLE_FROM_PIXELS = 640;
const TYPING_MS = 120;

export class Controls {
  #form;
  #view = recall("heat-view");
  #changed;

  constructor(form, changed) {
    this.#form = form;
    this.#changed = changed;
    form.scale.value = recall("heat-scale") ?? "fixed";
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", debounce(() => this.#changed(), TYPING_MS));
    form.sort.addEventListener("change", () => remember("heat-sort", form.sort.value));
    form.scale.addEventListener("change", () => remember("heat-scale", form.scale.value));
    for (const button of form.querySelectorAll("[data-view]")) {
      button.addEventListener("click", () => this.#choose(button.dataset.view));
    }
  }

  /** {sort, name, show, scale} as the order and the model want it. */
  get filter() {
    const { sort, name, show, scale } = this.#form;
    return { sort: sort.value || SORT_TOTAL, name: name.value, show: show.value || "all", scale: scale.value };
  }

  /** "tiles" or "table": what the person chose, else what suits the number of nodes. */
  viewFor(nodes) {
    const suits = nodes <= TABLE_UP_TO_NODES && window.innerWidth >= TABLE_FROM_PIXELS;
    const view = this.#view ?? (suits ? "table" : "tiles");
    for (const button of this.#form.querySelectorAll("[data-view]")) {
      button.setAttribute("aria-pressed", String(button.dataset.view === view));
    }
    return view;
  }

  /** Offer the plugins of this matrix, keeping what is chosen. */
  offer(matrix) {
    const rejecting = [...new Set(matrix.reasons.map(([plugin]) => plugin))].sort();
    const scoring = matrix.scored ? matrix.plugins : [];
    setOptions(this.#form.sort, [
      [SORT_TOTAL, "best first"],
      ...scoring.map((name) => [PLUGIN_PREFIX + name, `by ${name}`]),
      [SORT_NAME, "by name"],
      [SORT_REJECTION, "rejected first"],
    ], recall("heat-sort"));
    setOptions(this.#form.show, [
      ["all", "all nodes"],
      ["feasible", "feasible"],
      ["rejected", "rejected"],
      ...rejecting.map((name) => [PLUGIN_PREFIX + name, `rejected by ${name}`]),
    ]);
  }

  clearFilter() {
    this.#form.name.value = "";
    this.#form.show.value = "all";
    this.#changed();
    one("[name=name]", this.#form).focus();
  }

  #choose(view) {
    this.#view = view;
    remember("heat-view", view);
    this.#changed();
  }
}

/** The chosen option stays, even in a cycle that does not have it: it would jump back otherwise. */
function setOptions(select, options, initial) {
  const chosen = select.options.length ? select.value : initial ?? options[0][0];
  const kept = options.some(([value]) => value === chosen) ? options : [...options, [chosen, chosen.replace(PLUGIN_PREFIX, "by ")]];
  const key = JSON.stringify(kept);
  if (select.dataset.key === key) return;
  select.dataset.key = key;
  select.replaceChildren(...kept.map(([value, label]) => new Option(label, value)));
  select.value = chosen;
}
