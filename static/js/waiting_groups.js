/** Waiting rows as the page lists them: gangs with their members, then pods on their own. Pure. */
import { isOpen } from "./store.js";

/** The Permit plugin that a person answers. */
const APPROVER = "ManualApproval";
const NAMES = new Intl.Collator("en", { numeric: true });

/**
 * Items in display order: {kind: "gang", key, gang} is followed by its pods, {kind: "pod", key,
 * row, gang}; pods without a gang (gang: null) come last. The earliest deadline comes first.
 * gang: {name, rows, waiting, minMember, deadline, needsApproval, undecided,
 * requestedBy}; `requestedBy` is the one person who asked for all of it, or "".
 */
export function waitingItems(rows, needle = "") {
  const wanted = needle.trim().toLowerCase();
  const open = [...rows].filter(isOpen);
  const gangs = gangsOf(open);
  const items = [];
  for (const gang of [...gangs.values()].sort(earliest)) {
    const shown = gang.rows.filter((row) => matchesRow(row, wanted)).sort(byName);
    if (shown.length === 0) continue;
    items.push({ kind: "gang", key: `gang:${gang.name}`, gang });
    items.push(...shown.map((row) => ({ kind: "pod", key: `pod:${row.id}`, row, gang })));
  }
  const single = open.filter((row) => !row.pod_group && matchesRow(row, wanted)).sort(earliest);
  return [...items, ...single.map((row) => ({ kind: "pod", key: `pod:${row.id}`, row, gang: null }))];
}

function gangsOf(open) {
  const gangs = new Map();
  for (const row of open) {
    if (!row.pod_group) continue;
    const gang = gangs.get(row.pod_group) ?? {
      name: row.pod_group, rows: [], waiting: 0, minMember: 0, deadline: Infinity, needsApproval: false, undecided: 0,
      requestedBy: row.requested_by,
    };
    gang.rows.push(row);
    gang.waiting += 1;
    gang.minMember = Math.max(gang.minMember, row.group_min_member);
    gang.deadline = Math.min(gang.deadline, row.deadline);
    gang.needsApproval ||= row.needs_approval;
    if (gang.requestedBy !== row.requested_by) gang.requestedBy = "";
    gang.undecided += row.state === "waiting" ? 1 : 0;
    gangs.set(row.pod_group, gang);
  }
  return gangs;
}

function earliest(a, b) {
  return a.deadline - b.deadline || byName(a, b);
}

function byName(a, b) {
  return NAMES.compare(a.pod ?? a.name, b.pod ?? b.name);
}

function matchesRow(row, wanted) {
  if (!wanted) return true;
  return [row.pod, row.pod_group, row.node, row.requested_by].some((text) => text.toLowerCase().includes(wanted));
}

/** "Coscheduling, ManualApproval": who has not allowed yet. */
export function pendingInWords(row) {
  return row.pending.map(({ plugin }) => plugin).join(", ");
}

/** What came of it and by whom: "denied by grace: not on a Friday". */
export function endInWords(row) {
  const { decision } = row;
  const person = decision ? `${decision.verdict === "approve" ? "approved" : "denied"} by ${decision.user}` : "";
  const comment = decision?.comment ? `: ${decision.comment}` : "";
  const by = row.resolved_by && !row.resolved_by.startsWith("user:") ? row.resolved_by : "";
  const told = person ? person + comment : by;
  if (!row.message || row.message.includes(told)) return row.message || told;
  return told ? `${told}; ${row.message}` : row.message;
}

/** The line shown instead of buttons while a decision is on its way. */
export function sentInWords(row) {
  const { decision } = row;
  if (!decision) return "sent";
  const applied = decision.verdict === "approve" && row.pending.length > 0 && !row.pending.some(({ plugin }) => plugin === APPROVER);
  if (applied) return `approved by ${decision.user}`;
  return `${decision.verdict === "approve" ? "approval" : "denial"} by ${decision.user} sent`;
}

/** What a POST's results (200 or 409) mean for the person who clicked: {done, text}. */
export function resultInWords(results, verdict) {
  const done = results.filter((result) => result.ok).length;
  const failed = results.filter((result) => !result.ok);
  if (failed.length === 0) return { done, text: "" };
  const reasons = [...new Set(failed.map((result) => result.message))].slice(0, 3).join(" ");
  const word = verdict === "approve" ? "approved" : "denied";
  if (done === 0) return { done, text: reasons || "Too late." };
  return { done, text: `${done} of ${results.length} were ${word}; the others could not be: ${reasons}` };
}
