// A sentence and its translation: waiting, done, chosen from alternatives, edited, beside the one without context.

import {element, iconButton} from "./elements.js";
import {Line} from "./line.js";
import {closePanel, openPanel} from "./panel.js";
import {ask} from "./server.js";
import {differences} from "./words.js";

// What a part of a file can be beside running text.
const ROLES = {heading: "Heading", cell: "Cell", note: "Note", title: "Title", header: "Header or footer",
  picture: "Picture"};

export class Sentence {
  // `run` has the model, its documents of sentences, and what to call when a translation changes (changed).
  constructor(run, document, position, {text, translate, begins, role}) {
    Object.assign(this, {run, document, position, source: text, wanted: translate});
    this.texts = [];  // the model's translations, best first
    this.text = null;  // the one that stands on the page
    this.plain = null;  // the model's without context
    this.edited = false;
    this.links = this.list = this.editor = null;
    const [from, to] = run.languages, on = line => ({
      point: word => this.point(line, word),
      choose: run.model.context ? word => openPanel(this, line, word) : undefined,
      leave: step => this.neighbour(step)?.[line].focus(),
    });
    this.original = new Line(from, on("original"));
    this.translation = new Line(to, on("translation"));
    this.other = new Line(to);
    this.target = element("div", {className: "target"}, this.translation.box);
    this.actions = element("div", {className: "actions"});
    const name = ROLES[role] ?? "", kinds = ["sentence", begins && "begins", role && `in-${role}`].filter(Boolean);
    this.box = element("article", {className: kinds.join(" "), ariaLabel: `${name && `${name}, `}Sentence ${position + 1}`},
      element("div", {className: "source"}, this.original.box), this.target, this.actions);
    if (begins && name) this.box.prepend(element("span", {className: "role"}, name));
    this.box.addEventListener("keydown", event => { if (event.key === "Escape") this.close(); });
    this.original.set(text);
    if (!translate) {  // a number, or a text that has its translation
      this.box.classList.add("kept");
      this.translation.set(text);
    }
  }

  get done() { return this.text !== null; }

  get machine() { return this.texts[0] ?? null; }

  neighbour(step) { return this.run.documents[this.document][this.position + step]; }

  wait(waiting) { if (this.wanted && !this.done) this.box.classList.toggle("waiting", waiting); }

  // ---- a translation comes ----

  // `unmet` are terms of the glossary, with the translations that are missing here.
  receive(texts, unmet = []) {
    this.box.classList.remove("waiting");
    this.unmet = unmet;
    this.texts = texts.filter(Boolean);
    if (!this.texts.length) {  // better the sentence as it is than none
      this.texts = [this.source];
      this.box.classList.add("missing");
    }
    this.more = iconButton("alternatives", "Other translations");
    this.more.addEventListener("click", () => this.toggleAlternatives());
    this.pencil = iconButton("edit", "Edit");
    this.pencil.addEventListener("click", () => this.edit());
    this.actions.replaceChildren(this.more, this.pencil);
    this.say(this.machine, false);
  }

  say(text, edited) {
    this.text = text;
    this.edited = edited;
    this.links = this.explained = null;
    this.translation.set(text);
    this.box.querySelectorAll(".note").forEach(note => note.remove());
    if (edited) this.target.append(element("span", {className: "note"}, "edited"));
    if (this.unmet.length && text === this.machine) {
      const terms = this.unmet.map(([term, wanted]) => `${term} = ${wanted}`).join(", ");
      this.target.append(element("span", {className: "note unmet"}, `term not met: ${terms}`));
    }
    this.more.hidden = this.texts.length < 2 && text === this.machine;
    this.compare();
  }

  // ---- without context ----

  receivePlain(text) {
    this.plain = text;
    this.compare();
  }

  get contextMatters() { return this.plain !== null && this.plain !== this.machine; }

  compare() {
    const shown = this.run.showsPlain && this.contextMatters;
    this.box.classList.toggle("with", shown);
    this.translation.mark("other", []);
    this.box.querySelector(".without")?.remove();
    if (!shown) return;
    this.other.set(this.plain);
    const [mine, theirs] = differences(this.translation.words, this.other.words);
    this.translation.mark("other", this.translation.words.filter(word => mine.has(word.number)));
    this.other.mark("other", this.other.words.filter(word => theirs.has(word.number)));
    this.translation.box.after(element("div", {className: "without"},
      element("span", {className: "label"}, "without context"), this.other.box));
  }

  // ---- which words belong together ----

  async point(line, word) {
    this.pointed = word;
    if (!word) return this.showLinks([]);
    if (!this.done) return;
    await new Promise(resolve => setTimeout(resolve, 60));  // a pointer on its way asks nothing
    if (this.pointed !== word) return;
    const text = this.text;
    this.links ??= ask("alignment", {model: this.run.model.name, source: this.source, target: text}).catch(() => []);
    const links = await this.links;
    if (this.pointed !== word || this.text !== text) return;
    const side = line === "original" ? 0 : 1;
    this.showLinks(links.filter(link => word.begin < link[side][1] && link[side][0] < word.end));
  }

  showLinks(links) {
    this.original.mark("linked", this.original.within(links.map(link => link[0])));
    this.translation.mark("linked", this.translation.within(links.map(link => link[1])));
  }

  // ---- another translation ----

  toggleAlternatives() {
    const wasOpen = this.list !== null;
    this.close();
    if (wasOpen) return;
    const shown = this.text, words = this.translation.words;
    const choices = this.texts.map(text => {
      const line = new Line(this.run.languages[1]);
      line.set(text);
      const [, theirs] = differences(words, line.words);
      line.mark("other", line.words.filter(word => theirs.has(word.number)));
      const button = element("button", {type: "button", ariaPressed: String(text === shown), lang: line.language,
        dir: "auto"}, ...line.box.childNodes);
      button.addEventListener("click", () => {
        this.close();
        this.say(text, false);
        this.run.changed();
        this.more.focus();
      });
      return button;
    });
    this.list = element("div", {className: "alternatives", role: "group", ariaLabel: "Other translations"}, ...choices);
    this.target.append(this.list);
    this.more.ariaExpanded = "true";
    choices[0].focus();
  }

  edit() {
    this.close();
    const field = element("textarea", {value: this.text, lang: this.run.languages[1], dir: "auto", rows: 2,
      ariaLabel: "Translation"});
    const save = element("button", {type: "submit", className: "small primary"}, "Save");
    const leave = element("button", {type: "button", className: "small"}, "Cancel");
    this.editor = element("form", {className: "editor"}, field, element("div", {className: "bar"}, save, leave));
    this.editor.addEventListener("submit", event => {
      event.preventDefault();
      const text = field.value.replace(/\s+/g, " ").trim() || this.machine;
      this.close();
      if (text !== this.text) this.say(text, !this.texts.includes(text));
      this.run.changed();
    });
    leave.addEventListener("click", () => this.close());
    field.addEventListener("keydown", event => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      this.editor.requestSubmit();
    });
    this.translation.box.hidden = true;
    this.target.prepend(this.editor);
    field.focus();
  }

  // Puts away what is open, and the focus where it came from.
  close() {
    closePanel(this);
    const from = this.list ? this.more : this.pencil;
    const had = (this.list ?? this.editor)?.contains(document.activeElement);
    this.list?.remove();
    this.editor?.remove();
    this.translation.box.hidden = false;
    this.more?.removeAttribute("aria-expanded");
    this.list = this.editor = null;
    if (had) from.focus();
  }
}
