/**
 * One run, live: frames into the store, gaps filled over HTTP, views told once per animation
 * frame, and each frame acknowledged after it is drawn (so a stalled page costs the server nothing).
 */
import { ApiError } from "./api.js";
import { tellPainted } from "./lib/painted.js";
import { applyFrame, applyRest, applySnapshot, initialState } from "./store.js";

const RETRY_MS = 1_000;
/** Rows in the first and in each further piece of a topic's answer: the page opens with the first. */
const PIECES = { waiting: { first: 300, rest: 2_000 } };

export class LiveRun {
  #api;
  #socket;
  #clock;
  #handlers;
  #topics;
  #state = initialState();
  #fetching = new Set();
  #held = new Map();
  #changed = new Set();
  #acks = [];
  #drawing = false;
  #greeting = 0;

  /**
   * handlers: {change(data, topics), hello(message), status(word), matrix(buffer, ack),
   * failed(topic, error)}; `topics` are the JSON topics to keep.
   */
  constructor({ api, clock, topics, handlers }) {
    this.#api = api;
    this.#clock = clock;
    this.#topics = topics;
    this.#handlers = handlers;
  }

  /** What a LiveSocket calls. */
  socketHandlers() {
    return {
      open: () => {},
      json: (message) => this.#received(message),
      binary: (buffer) => this.#handlers.matrix?.(buffer, (seq) => this.#socket.send({ ack: seq, topic: "heatmap" })),
      status: (word) => this.#handlers.status(word),
    };
  }

  start(socket) {
    this.#socket = socket;
    this.#topics.forEach((topic) => this.#catchUp(topic));
    socket.connect();
  }

  get data() {
    return this.#state.data;
  }

  /** Put an answer to a POST (the `run` frame, say) in front of the views at once. */
  put(topic, frame) {
    const { state, effect } = applyFrame(this.#state, topic, frame);
    if (effect === "applied") this.#commit(topic, state);
  }

  #received(message) {
    if (message.now !== undefined) this.#clock.sample(message.now);
    if (message.type === "hello") this.#greeted(message);
    else if (this.#topics.includes(message.type)) this.#frame(message.type, message);
  }

  /** Frames after `hello.seq` will be pushed; what was committed before it is asked for. */
  #greeted(hello) {
    this.#greeting = hello.seq;
    this.#handlers.hello?.(hello);
    this.#topics.filter((topic) => this.#isBehind(topic)).forEach((topic) => this.#catchUp(topic));
  }

  #isBehind(topic) {
    return !(this.#state.last[topic] >= this.#greeting);
  }

  #frame(topic, frame) {
    this.#acks.push({ ack: frame.seq, topic });
    this.#apply(topic, frame);
    this.#draw();
  }

  #apply(topic, frame) {
    const { state, effect } = applyFrame(this.#state, topic, frame);
    if (effect === "applied") this.#commit(topic, state);
    if (effect !== "gap") return;
    this.#held.set(topic, [...(this.#held.get(topic) ?? []), frame]);
    this.#catchUp(topic);
  }

  /** Ask the database for everything since what is drawn; then apply what came meanwhile. */
  async #catchUp(topic) {
    if (this.#fetching.has(topic)) return;
    this.#fetching.add(topic);
    const since = this.#state.last[topic];
    try {
      const frame = await this.#api.get(topic, { since, limit: PIECES[topic]?.first });
      if (frame.now !== undefined) this.#clock.sample(frame.now);
      const complete = since === undefined || frame.from === undefined || topic === "overview";
      this.#commit(topic, applySnapshot(this.#state, topic, frame, complete));
      if (frame.more) this.#fetchRest(topic, since, frame.more);
    } catch (error) {
      this.#failed(topic, error);
      return;
    }
    this.#fetching.delete(topic);
    const held = this.#held.get(topic) ?? [];
    this.#held.delete(topic);
    held.forEach((frame) => this.#apply(topic, frame));
    // The socket may have been opened while the answer, of before that, was on its way.
    if (this.#state.last[topic] > (since ?? -1) && this.#isBehind(topic)) this.#catchUp(topic);
  }

  /** The rows that were not in the first piece, while frames are applied already. */
  async #fetchRest(topic, since, more) {
    let after = more;
    while (after) {
      try {
        const frame = await this.#api.get(topic, { since, after, limit: PIECES[topic].rest });
        this.#commit(topic, applyRest(this.#state, topic, frame));
        after = frame.more;
      } catch (error) {
        this.#handlers.failed?.(topic, error);
        if (isFinal(error)) return;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  #failed(topic, error) {
    this.#handlers.failed?.(topic, error);
    if (isFinal(error)) return;
    setTimeout(() => {
      this.#fetching.delete(topic);
      this.#catchUp(topic);
    }, RETRY_MS);
  }

  #commit(topic, state) {
    this.#state = state;
    this.#changed.add(topic);
    this.#draw();
  }

  #draw() {
    if (this.#drawing) return;
    this.#drawing = true;
    requestAnimationFrame(() => {
      this.#drawing = false;
      const topics = this.#changed;
      this.#changed = new Set();
      const began = performance.now();
      if (topics.size) this.#handlers.change(this.#state.data, topics);
      if (topics.size) tellPainted({ began, drawMs: performance.now() - began, topics: [...topics], data: this.#state.data });
      this.#acks.splice(0).forEach((ack) => this.#socket.send(ack));
    });
  }
}

/** The server understood the question and will not answer it: asking again would not help. */
function isFinal(error) {
  return error instanceof ApiError && error.status >= 400 && error.status < 500;
}
