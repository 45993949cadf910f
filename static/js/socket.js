/** One websocket that comes back by itself. It knows nothing of what the messages mean. */

export const FIRST_DELAY_MS = 500;
export const LONGEST_DELAY_MS = 10_000;
export const OFFLINE_AFTER_MS = 5_000;
const FINAL_CODES = { 4401: "signed-out", 4403: "forbidden", 4404: "gone" };

/** Full-jitter backoff: somewhere between half and all of a doubling delay. */
export function reconnectDelay(attempt, random = Math.random) {
  const ceiling = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** attempt);
  return ceiling / 2 + (ceiling / 2) * random();
}

export class LiveSocket {
  #url;
  #handlers;
  #socket = null;
  #attempt = 0;
  #timer = 0;
  #offlineTimer = 0;
  #status = "";
  #closed = false;

  /** handlers: {open(), json(message), binary(buffer), status(word)}. */
  constructor(url, handlers) {
    this.#url = url;
    this.#handlers = handlers;
  }

  connect() {
    this.#closed = false;
    const socket = new WebSocket(this.#url);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => this.#opened();
    socket.onmessage = (event) => this.#received(event.data);
    socket.onclose = (event) => {
      if (socket === this.#socket) this.#lost(event.code);
    };
    this.#socket = socket;
  }

  send(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  /** Drop the connection and make a new one: the server then starts afresh with full frames. */
  restart() {
    const old = this.#socket;
    this.#socket = null;
    old?.close();
    this.connect();
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#offlineTimer);
    this.#socket?.close();
  }

  /** Do not wait for the next attempt: the page is visible, or the network is back. */
  hurry() {
    if (!this.#timer || this.#closed) return;
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.connect();
  }

  #opened() {
    this.#attempt = 0;
    clearTimeout(this.#offlineTimer);
    this.#offlineTimer = 0;
    this.#tell("connected");
    this.#handlers.open();
  }

  #received(data) {
    if (typeof data === "string") this.#handlers.json(JSON.parse(data));
    else this.#handlers.binary(data);
  }

  #lost(code) {
    if (this.#closed) return;
    if (FINAL_CODES[code]) {
      this.#closed = true;
      clearTimeout(this.#offlineTimer);
      this.#tell(FINAL_CODES[code]);
      return;
    }
    if (!this.#offlineTimer) {
      this.#tell("reconnecting");
      this.#offlineTimer = setTimeout(() => this.#tell("offline"), OFFLINE_AFTER_MS);
    }
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      this.connect();
    }, reconnectDelay(this.#attempt));
    this.#attempt += 1;
  }

  #tell(status) {
    if (status === this.#status) return;
    this.#status = status;
    this.#handlers.status(status);
  }
}
