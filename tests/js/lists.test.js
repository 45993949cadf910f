import { QueueRows, RANGE } from "/static/js/queue_rows.js";
import { rowAt, rowOffsets, VirtualList, visibleRange } from "/static/js/virtual_list.js";
import { equal, ok, same, test } from "./harness.js";

test("offsets add up heights", () => {
  same(rowOffsets([10, 20, 30]), [0, 10, 30, 60]);
  same(rowOffsets([]), [0]);
});

test("the row at a height, also beyond the end", () => {
  const offsets = rowOffsets([10, 20, 30]);
  equal(rowAt(offsets, 0), 0);
  equal(rowAt(offsets, 9.9), 0);
  equal(rowAt(offsets, 10), 1);
  equal(rowAt(offsets, 29), 1);
  equal(rowAt(offsets, 999), 2);
});

test("only rows in view, and a few around them, are wanted", () => {
  const offsets = rowOffsets(new Array(10_000).fill(50));
  same(visibleRange(offsets, 0, 500, 0), { start: 0, end: 10 });
  same(visibleRange(offsets, 25_010, 500, 4), { start: 496, end: 515 });
  same(visibleRange(offsets, 499_500, 500, 4), { start: 9986, end: 10_000 });
  same(visibleRange(rowOffsets([]), 0, 500), { start: 0, end: 0 });
});

function listOn(page, rows, role = "list", told = () => {}) {
  const scroller = document.createElement("div");
  const sizer = document.createElement("div");
  sizer.dataset.sizer = "";
  sizer.setAttribute("role", role);
  scroller.append(sizer);
  scroller.style.cssText = "height: 200px; overflow: auto; position: relative";
  page.append(scroller);
  const list = new VirtualList(scroller, {
    create: () => document.createElement("button"),
    render: (element, index) => {
      element.textContent = rows[index];
      told(index);
    },
    kind: () => "row",
    key: (index) => rows[index],
    height: 20,
  });
  list.setCount(rows.length);
  return { list, scroller, sizer };
}

test("ten thousand rows make a few elements, and scrolling shows others", () => {
  const rows = Array.from({ length: 10_000 }, (_, i) => `row ${i}`);
  const { scroller, sizer, list } = listOn(document.body, rows);
  ok(sizer.children.length < 30, "few elements");
  scroller.scrollTop = 100_000;
  list.render();
  ok([...sizer.children].some((element) => element.textContent === "row 5003"), "a row in the middle");
  ok(sizer.children.length < 30, "few elements");
  scroller.remove();
});

test("a row that stays keeps its element and the focus while rows before it go", () => {
  const rows = ["a", "b", "c", "d"];
  const { list, scroller, sizer } = listOn(document.body, rows);
  const c = [...sizer.children].find((element) => element.textContent === "c");
  c.focus();
  rows.splice(0, 2);
  list.setCount(rows.length);
  equal(document.activeElement, c);
  equal(c.textContent, "c");
  same([...sizer.children].map((element) => element.textContent), ["c", "d"]);
  scroller.remove();
});

test("rows stand in the document in their order, however they came into view", () => {
  const rows = Array.from({ length: 1000 }, (_, i) => `row ${i}`);
  const { list, scroller, sizer } = listOn(document.body, rows);
  for (const top of [5000, 4900, 0, 9000, 8950]) {
    scroller.scrollTop = top;
    list.render();
    const numbers = [...sizer.children].map((element) => Number(element.textContent.slice(4)));
    same(numbers, [...numbers].sort((a, b) => a - b));
  }
  rows.reverse();
  list.setCount(rows.length);
  same([...sizer.children].map((element) => element.textContent), [...sizer.children].map((_, i) => rows[rows.indexOf(sizer.children[0].textContent) + i]));
  scroller.remove();
});

test("a row with the focus stays while it is scrolled away, and after the rows changed their order", () => {
  const rows = Array.from({ length: 1000 }, (_, i) => `row ${i}`);
  const { list, scroller, sizer } = listOn(document.body, rows);
  const third = sizer.children[2];
  third.focus();
  scroller.scrollTop = 10_000;
  list.render();
  equal(document.activeElement, third);
  equal(sizer.firstElementChild, third);
  rows.reverse();
  list.setCount(rows.length);
  equal(document.activeElement, third);
  equal(third.textContent, "row 2");
  equal(list.indexOf(third), 997);
  scroller.remove();
});

test("rows of a table tell their number among all", () => {
  const rows = Array.from({ length: 10_000 }, (_, i) => `row ${i}`);
  const { list, scroller, sizer } = listOn(document.body, rows, "table");
  scroller.scrollTop = 100_000;
  list.render();
  equal(sizer.getAttribute("aria-rowcount"), "10000");
  for (const element of sizer.children) equal(element.getAttribute("aria-rowindex"), String(1 + rows.indexOf(element.textContent)));
  scroller.remove();
});

test("scrolling draws only the rows that come into view", () => {
  const rows = Array.from({ length: 10_000 }, (_, i) => `row ${i}`);
  let drawn = 0;
  const { scroller } = listOn(document.body, rows, "list", () => {
    drawn += 1;
  });
  drawn = 0;
  scroller.scrollTop = 40;
  scroller.dispatchEvent(new Event("scroll"));
  equal(drawn, 2);
  scroller.remove();
});

test("names from the cluster stay text", () => {
  globalThis.hacked = false;
  const { scroller, sizer } = listOn(document.body, ['<img src=x onerror="globalThis.hacked = true">']);
  equal(sizer.querySelector("img"), null);
  equal(sizer.textContent, '<img src=x onerror="globalThis.hacked = true">');
  equal(globalThis.hacked, false);
  scroller.remove();
});

test("a queue's first rows come from frames, further ones are asked for in ranges, once", () => {
  const rows = new QueueRows();
  rows.setHead(Array.from({ length: 100 }, (_, i) => ({ uid: `h${i}` })), 640);
  same(rows.wanted(0, 20, 10), []);
  same(rows.wanted(90, 110, 10), [0]);
  same(rows.wanted(90, 110, 10.5), []);
  same(rows.wanted(390, 410, 11), [200, 400]);
  rows.setRange(400, Array.from({ length: RANGE }, (_, i) => ({ uid: `r${i}` })));
  equal(rows.get(401).uid, "r1");
  equal(rows.get(5).uid, "h5");
  equal(rows.get(399), null);
  same(rows.wanted(390, 410, 14), [200, 400]);
});

test("a queue that shrinks forgets the ranges behind its end", () => {
  const rows = new QueueRows();
  rows.setHead([{ uid: "a" }], 500);
  rows.setRange(400, [{ uid: "x" }]);
  rows.setHead([{ uid: "a" }], 1);
  equal(rows.total, 1);
  equal(rows.get(400), null);
});
