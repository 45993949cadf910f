/** The configuration that is wished for and the one in use; an editor for those who may. */
import { ConfigEditor } from "../config_editor.js";
import { drawChanges, drawFaults, drawProfiles } from "../config_view.js";
import { lastChangeInWords, stateInWords } from "../config_words.js";
import { one, parts, setHidden, setText } from "../lib/dom.js";
import { startRunPage } from "../shell.js";

class ConfigurationPage {
  #shell;
  #editor;
  /** What the server has, and the version on which the text in the editor is based. */
  #known = null;
  #base = 0;
  #run = {};
  #loading = false;
  #again = false;
  #busy = false;
  #preview = false;

  start() {
    this.#editor = new ConfigEditor(one("#editor"), () => this.#edited());
    this.#shell = startRunPage({
      change: (data, topics) => {
        if (topics.has("run")) this.#runChanged(data.run);
      },
    });
    if (this.#shell.page.mayControl) this.#listen();
    this.#load();
  }

  #listen() {
    one("#validate").addEventListener("click", () => this.#validate());
    one("#discard").addEventListener("click", () => this.#showTheirs());
    one("#config-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#apply();
    });
    const conflict = parts(one("#conflict"));
    conflict.theirs.addEventListener("click", () => this.#showTheirs());
    conflict.mine.addEventListener("click", () => this.#keepMine());
    addEventListener("beforeunload", (event) => {
      if (this.#isDirty) event.preventDefault();
    });
  }

  get #isDirty() {
    return this.#known !== null && this.#shell.page.mayControl && this.#editor.value !== this.#known.text;
  }

  // --- what the server says -----------------------------------------------------------------

  #runChanged(run) {
    this.#run = run;
    if (!this.#known) return;
    const { version, applied_version: applied, error } = this.#known;
    const same = run.config_version === version && run.applied_config_version === applied && run.config_error === error;
    if (!same) this.#load();
    this.#drawState();
  }

  /** Ask for everything again; whoever asks meanwhile is served by one more call. */
  async #load() {
    this.#again = this.#loading;
    if (this.#loading) return;
    this.#loading = true;
    try {
      this.#take(await this.#shell.api.get("config"));
      this.#shell.notices.clear("config");
    } catch (error) {
      this.#shell.notices.set("config", { text: error.message, bad: true, action: { label: "Try again", run: () => this.#load() } });
    } finally {
      this.#loading = false;
    }
    if (this.#again) this.#load();
  }

  #take(body) {
    if (this.#known && body.seq < this.#known.seq) return;
    const dirty = this.#isDirty;
    this.#known = body;
    if (!dirty) this.#adopt();
    else if (body.version > this.#base) this.#tellConflict(`${lastChangeInWords(body).replace(/^v/, "V")} was applied after you had begun to edit.`);
    if (!this.#preview) this.#drawCompleted();
    drawChanges(body.history);
    this.#drawState();
    this.#drawButtons();
  }

  /** The editor holds what the server has. */
  #adopt() {
    this.#editor.value = this.#known.text;
    this.#base = this.#known.version;
    this.#editor.readOnly = !this.#shell.page.mayControl;
    if (this.#shell.page.mayControl) setHidden(one("#conflict"), true);
  }

  // --- drawing ------------------------------------------------------------------------------

  #drawState() {
    const { version, applied_version: applied, error } = this.#known;
    const { text, tone } = stateInWords({ version, applied, error, state: this.#run.state });
    setText(one("#config-state"), text);
    one("#config-state").dataset.tone = tone;
    setText(one("#editor-note"), lastChangeInWords(this.#known));
  }

  #drawCompleted() {
    const { completed, profiles, faults, completed_version: version } = this.#known;
    this.#showCompleted("Completed, as the scheduler uses it", `version ${version}`, completed || faultLines(faults), profiles);
  }

  #showCompleted(title, note, text, profiles) {
    setText(one("#completed-title"), title);
    setText(one("#completed-note"), note);
    setText(one("#completed"), text);
    drawProfiles(profiles);
  }

  #drawButtons() {
    if (!this.#shell.page.mayControl) return;
    const conflict = this.#base !== this.#known.version;
    one("#validate").disabled = this.#busy;
    one("#apply").disabled = this.#busy || conflict || !this.#isDirty;
    one("#discard").disabled = this.#busy || !this.#isDirty;
  }

  #showFaults(faults) {
    drawFaults(faults, (line) => this.#editor.jump(line));
    this.#editor.mark(faults.map(({ line }) => line));
  }

  #say(text, bad = false) {
    setText(one("#config-said"), text);
    one("#config-said").classList.toggle("field-error", bad);
  }

  // --- what the person does -------------------------------------------------------------------

  #edited() {
    this.#say("");
    this.#endPreview();
    this.#drawButtons();
  }

  #endPreview() {
    if (!this.#preview) return;
    this.#preview = false;
    this.#drawCompleted();
  }

  async #validate() {
    await this.#send({ text: this.#editor.value, validate_only: true }, ({ completed, profiles }) => {
      this.#preview = this.#isDirty;
      if (this.#preview) this.#showCompleted("Completed, as your text comes to", "checked, not applied", completed, profiles);
      this.#say("No faults. Nothing was changed.");
    });
  }

  async #apply() {
    const comment = one("#config-comment");
    const text = this.#editor.value;
    await this.#send({ text, comment: comment.value, version: this.#base }, (body) => {
      this.#preview = false;
      comment.value = "";
      // What was typed while the answer was on its way goes on from here.
      if (this.#editor.value !== text) this.#base = body.version;
      else this.#known = null;
      this.#take(body);
      this.#say(`Version ${body.version} is written; the scheduler takes it up with its next cycle.`);
    });
  }

  async #send(body, done) {
    this.#busy = true;
    this.#drawButtons();
    try {
      const answer = await this.#shell.api.post("config", body);
      this.#showFaults([]);
      done(answer);
    } catch (error) {
      this.#failed(error);
    } finally {
      this.#busy = false;
      this.#drawButtons();
    }
  }

  #failed(error) {
    const faults = error.body?.errors;
    if (Array.isArray(faults)) {
      this.#showFaults(faults);
      this.#say("");
    } else if (error.status === 409) {
      this.#tellConflict(error.message);
      this.#load();
    } else this.#say(error.message, true);
  }

  // --- two people at once -----------------------------------------------------------------------

  #tellConflict(text) {
    setText(parts(one("#conflict")).text, text);
    setHidden(one("#conflict"), false);
  }

  #showTheirs() {
    this.#adopt();
    this.#endPreview();
    this.#showFaults([]);
    this.#say("");
    this.#drawButtons();
  }

  #keepMine() {
    this.#base = this.#known.version;
    setHidden(one("#conflict"), true);
    this.#say(`Apply replaces version ${this.#base} by your text.`);
    this.#drawButtons();
  }
}

function faultLines(faults) {
  return faults.map(({ path, message }) => `# ${path ? `${path}: ` : ""}${message}`).join("\n");
}

new ConfigurationPage().start();
