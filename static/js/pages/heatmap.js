/** The heatmap page: which cycle is on the screen, live or chosen, and what is drawn of it. */
import { ApiError } from "../api.js";
import { BaseMismatch, decodeHeatmap } from "../frames.js";
import { one } from "../lib/dom.js";
import { tellPainted } from "../lib/painted.js";
import { theme } from "../lib/theme.js";
import { startRunPage } from "../shell.js";
import { Controls } from "../heatmap/controls.js";
import { CycleBar } from "../heatmap/cycle_bar.js";
import { HeatmapStage } from "../heatmap/stage.js";
import { NodeNames } from "../heatmap/sources.js";

/** A frame waits while someone reads: this long after the last movement over the map. */
const HOLD_MS = 4_000;

class HeatmapPage {
  #shell;
  #names;
  #stage;
  #controls;
  #bar;
  #mode = "live";
  #held = null;
  #holdUntil = 0;
  #holdTimer = 0;
  #base = null;
  #request = 0;

  start() {
    this.#controls = new Controls(one("#heat-controls"), () => this.#stage.redraw());
    this.#shell = startRunPage({
      binaryTopics: ["heatmap"],
      matrix: (buffer, ack) => this.#pushed(buffer, ack),
      themeChanged: () => this.#stage.redraw(),
      change: () => this.#bar?.refresh(),
    });
    const { api, page } = this.#shell;
    this.#names = new NodeNames(api);
    this.#stage = new HeatmapStage({ api, controls: this.#controls, theme, touched: () => this.#touched(), released: () => this.#release() });
    this.#bar = new CycleBar({
      base: page.base,
      live: () => this.#goLive(),
      pause: () => this.#pause(),
      choose: (sequence) => this.#choose(sequence),
    });
    const { cycle } = document.body.dataset;
    if (cycle) this.#choose(Number(cycle));
    else this.#fetch("latest");
  }

  /** A frame from the socket: drawn and acknowledged, or kept unacknowledged while held. */
  #pushed(buffer, ack) {
    this.#held = { buffer, ack };
    if (this.#mode !== "live") return;
    const wait = this.#holdUntil - performance.now();
    if (wait <= 0) {
      this.#drawHeld();
      return;
    }
    this.#bar.held(true);
    clearTimeout(this.#holdTimer);
    this.#holdTimer = setTimeout(() => this.#drawHeld(), wait);
  }

  #drawHeld() {
    const frame = this.#held;
    if (!frame || this.#mode !== "live") return;
    this.#held = null;
    this.#bar.held(false);
    const began = performance.now();
    try {
      this.#base = decodeHeatmap(frame.buffer, this.#base);
    } catch (error) {
      if (!(error instanceof BaseMismatch)) throw error;
      this.#base = null;
      this.#shell.socket.restart();
      return;
    }
    const matrix = this.#base;
    this.#request += 1;
    this.#show(matrix, this.#request);
    tellPainted({ topic: "heatmap", seq: matrix.seq, sequence: matrix.sequence, began, drawMs: performance.now() - began });
    requestAnimationFrame(() => frame.ack(matrix.seq));
  }

  async #show(matrix, request) {
    const nodes = this.#names.get(matrix.namesHash) ?? (await this.#names.load(matrix.namesHash));
    if (request !== this.#request) return;
    this.#stage.show(matrix, nodes);
    this.#bar.show(matrix, this.#mode);
  }

  async #fetch(sequence) {
    this.#request += 1;
    const request = this.#request;
    this.#bar.loading(sequence);
    try {
      const buffer = await this.#shell.api.bytes(`cycles/${sequence}/matrix`);
      if (request !== this.#request) return;
      if (buffer.byteLength === 0) throw new ApiError(404, { error: "No cycle of this run has a matrix yet.", matrix: "none" });
      await this.#show(decodeHeatmap(buffer), request);
    } catch (error) {
      if (request !== this.#request) return;
      this.#stage.missing(sequence, error, {
        base: this.#shell.page.base,
        retry: () => this.#fetch(sequence),
      });
      this.#bar.absent(sequence, this.#mode);
    }
  }

  #goLive() {
    this.#mode = "live";
    history.replaceState(null, "", location.pathname);
    if (this.#held) this.#drawHeld();
    else this.#fetch("latest");
  }

  #pause() {
    this.#mode = "paused";
    this.#bar.paused();
  }

  #choose(sequence) {
    this.#mode = "cycle";
    history.replaceState(null, "", `?cycle=${sequence}`);
    this.#fetch(sequence);
  }

  #touched() {
    this.#holdUntil = performance.now() + HOLD_MS;
  }

  #release() {
    this.#holdUntil = 0;
    clearTimeout(this.#holdTimer);
    this.#drawHeld();
  }
}

new HeatmapPage().start();
