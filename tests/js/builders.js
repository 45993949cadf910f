/** Matrices and frames for tests. */
import { MAGIC } from "/static/js/frames.js";

/** A matrix of five nodes: three feasible, one without room, one with a taint. */
export function smallMatrix(changes = {}) {
  return {
    seq: 7, sequence: 3, pod: "default/p", outcome: "scheduled", node: "n2", chosen: 2,
    plugins: ["Fit", "Image"], weights: [1, 2], nodes: 5, scored: true, feasible: 3, namesHash: "h",
    reasons: [["NodeResourcesFit", "Insufficient cpu", "Unschedulable"], ["TaintToleration", "untolerated taint", "UnschedulableAndUnresolvable"]],
    scores: Int8Array.from([10, -1, 90, 50, -1, /* Image */ 0, -1, 40, 100, -1]),
    rejection: Int16Array.from([-1, 0, -1, -1, 1]),
    ...changes,
  };
}

export const NAMES = ["n10", "n1", "n2", "n3", "n4"];

/** The bytes of a heatmap frame; `rows` makes it a delta. */
export function frameBytes({ seq, nodes, info, scores, rejection, rows = null, scored = true }) {
  let text = new TextEncoder().encode(JSON.stringify(info));
  const padding = (4 - ((20 + text.length) % 4)) % 4;
  text = new Uint8Array([...text, ...new Array(padding).fill(32)]);
  const head = new DataView(new ArrayBuffer(20));
  head.setUint32(0, MAGIC, true);
  head.setUint8(4, rows ? 2 : 1);
  head.setUint8(5, info.plugins.length);
  head.setUint8(6, scored ? 1 : 0);
  head.setUint32(8, seq, true);
  head.setUint32(12, nodes, true);
  head.setUint32(16, text.length, true);
  const index = rows ? [Uint32Array.from([rows.length]), Uint32Array.from(rows)] : [];
  const parts = [head, text, ...index, Int8Array.from(scores), Int16Array.from(rejection)];
  return join(parts.map((part) => new Uint8Array(part.buffer, part.byteOffset, part.byteLength)));
}

function join(parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole.buffer;
}

export function waitingRow(id, changes = {}) {
  return {
    id, pod: `ns/p${id}`, node: `node-${id}`, pod_group: "", group_min_member: 0, deadline: 100, pending: [{ plugin: "ManualApproval" }],
    needs_approval: true, requested_by: "", state: "waiting", message: "", resolved_by: "", resolved_at: null, decision: null, commit_seq: id,
    ...changes,
  };
}

export function cycleRow(sequence, changes = {}) {
  return { sequence, commit_seq: sequence, pod: `ns/p${sequence}`, name: `p${sequence}`, pod_group: "", node: "n1", outcome: "scheduled", ...changes };
}
