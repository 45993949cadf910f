/** What there is to know before deciding on waits, as the dialog lays it out. Pure. */
import { amount, clockTime, count, plural } from "./format.js";

const NAMED = 4;
const RIVALS_NAMED = 5;

/** "1 of 2 approved: olga"; "" where one approval is enough and none is there. */
export function approvedInWords({ approvals, approvers_needed: needed }) {
  const names = approvals.map(({ user }) => user).join(", ");
  if (needed > 1) return `${count(approvals.length)} of ${count(needed)} approved${names ? `: ${names}` : ""}`;
  return names ? `approved by ${names}` : "";
}

/**
 * From GET waiting/ID: {terms: [{term, lines}], nodes: [{node, pods, uses}], rivals: [text], why};
 * `whole`: of the pod's gang, else of the pod alone. `why` is why this person's approval would not
 * count, or "".
 */
export function factsOf(found, whole) {
  const { gang, terms } = found;
  return {
    terms: told([
      ["Gang", gang ? [whole ? membersInWords(gang) : `${gang.pod_group}: ${membersInWords(gang)}`] : []],
      ["Priority", [found.priority ? count(found.priority) : ""]],
      ["Asked for by", [namesInWords(whole ? gang.requested_by : [found.requested_by])]],
      ["Needs approval", [terms?.reason ?? ""]],
      ["Asks for", whole ? [resources(gang.requests)] : [resources(found.requests), gang ? `with its gang ${resources(gang.requests)}` : ""]],
      ["Approved so far", found.needs_approval ? approvalLines(found, gang) : []],
    ]),
    nodes: found.nodes.filter(({ node }) => whole || node === found.node).map(nodeOf),
    rivals: rivalLines(found.rivals),
    why: found.may.why,
  };
}

/** The same, as far as rows tell, for many pods that have nothing in common. */
export function factsOfRows(rows) {
  const gangs = [...new Set(rows.map((row) => row.pod_group).filter(Boolean))].sort();
  const approved = rows.filter((row) => row.approvals?.length);
  const several = rows.filter((row) => row.approvers_needed > 1);
  return {
    terms: told([
      ["Gangs", [gangs.length ? `${count(gangs.length)}: ${some(gangs)}` : ""]],
      ["Asked for by", [namesInWords([...new Set(rows.map((row) => row.requested_by))])]],
      ["Needs approval", [...new Set(rows.map((row) => row.terms?.reason ?? ""))].slice(0, NAMED)],
      ["Asks for", [resources(sum(rows.map((row) => row.requests)))]],
      ["Approved so far", [approved.length ? `${plural(approved.length, "pod")} of these by somebody` : "", several.length ? `${plural(several.length, "pod")} of these ${several.length === 1 ? "needs" : "need"} more than one person` : ""]],
    ]),
    nodes: nodesHeld(rows).map(nodeOf),
    rivals: null,
    why: "",
  };
}

/** [term, lines] as {term, lines}, without what is empty. */
function told(pairs) {
  return pairs.map(([term, lines]) => ({ term, lines: lines.filter(Boolean) })).filter(({ lines }) => lines.length);
}

function membersInWords({ members, min_member: least }) {
  return `${plural(members, "pod")} ${members === 1 ? "has" : "have"} a node, ${members >= least ? `the gang of ${count(least)} is complete` : `${count(least - members)} more must find one`}`;
}

function namesInWords(names) {
  const known = names.filter(Boolean).sort();
  return known.length ? some(known) : "nobody is named";
}

function some(names) {
  const more = names.length - NAMED;
  return `${names.slice(0, NAMED).join(", ")}${more > 0 ? ` and ${count(more)} more` : ""}`;
}

function approvalLines(found, gang) {
  const { approvals, approvers_needed: needed } = found;
  const missing = needed - approvals.length;
  const standing = new Set((gang?.standing ?? []).map(({ user }) => user));
  const lines = approvals.map(({ user, at, comment }) => `${user} at ${clockTime(at)}${standing.has(user) ? ", for the whole gang, later members too" : ""}${comment ? `: ${comment}` : ""}`);
  if (approvals.length === 0) return [needed > 1 ? `nobody; ${count(needed)} people have to` : "nobody"];
  if (missing > 0) lines.push(`${missing === 1 ? "one more person has" : `${count(missing)} more people have`} to`);
  return lines;
}

/** {node, pods, uses: [{name, before, after, all, words}]}: shares (0..1) and "1 → 3 of 4". */
function nodeOf({ node, pods, use }) {
  const uses = Object.entries(use).filter(([, [all]]) => all > 0).map(([name, [all, before, after]]) => ({
    name,
    before: Math.min(1, before / all),
    after: Math.min(1, after / all),
    words: `${amount(name, before)} → ${amount(name, after)} of ${amount(name, all)}`,
  }));
  return { node, pods: plural(pods, "pod"), uses };
}

/** The nodes that rows hold, as dashboard.waits_view tells of one wait: usage without and with them. */
export function nodesHeld(rows) {
  const byNode = new Map();
  for (const row of rows) byNode.set(row.node, [...(byNode.get(row.node) ?? []), row]);
  return [...byNode].sort(([a], [b]) => (a < b ? -1 : 1)).map(([node, held]) => {
    const asked = sum(held.map((row) => row.requests));
    const latest = held.reduce((a, b) => (b.since >= a.since ? b : a));
    const use = Object.fromEntries(Object.entries(latest.node_use ?? {}).map(([name, [all, , after]]) => [name, [all, Math.max(0, after - (asked[name] ?? 0)), after]]));
    return { node, pods: held.length, use };
  });
}

function sum(parts) {
  const total = {};
  for (const part of parts) for (const [name, value] of Object.entries(part ?? {})) total[name] = (total[name] ?? 0) + value;
  return total;
}

function rivalLines({ waiting_total: waiting, waiting: held, queued_total: queued, queued: wanting }) {
  const lines = held.slice(0, RIVALS_NAMED).map((pod) => `${pod.pod} waits on ${pod.node} too${pod.pod_group ? `, with its gang ${pod.pod_group}` : ""}${asks(pod)}`);
  if (waiting > RIVALS_NAMED) lines.push(`${plural(waiting - Math.min(held.length, RIVALS_NAMED), "more pod")} that wait${waiting - RIVALS_NAMED === 1 ? "s" : ""} on these nodes`);
  lines.push(...wanting.slice(0, RIVALS_NAMED).map((pod) => `${pod.pod} is queued and fits nowhere${pod.priority ? `, priority ${count(pod.priority)}` : ""}${pod.reason ? `: ${pod.reason}` : ""}`));
  if (queued > RIVALS_NAMED) lines.push(`${plural(queued - Math.min(wanting.length, RIVALS_NAMED), "more pod")} in the queue for want of room`);
  return lines;
}

function asks({ priority, requests }) {
  return ` (${resources(requests ?? {})}${priority ? `, priority ${count(priority)}` : ""})`;
}

/** "cpu 40, memory 160 GiB". */
export function resources(requests) {
  return Object.entries(requests).filter(([, value]) => value > 0).map(([name, value]) => `${name} ${amount(name, value)}`).join(", ") || "no resources";
}
