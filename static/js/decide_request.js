/** What a person is about to say, of which pods, in words. Pure. */
import { clockTime, count, plural, waitState } from "./format.js";
import { decidersInWords, endInWords, isApplied } from "./waiting_words.js";

/** Pods in one request: the server decides them in one transaction, which others wait for. */
const PODS_AT_ONCE = 500;

/** verdict -> the word on the button; "look" only shows what there is to know. */
export const ACTS = { approve: "Approve", deny: "Deny", revoke: "Take back" };

/** {verdict, targets, ids, facts, gang, title, text}: `facts` is the wait to ask the server about. */
export function requestForPod(row, verdict) {
  return {
    verdict,
    targets: [{ pods: [row.id] }],
    ids: [row.id],
    facts: row.id,
    title: titleOf(verdict, row.pod),
    text: {
      approve: `It holds ${row.node} and is bound there once every plugin has allowed it${row.approvers_needed - (row.approvals?.length ?? 0) > 1 ? " and enough people have approved it" : ""}.`,
      deny: `It gives up ${row.node} and goes back to the queue.${row.pod_group ? ` It belongs to the gang ${row.pod_group}, whose wait ends with it.` : ""}`,
      revoke: `It keeps ${row.node} and waits for another approval.`,
      look: "",
    }[verdict],
  };
}

export function requestForGang(gang, verdict) {
  const rows = gang.rows.filter((row) => canStill(row, verdict));
  const pods = plural(rows.length, "pod");
  const missing = gang.minMember - gang.waiting;
  return {
    verdict,
    targets: [{ pod_group: gang.name, gang_uid: gang.uid }],
    ids: rows.map((row) => row.id),
    facts: gang.rows[0]?.id,
    gang: gang.name,
    title: titleOf(verdict, `the gang ${gang.label}`),
    text: {
      approve: `${allOf(rows.length)} approved, and members that come later too.${missing > 0 ? ` ${count(missing)} more must still find a node before any is bound.` : ""}`,
      deny: `All ${pods} give up their nodes and go back to the queue.`,
      revoke: `Your approval counts no longer, neither for the ${pods} that wait nor for members that come later. They keep their nodes and wait for another.`,
      look: "",
    }[verdict],
  };
}

export function requestForSelection(rows, verdict) {
  const ids = rows.map((row) => row.id);
  const nodes = new Set(rows.map((row) => row.node)).size;
  const gangs = new Set(rows.filter((row) => row.pod_group).map((row) => row.pod_group)).size;
  const places = ids.length === 1 ? `It holds ${rows[0].node}` : `They hold room on ${plural(nodes, "node")}`;
  return {
    verdict,
    targets: inPortions(ids),
    ids,
    facts: null,
    title: titleOf(verdict, plural(ids.length, "pod")),
    text:
      verdict === "approve"
        ? `${places}. A pod is bound once every plugin has allowed it.`
        : `${places}, which they give up, and go back to the queue.${gangs ? ` With them ends the wait of ${plural(gangs, "gang")}.` : ""}`,
  };
}

function allOf(pods) {
  return pods === 1 ? "The one pod that waits is" : `All ${count(pods)} pods that wait are`;
}

function titleOf(verdict, what) {
  if (verdict === "look") return what.charAt(0).toUpperCase() + what.slice(1);
  return verdict === "revoke" ? `Take back your approval of ${what}?` : `${ACTS[verdict]} ${what}?`;
}

/** As many requests as it takes. */
export function inPortions(ids) {
  const found = [];
  for (let start = 0; start < ids.length; start += PODS_AT_ONCE) found.push({ pods: ids.slice(start, start + PODS_AT_ONCE) });
  return found;
}

/**
 * What happened to the pods of a request while it was on the screen: `rows` as they are now,
 * undefined where one is not known any more. {left, text}: how many can still be decided so.
 */
export function meanwhile(rows, verdict) {
  const over = rows.filter((row) => !canStill(row, verdict));
  if (over.length === 0) return { left: rows.length, text: "" };
  const first = over.find(Boolean);
  const what = first ? happened(first) : "they wait no more";
  const rest = over.length > 1 ? ` The same or the like goes for ${plural(over.length - 1, "other pod")}.` : "";
  const left = rows.length - over.length;
  return { left, text: `${left ? `${count(over.length)} of ${count(rows.length)} cannot be decided any more: ` : ""}${what}${rest}` };
}

function canStill(row, verdict) {
  if (!row || !["waiting", "sent"].includes(row.state)) return false;
  if (verdict === "look") return true;
  if (verdict === "revoke") return row.decision?.verdict !== "deny";
  return row.state === "waiting" || (verdict === "deny" && isApplied(row));
}

/** "ns/pod timed out at 14:13:20", "ns/pod was approved by olga at 14:13:20: looks right". */
function happened(row) {
  const { decision } = row;
  if (decision && ["sent", "allowed", "rejected"].includes(row.state)) {
    return `${row.pod} was ${decision.verdict === "approve" ? "approved" : "denied"} by ${decidersInWords(row)} at ${clockTime(decision.at)}${decision.comment ? `: ${decision.comment}` : ""}.`;
  }
  const end = endInWords(row);
  return `${row.pod} ${ENDS[row.state] ?? waitState(row.state)} at ${clockTime(row.resolved_at)}${end ? `: ${end}` : ""}.`;
}

const ENDS = {
  allowed: "was allowed",
  rejected: "was rejected",
  timed_out: "timed out",
  preempted: "was preempted",
  removed: "was removed",
  broken: "was given up",
};
