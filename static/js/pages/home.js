/** Clusters and sandboxes, kept up to date, and the form that starts a sandbox. */
import { Api } from "../api.js";
import { plural } from "../format.js";
import { keepChildren, one, parts, setHidden, setText, stamp } from "../lib/dom.js";
import { startChrome } from "../shell.js";

const REFRESH_MS = 3_000;
const KINDS = { sandbox: "sandbox", kube: "Kubernetes cluster" };

startChrome();
const api = new Api("/api/", one('meta[name="csrf-token"]').content);

async function refresh() {
  try {
    const { clusters } = await api.get("clusters");
    show(clusters);
  } catch (error) {
    setText(one("#clusters-note"), error.message);
  }
}

function show(clusters) {
  setText(one("#clusters-note"), clusters.length ? plural(clusters.length, "cluster") : "");
  setHidden(one("#clusters-empty"), clusters.length > 0);
  setHidden(one("#clusters"), clusters.length === 0);
  keepChildren(one("#clusters"), clusters, () => stamp("cluster-template"), (item, cluster) => {
    const text = parts(item);
    setText(text.name, cluster.name);
    if (cluster.url) text.name.href = cluster.url;
    else text.name.removeAttribute("href");
    setText(text.kind, KINDS[cluster.kind] ?? cluster.kind);
    if (cluster.page) text.kind.href = cluster.page;
    else text.kind.removeAttribute("href");
    setText(text.note, noteOf(cluster));
    const state = cluster.state || "no run";
    text.state.dataset.state = state;
    setText(text.state, state);
  });
}

function noteOf({ preset, clock_mode: mode, speed, message, totals, mode: does }) {
  const scaled = mode === "scaled" ? `clock at ${speed} × real time` : "";
  const clock = mode === "max" ? "clock as fast as possible" : scaled;
  const placed = totals && does !== "observe" ? `${plural(totals.bound, "pod")} bound` : "";
  return [preset, clock, placed, does === "observe" ? "observes" : "", message].filter(Boolean).join(" · ");
}

class SandboxForm {
  #form;
  #button;

  constructor(form) {
    this.#form = form;
    this.#button = form.querySelector("[type=submit]");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
  }

  async #submit() {
    this.#showErrors({});
    this.#button.disabled = true;
    setText(this.#button, "Starting…");
    const { name, preset, speed } = this.#form.elements;
    try {
      const answer = await api.post("sandboxes", { name: name.value.trim(), preset: preset.value, speed: speed.value === "max" ? "max" : Number(speed.value) });
      location.assign(answer.url);
    } catch (error) {
      this.#showErrors(error.body?.errors ?? { "": [error.message] });
      this.#button.disabled = false;
      setText(this.#button, "Start");
    }
  }

  /** errors: {field: [text]}; what belongs to no field of the form is shown above the button. */
  #showErrors(errors) {
    const places = new Map([...this.#form.querySelectorAll("[data-error]")].map((place) => [place.dataset.error, place]));
    const texts = new Map([...places.keys()].map((field) => [field, []]));
    for (const [field, messages] of Object.entries(errors)) texts.get(texts.has(field) ? field : "").push(...messages);
    for (const [field, place] of places) {
      setText(place, texts.get(field).join(" "));
      setHidden(place, texts.get(field).length === 0);
      const input = field && this.#form.elements[field];
      if (input instanceof Element) input.setAttribute("aria-invalid", String(texts.get(field).length > 0));
    }
    this.#form.querySelector('[aria-invalid="true"]')?.focus();
  }
}

const form = one("#sandbox-form");
if (form) new SandboxForm(form);
refresh();
setInterval(() => {
  if (!document.hidden) refresh();
}, REFRESH_MS);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refresh();
});
