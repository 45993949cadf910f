/** Draws what surrounds the editor: faults, plugins by extension point, and the changes. */
import { diffKind, faultsInWords, moment } from "./config_words.js";
import { camelBreaks } from "./format.js";
import { keepChildren, one, parts, setHidden, setText, stamp } from "./lib/dom.js";

/** Each fault with its path; `jump(line)` is called for one whose line is known. */
export function drawFaults(faults, jump) {
  const root = one("#faults");
  const { title, list } = parts(root);
  setHidden(root, faults.length === 0);
  setText(title, faultsInWords(faults));
  list.replaceChildren(...faults.map((fault) => faultElement(fault, jump)));
}

function faultElement({ path, message, line }, jump) {
  const element = stamp("fault-template");
  const shown = parts(element);
  setText(shown.path, path);
  setHidden(shown.path, !path);
  setText(shown.message, message);
  if (line) {
    setHidden(shown.jump, false);
    setText(shown.jump, `line ${line}`);
    shown.jump.addEventListener("click", () => jump(line));
  }
  return element;
}

export function drawProfiles(profiles) {
  keepChildren(one("#profiles"), profiles, () => stamp("profile-template"), drawProfile);
}

function drawProfile(element, { name, percentage, points }) {
  const shown = parts(element);
  setText(shown.name, name);
  setText(shown.share, percentage === 0 ? "an adaptive share of the nodes is looked at" : `${percentage} % of the nodes are looked at`);
  keepChildren(shown.points, points, () => stamp("point-template"), drawPoint);
}

function drawPoint(row, { point, plugins }) {
  const shown = parts(row);
  setText(shown.point, point);
  setHidden(shown.none, plugins.length > 0);
  keepChildren(shown.plugins, plugins, () => stamp("plugin-template"), (item, { name, weight }) => {
    const text = parts(item);
    setText(text.name, camelBreaks(name));
    setText(text.weight, weight === null ? "" : `× ${weight}`);
    setHidden(text.weight, weight === null);
  });
}

export function drawChanges(changes) {
  setHidden(one("#changes-empty"), changes.length > 0);
  keepChildren(one("#changes"), changes, () => stamp("change-template"), drawChange);
}

const OUTCOMES = { applied: "scheduled", sent: "waiting", refused: "error" };

function drawChange(element, change) {
  const shown = parts(element);
  setText(shown.version, `Version ${change.version}`);
  setText(shown.by, change.by ? `by ${change.by}` : "");
  setText(shown.at, moment(change.at));
  shown.at.dateTime = new Date(change.at * 1000).toISOString();
  setText(shown.outcome, change.outcome_label);
  shown.outcome.dataset.outcome = OUTCOMES[change.outcome] ?? "skipped";
  setText(shown.comment, change.comment);
  setHidden(shown.comment, !change.comment);
  setText(shown.message, change.message);
  setHidden(shown.message, !change.message);
  setHidden(shown.more, !change.diff);
  drawDiff(shown.diff, change.diff);
}

function drawDiff(pre, diff) {
  if (pre.textContent === diff) return;
  const lines = diff.split("\n").map((line, i) => {
    const element = document.createElement("span");
    element.className = `diff-${diffKind(line)}`;
    element.textContent = i ? `\n${line}` : line;
    return element;
  });
  pre.replaceChildren(...lines);
}
