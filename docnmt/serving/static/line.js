// A sentence on the page, word by word. All of it is one stop of the Tab key; arrows go from word to word.

import {element} from "./elements.js";
import {overlap, words} from "./words.js";

export class Line {
  // `on` has what to do when a word is pointed at or focused (point; null when no more), is chosen (choose), and when
  // an arrow leaves the line (leave, with -1 or 1). Without `choose` words are no buttons.
  constructor(language, on = {}) {
    this.language = language;
    this.on = on;
    this.box = element("p", {lang: language, dir: "auto"});
    this.words = [];
    if (!on.point) return;
    this.box.addEventListener("pointerover", event => on.point(this.at(event.target)));
    this.box.addEventListener("pointerleave", () => on.point(null));
    this.box.addEventListener("focusin", event => this.focused(this.at(event.target)));
    this.box.addEventListener("focusout", () => on.point(null));
    this.box.addEventListener("keydown", event => this.key(event));
    if (on.choose) this.box.addEventListener("click", event => {
      const word = this.at(event.target);
      if (word) word.node.focus();
      if (word) on.choose(word);
    });
  }

  set(text) {
    this.text = text;
    this.words = words(text, this.language);
    const parts = [];
    let end = 0;
    this.words.forEach((word, number) => {
      if (word.begin > end) parts.push(text.slice(end, word.begin));
      end = word.end;
      word.number = number;
      word.node = element("span", {className: "word"}, word.text);
      if (word.isWord && this.on.point) word.node.tabIndex = -1;
      if (word.isWord && this.on.choose) word.node.setAttribute("role", "button");
      parts.push(word.node);
    });
    this.box.replaceChildren(...parts, text.slice(end));
    const first = this.stops()[0];
    if (first && this.on.point) first.node.tabIndex = 0;
  }

  stops() { return this.words.filter(word => word.isWord); }

  at(node) { return this.words.find(word => word.isWord && word.node === node) ?? null; }

  within(spans) { return this.words.filter(word => spans.some(span => overlap(word, span))); }

  // Puts a class on some words and takes it off all others.
  mark(kind, some) {
    const chosen = new Set(some);
    for (const word of this.words) word.node.classList.toggle(kind, chosen.has(word));
  }

  focused(word) {
    if (!word) return;
    for (const other of this.stops()) other.node.tabIndex = other === word ? 0 : -1;
    this.on.point(word);
  }

  focus() { this.stops().find(word => word.node.tabIndex === 0)?.node.focus(); }

  key(event) {
    const word = this.at(event.target), stops = this.stops(), place = stops.indexOf(word);
    if (!word || event.ctrlKey || event.altKey || event.metaKey) return;
    const to = {ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: stops.length - 1}[event.key];
    if ((event.key === "Enter" || event.key === " ") && this.on.choose) this.on.choose(word);
    else if (event.key === "ArrowDown") this.on.leave(1);
    else if (event.key === "ArrowUp") this.on.leave(-1);
    else if (to !== undefined) stops[to]?.node.focus();
    else return;
    event.preventDefault();
  }
}
