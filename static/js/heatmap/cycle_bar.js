/** The line that says which cycle is shown, and the buttons that change it. */
import { count, outcome } from "../format.js";
import { one, setText } from "../lib/dom.js";

export class CycleBar {
  #base;
  #line = one("#heat-cycle");
  #live = one("#heat-live");
  #pause = one("#heat-pause");
  #field = one("#heat-sequence");
  #sequence = null;
  #matrix = null;
  #mode = "live";
  #holding = false;

  /** actions: {base, live(), pause(), choose(sequence)}. */
  constructor({ base, live, pause, choose }) {
    this.#base = base;
    this.#live.addEventListener("click", live);
    this.#pause.addEventListener("click", () => (this.#mode === "live" ? pause() : live()));
    one("#heat-earlier").addEventListener("click", () => this.#step(-1, choose));
    one("#heat-later").addEventListener("click", () => this.#step(1, choose));
    one("#heat-goto").addEventListener("submit", (event) => {
      event.preventDefault();
      if (/^\d+$/.test(this.#field.value)) choose(Number(this.#field.value));
    });
  }

  show(matrix, mode) {
    this.#matrix = matrix;
    this.#sequence = matrix.sequence;
    this.#mode = mode;
    this.refresh();
  }

  paused() {
    this.#mode = "paused";
    this.refresh();
  }

  held(holding) {
    if (holding === this.#holding) return;
    this.#holding = holding;
    this.refresh();
  }

  loading(sequence) {
    if (this.#matrix) return;
    setText(this.#line, sequence === "latest" ? "Loading the latest cycle…" : `Loading cycle ${sequence}…`);
  }

  absent(sequence, mode) {
    this.#mode = mode;
    this.#matrix = null;
    if (sequence !== "latest") this.#sequence = sequence;
    setText(this.#line, "");
    this.refresh();
  }

  refresh() {
    this.#live.setAttribute("aria-pressed", String(this.#mode === "live"));
    this.#live.classList.toggle("button-main", this.#mode === "live");
    setText(this.#pause, this.#mode === "live" ? "Pause" : "Resume");
    if (document.activeElement !== this.#field) this.#field.value = this.#sequence ?? "";
    if (this.#matrix) this.#describe(this.#matrix);
  }

  #describe(matrix) {
    const link = document.createElement("a");
    link.href = `${this.#base}cycles/${matrix.sequence}/`;
    setText(link, `cycle ${count(matrix.sequence)}`);
    const pod = document.createElement("strong");
    setText(pod, matrix.pod);
    const end = matrix.node ? `${outcome(matrix.outcome)}, ${matrix.node}` : outcome(matrix.outcome);
    const held = this.#holding ? " · held" : "";
    this.#line.title = this.#holding ? "Later cycles wait while you look at this one" : "";
    this.#line.replaceChildren(link, " ", pod, ` ${end} · ${count(matrix.feasible)} of ${count(matrix.nodes)} nodes feasible${held}`);
  }

  #step(by, choose) {
    const next = (this.#sequence ?? 0) + by;
    if (next >= 1) choose(next);
  }
}
