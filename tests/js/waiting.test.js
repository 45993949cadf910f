import { Selection } from "/static/js/selection.js";
import { endedGroups, groupEndInWords } from "/static/js/waiting_ended.js";
import { WaitingIndex } from "/static/js/waiting_index.js";
import { waitingRow } from "./builders.js";
import { equal, ok, same, test } from "./harness.js";

const byId = (rows) => new Map(rows.map((row) => [row.id, row]));
const keys = (index, needle) => index.items(needle).map(({ key }) => key);

function indexOf(rows) {
  const index = new WaitingIndex();
  index.sync(byId(rows));
  return index;
}

test("waiting rows are grouped by gang, the earliest deadline first, single pods last", () => {
  const index = indexOf([
    waitingRow(1, { deadline: 5 }),
    waitingRow(2, { pod_group: "ns/b", group_min_member: 3, deadline: 90 }),
    waitingRow(3, { pod_group: "ns/a", group_min_member: 2, deadline: 40 }),
    waitingRow(4, { pod_group: "ns/a", group_min_member: 2, deadline: 30, state: "sent" }),
    waitingRow(5, { state: "allowed" }),
  ]);
  same(keys(index), ["gang:ns/a", "pod:3", "pod:4", "gang:ns/b", "pod:2", "pod:1"]);
  const [{ gang }] = index.items();
  same([gang.waiting, gang.minMember, gang.deadline, gang.undecided], [2, 2, 30, 1]);
  same([index.pods, index.gangs], [4, 2]);
});

test("two gangs of one name are told apart by uid, and say it", () => {
  const rows = [
    waitingRow(1, { pod_group: "ns/a", gang_uid: "11111111-aaaa", deadline: 5 }),
    waitingRow(2, { pod_group: "ns/a", gang_uid: "22222222-bbbb", deadline: 9 }),
  ];
  const index = indexOf(rows);
  same(keys(index), ["gang:ns/a 11111111-aaaa", "pod:1", "gang:ns/a 22222222-bbbb", "pod:2"]);
  const labels = () => index.items().filter(({ kind }) => kind === "gang").map(({ gang }) => [gang.label, gang.uid]);
  same(labels(), [["ns/a (11111111)", "11111111-aaaa"], ["ns/a (22222222)", "22222222-bbbb"]]);
  index.sync(byId(rows.slice(0, 1)));
  same(labels(), [["ns/a", "11111111-aaaa"]]);
});

test("pods of one deadline stand in the order of people's counting", () => {
  const rows = [10, 9, 100, 1].map((number, id) => waitingRow(id, { pod: `ns/w-${number}`, deadline: 5 }));
  same(indexOf(rows).items().map(({ row }) => row.pod), ["ns/w-1", "ns/w-9", "ns/w-10", "ns/w-100"]);
});

test("a filter keeps a gang's numbers and hides what does not match", () => {
  const index = indexOf([waitingRow(1, { pod_group: "ns/a" }), waitingRow(2, { pod_group: "ns/a" }), waitingRow(3, { requested_by: "Ada" })]);
  same(keys(index, "p2"), ["gang:ns/a", "pod:2"]);
  equal(index.items("p2")[0].gang.waiting, 2);
  same(keys(index, "ada"), ["pod:3"]);
});

test("after any changes the list is the one of a fresh index", () => {
  let seed = 7;
  const random = (below) => {
    seed = (seed * 1103515245 + 12345) % 2 ** 31;
    return seed % below;
  };
  const rows = new Map();
  const index = new WaitingIndex();
  for (let round = 0; round < 300; round += 1) {
    const id = random(40);
    const group = ["", "ns/a", "ns/b"][random(3)];
    if (random(6) === 0) rows.delete(id);
    else rows.set(id, waitingRow(id, { pod_group: group, deadline: random(5), state: ["waiting", "sent", "allowed"][random(3)] }));
    index.sync(new Map(rows));
    const fresh = indexOf([...rows.values()]);
    same(keys(index), keys(fresh));
    same([index.pods, index.gangs], [fresh.pods, fresh.gangs]);
    for (const { kind, gang } of index.items()) if (kind === "gang") equal(gang.rows.length, gang.waiting);
  }
});

test("one changed row of ten thousand is one comparison of names a step, not a sort", () => {
  const rows = Array.from({ length: 10_000 }, (_, i) => waitingRow(i, { deadline: 5 }));
  const index = indexOf(rows);
  const items = index.items();
  let read = 0;
  const watched = rows.map((row) => new Proxy(row, {
    get(target, name) {
      if (name === "deadline") read += 1;
      return target[name];
    },
  }));
  index.sync(byId(watched));
  read = 0;
  index.sync(byId([...watched.slice(1), waitingRow(0, { deadline: 5, state: "sent" })]));
  ok(read < 40, `a search by halves, read ${read} deadlines`);
  equal(index.items().length, items.length);
});

test("a selection outlives what is shown, and forgets what is gone", () => {
  const selection = new Selection();
  equal(selection.of([]), "none");
  selection.set([1, 2, 3], true);
  equal(selection.of([1, 2, 3]), "all");
  equal(selection.of([1, 2, 3, 4]), "some");
  selection.set([2], false);
  same(selection.ids, [1, 3]);
  selection.prune((id) => id !== 1);
  same(selection.ids, [3]);
  selection.clear();
  equal(selection.size, 0);
});

const ended = (id, changes) => waitingRow(id, { state: "allowed", resolved_at: 100, pending: [], ...changes });

test("waits that ended together are one gang, in the order in which they ended", () => {
  const gang = { pod_group: "ns/g", gang_uid: "1" };
  const rows = [
    ended(9, { ...gang, resolved_at: 300 }),
    ended(8, { ...gang, resolved_at: 104 }),
    ended(7, { resolved_at: 103 }),
    ended(6, { ...gang, resolved_at: 102 }),
    ended(5, { ...gang, resolved_at: 101, gang_uid: "2" }),
    ended(4, { resolved_at: 101 }),
    ended(3, { ...gang, resolved_at: 100, state: "broken" }),
  ];
  same(endedGroups(rows).map((group) => group.map(({ id }) => id)), [[9], [8, 6], [7], [5], [4], [3]]);
});

test("what came of a gang is said once", () => {
  const denied = { message: "denied by grace: no" };
  equal(groupEndInWords([ended(1, denied), ended(2, denied)]), "denied by grace: no");
  equal(groupEndInWords([ended(1, denied), ended(2, { message: "the gang was given up" })]), "denied by grace: no; the gang was given up");
  const many = [1, 2, 3, 4].map((id) => ended(id, { message: `p${id} is gone` }));
  equal(groupEndInWords(many), "p1 is gone; p2 is gone; and 2 other reasons");
});
