/** What the waiting page says of a row, of an end and of a click. Pure. */

/** The Permit plugin that a person answers. */
const APPROVER = "ManualApproval";

/** "Coscheduling, ManualApproval": who has not allowed yet. An approval counts once the gang is there. */
export function pendingInWords(row) {
  const approved = isApplied(row);
  return row.pending.map(({ plugin }) => plugin).filter((plugin) => !approved || plugin !== APPROVER).join(", ");
}

/** Everyone whose word made the decision: "olga and otto" approve, one denies. */
export function decidersInWords({ decision, approvals = [] }) {
  const names = decision.verdict === "approve" ? approvals.map(({ user }) => user) : [];
  if (names.length < 2) return decision.user;
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** With what they said: "grace: not on a Friday", "olga (looks right) and otto". */
function deciders(row) {
  const { decision, approvals = [] } = row;
  if (decision.verdict === "approve" && approvals.length > 1) {
    const said = approvals.map(({ user, comment }) => ({ user: comment ? `${user} (${comment})` : user }));
    return decidersInWords({ decision, approvals: said });
  }
  return decision.user + (decision.comment ? `: ${decision.comment}` : "");
}

/** What came of it and by whom: "denied by grace: not on a Friday". */
export function endInWords(row) {
  const { decision } = row;
  const by = row.resolved_by && !row.resolved_by.startsWith("user:") ? row.resolved_by : "";
  const told = decision ? `${decision.verdict === "approve" ? "approved" : "denied"} by ${deciders(row)}` : by;
  if (!row.message) return decision || !by ? told : `by ${by}`;
  if (row.message.includes(told)) return row.message;
  return told ? `${told}; ${row.message}` : row.message;
}

/** Enough people have approved, the scheduler knows, and the pod still waits for its gang. */
export function isApplied({ decision, pending }) {
  if (decision?.verdict !== "approve") return false;
  return Boolean(decision.applied) || (pending.length > 0 && !pending.some(({ plugin }) => plugin === APPROVER));
}

/** The line shown instead of buttons while a decision is on its way. */
export function sentInWords(row) {
  const { decision } = row;
  if (!decision) return "sent";
  if (isApplied(row)) return `approved by ${decidersInWords(row)}`;
  return `${decision.verdict === "approve" ? "approval" : "denial"} by ${decidersInWords(row)} sent`;
}

/** What becomes of the pod when its time is over and nothing else has happened. */
export function atDeadline(row) {
  const first = row.pending.reduce((a, b) => (a && a.deadline <= b.deadline ? a : b), null);
  if (first && first.plugin !== APPROVER) return `then ${first.plugin} turns it down`;
  return row.terms?.at_deadline === "approve" ? "then it is approved" : "then it is denied";
}

/** What a person has in flight: "approval sent". */
export function mineInWords(verdict) {
  return { approve: "approval sent", deny: "denial sent", revoke: "approval taken back" }[verdict];
}

/** What a POST's results (200 or 409) mean for the person who clicked: {done, text}. */
export function resultInWords(results, verdict) {
  const done = results.filter((result) => result.ok).length;
  const failed = results.filter((result) => !result.ok);
  if (failed.length === 0) return { done, text: "" };
  const reasons = [...new Set(failed.map((result) => result.message))].slice(0, 3).join(" ");
  const word = { approve: "approved", deny: "denied", revoke: "taken back" }[verdict];
  if (done === 0) return { done, text: reasons || "Too late." };
  return { done, text: `${done} of ${results.length} were ${word}; the others could not be: ${reasons}` };
}
