/** What there is to know before deciding on a wait, in lines: from GET waiting/ID. Pure. */
import { amount, countdown, plural } from "./format.js";

/** "1 of 2 have approved: olga"; "" where one approval is enough and none is there. */
export function approvedInWords(row) {
  const names = row.approvals.map(({ user, gang }) => (gang ? `${user} (the whole gang)` : user)).join(", ");
  if (row.approvers_needed > 1) return `${row.approvals.length} of ${row.approvers_needed} have approved${names ? `: ${names}` : ""}`;
  return names ? `approved by ${names}` : "";
}

/** Lines for the dialog: who asks and why, what is asked and held, who else wants it, who approved. */
export function factsInWords(found) {
  const { gang, nodes, rivals, terms } = found;
  const asks = gang ? gang.requested_by.join(", ") : found.requested_by;
  return [
    asks ? `Asked for by ${asks}` : "Nobody is named as asking for it",
    terms.reason ? `Needs approval: ${terms.reason}` : "",
    `Asks for ${resources(gang ? gang.requests : found.requests)}${gang ? `, ${plural(gang.members, "pod")}` : ""}`,
    ...nodes.slice(0, 4).map(nodeInWords),
    nodes.length > 4 ? `and ${plural(nodes.length - 4, "more node")}` : "",
    rivalsInWords(rivals),
    approvedInWords(found),
    ...(gang?.standing ?? []).map(({ user }) => `${user} has approved the whole gang, later members too`),
    found.may.why,
    found.seconds_left > 0 ? `${countdown(found.seconds_left)} left` : "Its time is up",
  ].filter(Boolean);
}

/** "Holds n1: cpu 1 of 4, then 3 of 4". */
function nodeInWords({ node, use }) {
  const usage = Object.entries(use).map(([name, [all, before, after]]) => `${name} ${amount(name, before)} of ${amount(name, all)} in use, ${amount(name, after)} with it`);
  return `Holds ${node}${usage.length ? `: ${usage.join("; ")}` : ""}`;
}

function rivalsInWords({ waiting_total: waiting, queued_total: queued, waiting: named }) {
  const who = named.slice(0, 3).map(({ pod }) => pod).join(", ");
  const parts = [];
  if (waiting) parts.push(`${plural(waiting, "other pod")} that wait${waiting === 1 ? "s" : ""} there (${who}${waiting > 3 ? ", …" : ""})`);
  if (queued) parts.push(`${plural(queued, "pod")} in the queue that fit${queued === 1 ? "s" : ""} nowhere`);
  return parts.length ? `Also want room: ${parts.join("; ")}` : "Nobody else waits for room";
}

function resources(requests) {
  return Object.entries(requests).map(([name, value]) => `${name} ${amount(name, value)}`).join(", ") || "no resources";
}
