/** One cycle in full. */
import { outcomeKind, outcomeWord, whyOf } from "../cycle_row.js";
import { choiceInWords, timelineOf } from "../decision_detail.js";
import { drawFilter } from "../decision_filter.js";
import { drawScores } from "../decision_scores.js";
import { clockTime, count, milliseconds, plural } from "../format.js";
import { PluginPalette } from "../heatmap/lut.js";
import { keepChildren, one, parts, setHidden, setText, stamp } from "../lib/dom.js";
import { startRunPage } from "../shell.js";

const NO_MATRIX = {
  dropped: "Its matrix was dropped under load.",
  expired: "Its matrix is no longer kept.",
  none: "No node was looked at.",
};

class DecisionPage {
  #sequence = Number(document.body.dataset.sequence);
  #shell;
  #view = parts(one("#decision"));
  #commit = -1;
  #uid = null;
  #palette = new PluginPalette();

  start() {
    this.#shell = startRunPage({
      topics: ["cycles"],
      change: (data, topics) => {
        if (topics.has("cycles")) this.#pushed(data.cycles.cycles);
      },
    });
    this.#link("#earlier-cycle", this.#sequence - 1);
    this.#link("#later-cycle", this.#sequence + 1);
    this.#load();
  }

  /** The binding's end, or another attempt of the pod, comes later than the cycle. */
  #pushed(cycles) {
    const row = cycles.find((one) => one.sequence === this.#sequence);
    const attempt = cycles.find((one) => one.uid === this.#uid && one.commit_seq > this.#commit);
    if ((row && row.commit_seq > this.#commit) || attempt) this.#load();
  }

  async #load() {
    try {
      const cycle = await this.#shell.api.get(`cycles/${this.#sequence}`);
      this.#uid = cycle.uid;
      this.#commit = Math.max(cycle.commit_seq, ...cycle.attempts.map((attempt) => attempt.commit_seq));
      setHidden(one("#decision-missing"), true);
      setHidden(one("#decision"), false);
      this.#draw(cycle);
    } catch (error) {
      this.#missing(error);
    }
  }

  #missing(error) {
    const text = parts(one("#decision-missing"));
    const later = error.status === 404;
    setHidden(one("#decision-missing"), false);
    setHidden(one("#decision"), true);
    setText(one("#decision-note"), "");
    setText(text.title, later ? `There is no cycle ${count(this.#sequence)}` : "The decision could not be loaded");
    setText(text.text, later ? "It may come yet: this page shows it as soon as it is recorded." : error.message);
  }

  #link(selector, sequence) {
    const link = one(selector);
    setHidden(link, sequence < 1);
    link.href = `${this.#shell.page.base}cycles/${sequence}/`;
  }

  #draw(cycle) {
    setText(one("#decision-note"), `${cycle.pod}, attempt ${cycle.attempt}, ${clockTime(cycle.started_at)}`);
    this.#drawChoice(cycle);
    this.#drawTimeline(cycle);
    drawFilter(this.#view, cycle, this.#palette);
    drawScores(this.#view, cycle);
    this.#drawAttempts(cycle);
  }

  #drawChoice(cycle) {
    const view = this.#view;
    view.outcome.dataset.outcome = outcomeKind(cycle);
    setText(view.outcome, outcomeWord(cycle));
    setText(view.node, cycle.node);
    setText(view.words, choiceInWords(cycle));
    setText(view.message, cycle.message);
    setHidden(view.message, !cycle.message);
    keepChildren(view.facts, factsOf(cycle), () => stamp("fact-template"), (item, [name, value]) => {
      const text = parts(item);
      setText(text.name, name);
      setText(text.value, value);
    });
    const kept = cycle.matrix === "kept";
    view.heatmap.href = `${this.#shell.page.base}heatmap/?cycle=${cycle.sequence}`;
    setHidden(view.heatmap, !kept);
    setHidden(view.nomap, kept);
    setText(view.nomap, NO_MATRIX[cycle.matrix] ?? "");
  }

  #drawTimeline(cycle) {
    const points = timelineOf(cycle);
    setText(this.#view.timeNote, `${milliseconds(cycle.duration_ms)}; bars compare within the scheduling cycle and within the binding; open a point for its plugins`);
    keepChildren(this.#view.timeline, points, () => stamp("point-template"), (item, point) => {
      drawBar(parts(item), point.binding ? `${point.name} (binding)` : point.name, point);
      item.classList.toggle("point-binding", point.binding);
      item.classList.toggle("point-bare", point.plugins.length === 0);
      keepChildren(parts(item).plugins, point.plugins, () => stamp("point-plugin-template"), (line, plugin) => {
        drawBar(parts(line), plugin.name, plugin);
      });
    });
  }

  #drawAttempts(cycle) {
    const { base } = this.#shell.page;
    const latest = [...cycle.attempts].sort((a, b) => b.sequence - a.sequence);
    const tries = latest[0]?.attempt ?? 0;
    setText(this.#view.attemptsNote, tries > latest.length ? `the latest ${count(latest.length)} of ${count(tries)}` : plural(latest.length, "attempt"));
    keepChildren(this.#view.attempts, latest, () => stamp("attempt-template"), (item, attempt, i) => {
      const text = parts(item);
      const here = attempt.sequence === cycle.sequence;
      text.link.href = `${base}cycles/${attempt.sequence}/`;
      if (here) text.link.setAttribute("aria-current", "page");
      else text.link.removeAttribute("aria-current");
      setText(text.number, `attempt ${attempt.attempt}`);
      text.outcome.dataset.outcome = outcomeKind(attempt);
      setText(text.outcome, outcomeWord(attempt));
      const again = !here && isRepeated(attempt, latest[i - 1]);
      const why = again ? "the same reason" : whyOf(attempt);
      setText(text.why, here && attempt.message ? "this cycle: the reason stands above" : why);
      text.why.classList.toggle("attempt-again", again || (here && attempt.message !== ""));
      setText(text.at, `cycle ${count(attempt.sequence)}, ${clockTime(attempt.started_at)}`);
    });
  }
}

