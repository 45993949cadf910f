/**
 * The server's time of day, told by frames, read between them with a clock that never jumps.
 *
 * A sample is late by the time it travelled, so the sample that makes the server's clock latest is
 * the best one. A sandbox may run at N times real time: `rate` is its speed.
 */
const STEP_SECONDS = 1.5;

export class ServerClock {
  #monotonic;
  #rate;
  #server = null;
  #local = 0;

  /** `monotonic` gives milliseconds, as performance.now() does. */
  constructor({ rate = 1, monotonic = () => performance.now() } = {}) {
    this.#monotonic = monotonic;
    this.#rate = rate;
  }

  get known() {
    return this.#server !== null;
  }

  /** Take in the server's word for "now", in seconds since the epoch. */
  sample(serverNow) {
    if (!Number.isFinite(serverNow)) return;
    const ahead = this.known ? serverNow - this.now() : Infinity;
    if (ahead < 0 && -ahead < STEP_SECONDS * Math.max(1, this.#rate)) return;
    this.#server = serverNow;
    this.#local = this.#monotonic();
  }

  /** Seconds since the epoch on the server; this machine's own clock until a sample came. */
  now() {
    if (!this.known) return Date.now() / 1000;
    return this.#server + ((this.#monotonic() - this.#local) / 1000) * this.#rate;
  }

  /** Real seconds from now until `moment`, never below zero. */
  until(moment) {
    return Math.max(0, (moment - this.now()) / this.#rate);
  }
}
