/** The waits that ended lately, a gang in one line: what came of them, and by whom. */
import { clockTime, plural, waitState } from "./format.js";
import { one, parts, setHidden, setText, stamp } from "./lib/dom.js";
import { isOpen, latestEndFirst } from "./store.js";
import { endInWords } from "./waiting_words.js";

const SHOWN = 40;
/** Members of a gang whose waits ended in the same way within this time ended together. */
const TOGETHER_SECONDS = 5;
const MOST_REASONS = 2;

/**
 * Groups of rows [newest first] that ended together, the newest group first. Pods without a gang are
 * groups of one.
 */
export function endedGroups(rows) {
  const groups = [];
  /** Gang and state -> its newest group so far; rows come newest first. */
  const latest = new Map();
  for (const row of rows) {
    const key = row.pod_group ? [row.pod_group, row.gang_uid, row.state].join(" ") : "";
    const group = latest.get(key);
    if (key && group && group[0].resolved_at - row.resolved_at <= TOGETHER_SECONDS) {
      group.push(row);
      continue;
    }
    const fresh = [row];
    groups.push(fresh);
    latest.set(key, fresh);
  }
  return groups;
}

/** What came of a group, each thing once: "denied by grace: not on a Friday". */
export function groupEndInWords(rows) {
  const reasons = [...new Set(rows.map(endInWords).filter(Boolean))];
  if (reasons.length <= MOST_REASONS) return reasons.join("; ");
  const shown = reasons.slice(0, MOST_REASONS);
  return [...shown, `and ${plural(reasons.length - shown.length, "other reason")}`].join("; ");
}

/** Elements by group, so that one that is open stays open: a group keeps its first end as more follow. */
const elements = new Map();

export function drawEnded(rows, base) {
  const ended = [...rows].filter((row) => !isOpen(row)).sort(latestEndFirst);
  setHidden(one("#ended-empty"), ended.length > 0);
  const list = one("#ended");
  const groups = endedGroups(ended).slice(0, SHOWN);
  const keys = new Set(groups.map(keyOf));
  for (const [key, element] of elements) {
    if (keys.has(key)) continue;
    element.remove();
    elements.delete(key);
  }
  groups.forEach((group, i) => {
    const element = elementOf(group);
    if (list.children[i] !== element) list.insertBefore(element, list.children[i] ?? null);
    if (group.length > 1) drawGang(element, group, base);
    else drawPod(element, group[0], base);
  });
}

function keyOf(group) {
  return `${group.length > 1 ? "gang" : "pod"} ${group.at(-1).id}`;
}

function elementOf(group) {
  const key = keyOf(group);
  if (!elements.has(key)) elements.set(key, stamp(group.length > 1 ? "ended-gang-template" : "ended-template"));
  return elements.get(key);
}

function drawPod(element, row, base) {
  const text = parts(element);
  drawEnd(text, [row]);
  text.pod.href = `${base}cycles/${row.cycle}/`;
  setText(text.pod, row.pod);
  setText(text.node, row.pod_group ? `${row.node} · gang ${row.pod_group}` : row.node);
}

function drawGang(element, group, base) {
  const text = parts(element);
  drawEnd(text, group);
  setText(text.gang, group[0].pod_group);
  setText(text.count, plural(group.length, "pod"));
  const key = group.map(({ id, commit_seq: commit }) => `${id}:${commit}`).join();
  if (element.dataset.members === key) return;
  element.dataset.members = key;
  const members = [...group].sort((a, b) => a.pod.localeCompare(b.pod, "en", { numeric: true }));
  text.members.replaceChildren(...members.map((row) => memberElement(row, base)));
}

function drawEnd(text, rows) {
  const [{ state, resolved_at: at }] = rows;
  text.state.dataset.outcome = state;
  setText(text.state, waitState(state));
  setText(text.who, groupEndInWords(rows));
  setText(text.at, clockTime(at));
}

function memberElement(row, base) {
  const element = stamp("ended-member-template");
  const text = parts(element);
  text.pod.href = `${base}cycles/${row.cycle}/`;
  setText(text.pod, row.pod);
  setText(text.node, row.node);
  return element;
}
