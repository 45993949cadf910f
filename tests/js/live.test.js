import { Api, ApiError } from "/static/js/api.js";
import { ServerClock } from "/static/js/clock.js";
import { LiveRun } from "/static/js/live.js";
import { cycleRow, waitingRow } from "./builders.js";
import { equal, ok, same, test } from "./harness.js";

const frame = (from, seq, ...rows) => ({ type: "cycles", from, seq, cycles: rows, skipped: 0 });
const drawn = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));

/** A run whose API answers are given in turn, and what it did. */
function liveOn(answers) {
  const seen = { asked: [], sent: [], drawn: [] };
  const api = {
    get: async (topic, { since }) => {
      seen.asked.push([topic, since]);
      const answer = answers.shift();
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  const live = new LiveRun({
    api,
    clock: new ServerClock(),
    topics: ["cycles"],
    handlers: { change: (data) => seen.drawn.push(data.cycles.cycles.map((row) => row.sequence)), status: () => {}, hello: () => {} },
  });
  const socket = { connect: () => {}, send: (message) => seen.sent.push(message) };
  live.start(socket);
  return { live, seen, push: (message) => live.socketHandlers().json(message) };
}

test("a page that opens asks for everything and acknowledges what it has drawn", async () => {
  const { seen, push } = liveOn([frame(0, 5, cycleRow(5))]);
  await drawn();
  push(frame(5, 6, cycleRow(6)));
  equal(seen.sent.length, 0);
  await drawn();
  same(seen.sent, [{ ack: 6, topic: "cycles" }]);
  same(seen.asked, [["cycles", undefined]]);
  same(seen.drawn.at(-1), [6, 5]);
});

test("after a gap it asks for what it missed, and applies what came meanwhile", async () => {
  const { seen, push } = liveOn([frame(0, 5, cycleRow(5)), frame(5, 8, cycleRow(6), cycleRow(7), cycleRow(8))]);
  await drawn();
  push(frame(7, 8, cycleRow(8)));
  push(frame(8, 9, cycleRow(9)));
  await drawn();
  await drawn();
  same(seen.asked, [["cycles", undefined], ["cycles", 5]]);
  same(seen.drawn.at(-1), [9, 8, 7, 6, 5]);
  same(seen.sent.map((message) => message.ack), [8, 9]);
});

test("what was committed before the socket was open is asked for", async () => {
  const { seen, push } = liveOn([frame(0, 5, cycleRow(5)), frame(5, 9, cycleRow(9))]);
  await drawn();
  push({ type: "hello", seq: 5 });
  await drawn();
  same(seen.asked, [["cycles", undefined]]);
  push({ type: "hello", seq: 9 });
  await drawn();
  same(seen.asked, [["cycles", undefined], ["cycles", 5]]);
  same(seen.drawn.at(-1), [9, 5]);
});

test("an answer of before the socket was open is followed by another question", async () => {
  const { seen, push } = liveOn([frame(0, 5, cycleRow(5)), frame(5, 9, cycleRow(9))]);
  push({ type: "hello", seq: 9 });
  await drawn();
  await drawn();
  same(seen.asked, [["cycles", undefined], ["cycles", 5]]);
  same(seen.drawn.at(-1), [9, 5]);
});

test("many frames in one animation frame are drawn once", async () => {
  const { seen, push } = liveOn([frame(0, 5, cycleRow(5))]);
  await drawn();
  const before = seen.drawn.length;
  for (let seq = 6; seq < 26; seq += 1) push(frame(seq - 1, seq, cycleRow(seq)));
  await drawn();
  equal(seen.drawn.length, before + 1);
  equal(seen.sent.length, 20);
});

test("an API error carries the server's words, or ours where it has none", async () => {
  const answer = (status, body) => async () => new Response(body, { status });
  const failing = async (fetcher) => {
    try {
      await new Api("/api/", "token", fetcher).get("x");
    } catch (error) {
      return error;
    }
    throw new Error("expected an ApiError");
  };
  const told = await failing(answer(409, JSON.stringify({ error: "Too late." })));
  ok(told instanceof ApiError);
  equal(told.message, "Too late.");
  equal((await failing(answer(403, "<html>"))).message, "You are not allowed to do this.");
  equal((await failing(async () => { throw new TypeError("network"); })).status, 0);
});

test("a POST carries the CSRF token and JSON, and empty parameters are left out", async () => {
  const calls = [];
  const fetcher = async (url, options) => {
    calls.push([url, options]);
    return new Response("{}");
  };
  const api = new Api("/api/runs/1/", "secret", fetcher);
  await api.post("control", { action: "pause" });
  await api.get("cycles", { q: "", before: undefined, limit: 5 });
  equal(calls[0][1].headers["X-CSRFToken"], "secret");
  equal(calls[0][1].body, '{"action":"pause"}');
  equal(calls[1][0], "/api/runs/1/cycles?limit=5");
});

test("an answer in pieces is drawn with the first, goes on, and stays true for the first one's number", async () => {
  const asked = [];
  const drawnRows = [];
  const pieces = [
    { type: "waiting", from: 0, seq: 5, now: 1, pods: [waitingRow(1)], more: 1, open: 3 },
    { type: "waiting", from: 0, seq: 9, now: 1, pods: [waitingRow(2)], more: 2, open: 3 },
    new ApiError(0),
    { type: "waiting", from: 0, seq: 9, now: 1, pods: [waitingRow(3)], more: null, open: 3 },
  ];
  const api = {
    get: async (topic, { after, limit }) => {
      asked.push([after, limit]);
      const answer = pieces.shift();
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  const handlers = { change: ({ waiting }) => drawnRows.push([waiting.rows.size, waiting.loading]), status: () => {}, failed: () => {} };
  const live = new LiveRun({ api, clock: new ServerClock(), topics: ["waiting"], handlers });
  const sent = [];
  live.start({ connect: () => {}, send: (message) => sent.push(message) });
  await drawn();
  live.socketHandlers().json({ type: "waiting", from: 5, seq: 6, now: 2, pods: [waitingRow(1, { state: "sent", commit_seq: 6 })] });
  await new Promise((resolve) => setTimeout(resolve, 1200));
  same(asked, [[undefined, 300], [1, 2000], [2, 2000], [2, 2000]]);
  same(drawnRows.at(-1), [3, null]);
  equal(live.data.waiting.rows.get(1).state, "sent");
  same(sent, [{ ack: 6, topic: "waiting" }]);
});