/** It failed for the reason that stands above it: to read it once is enough. */
function isRepeated(attempt, later) {
  return later !== undefined && !attempt.node && attempt.message !== "" && attempt.message === later.message;
}

function factsOf(cycle) {
  const { binding } = cycle;
  return [
    ["Pod", cycle.pod],
    ["Gang", cycle.pod_group],
    ["Profile", cycle.profile],
    ["Priority", count(cycle.priority)],
    ["Score", cycle.score === null ? "" : count(cycle.score)],
    ["Ties", cycle.ties > 1 ? count(cycle.ties) : ""],
    ["Binding", bindingInWords(cycle, binding)],
    ["Nominated node", cycle.nominated_node],
    ["Victims", (cycle.victims ?? []).join(", ")],
    ["Rejected by", cycle.plugin],
    ["Tried again when these change", (cycle.unschedulable_plugins ?? []).join(", ")],
  ].filter(([, value]) => value);
}

function bindingInWords(cycle, binding) {
  if (!binding) return cycle.outcome === "scheduled" ? "under way" : "";
  const took = binding.duration_ms ?? (binding.duration === undefined ? undefined : binding.duration * 1000);
  const time = took === undefined ? "" : ` in ${milliseconds(took)}`;
  return binding.bound ? `bound${time}` : `failed${binding.plugin ? ` at ${binding.plugin}` : ""}: ${binding.message}`;
}

function drawBar(text, name, { seconds, share }) {
  setText(text.name, name);
  setText(text.time, milliseconds(seconds * 1000));
  text.bar.style.width = `${Math.max(0.5, share * 100)}%`;
}

new DecisionPage().start();
