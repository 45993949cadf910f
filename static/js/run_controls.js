/** The state pill, and Start / Pause / Resume / Stop for those who may. */
import { one, setHidden, setText } from "./lib/dom.js";

/** Which actions make sense, by the state that is wanted and the one that is. Pure. */
export function actionsFor({ state, desired_state: desired }) {
  if (desired === "stopped" || state === "failed") return ["start"];
  if (desired === "paused") return ["resume", "stop"];
  return ["pause", "stop"];
}

/** The pill's word: what is, and where it is going while that differs. Pure. */
export function stateWord({ state, desired_state: desired }) {
  if (state === "failed" || !desired || state === desired) return state;
  const going = { running: "starting", paused: "pausing", stopped: "stopping" };
  if (state === "paused" && desired === "running") return "resuming";
  return going[desired] ?? state;
}

const NOTES = {
  stopped: "The scheduler is stopped: nothing is placed, and waiting pods keep waiting.",
  paused: "The scheduler is paused: nothing new is tried; waiting pods and their deadlines go on.",
};
/** Of a run that only observes. */
const OBSERVER_NOTES = {
  stopped: "The observer is stopped: pods that are placed meanwhile are not judged.",
  paused: "The observer is paused: pods that are placed meanwhile are not judged.",
};

export class RunControls {
  #api;
  #page;
  #notices;
  #applied;
  #pill = one("#run-state");
  #buttons = [...document.querySelectorAll("#run-controls [data-action]")];
  #run = {};

  constructor({ api, page, notices, applied }) {
    this.#api = api;
    this.#page = page;
    this.#notices = notices;
    this.#applied = applied;
    for (const button of this.#buttons) button.addEventListener("click", () => this.#act(button.dataset.action));
  }

  show(run) {
    this.#run = run;
    const word = stateWord(run);
    this.#pill.dataset.state = word;
    setText(this.#pill, word);
    const actions = actionsFor(run);
    for (const button of this.#buttons) setHidden(button, !actions.includes(button.dataset.action));
    this.#note(run);
  }

  #note({ state, desired_state: desired, message, lease }) {
    const text = noteFor({ state, desired, message, lease, mode: this.#page.mode });
    if (!text) {
      this.#notices.clear("run");
      return;
    }
    const [first] = actionsFor(this.#run);
    const label = { start: "Start", resume: "Resume" }[first];
    const action = this.#page.mayControl && label ? { label, run: () => this.#act(first) } : null;
    this.#notices.set("run", { text, bad: state === "failed", action });
  }

  async #act(action) {
    this.#buttons.forEach((button) => {
      button.disabled = true;
    });
    try {
      this.#applied(await this.#api.post("control", { action }));
      this.#notices.clear("control");
    } catch (error) {
      this.#notices.set("control", { text: `${action} did not work: ${error.message}`, bad: true });
    } finally {
      this.#buttons.forEach((button) => {
        button.disabled = false;
      });
    }
  }
}

/** The line to show for a run that is not simply running, or "". Pure. */
export function noteFor({ state, desired, message, lease, mode }) {
  const who = mode === "observe" ? "observer" : "scheduler";
  const note = (mode === "observe" ? OBSERVER_NOTES : NOTES)[state];
  if (state === "failed") return `The ${who} has failed${message ? `: ${message}` : "."}`;
  if (state === desired && note) return message ? `${note} ${message}` : note;
  if (desired === "running" && state === "running" && lease && !lease.fresh) {
    return `The ${who}'s worker does not answer; another takes over within seconds.`;
  }
  return "";
}
