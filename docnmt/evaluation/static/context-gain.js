"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const list = document.getElementById("sentences");
const STRONG = 1, FULL = 3;  // nats: underlined from here on; the darkest colour
const KINDS = {true: "with its context", none: "with none", shuffled: "with one of another document",
  repeated: "with the sentence repeated"};

function element(tag, kind, text) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  if (text !== undefined) made.textContent = text;
  return made;
}
const signed = x => (x >= 0.005 ? "+" : x <= -0.005 ? "\u2212" : "") + Math.abs(x).toFixed(2);
const percent = x => (x && x < 1e-5 ? "under 0.001" : (100 * x).toFixed(!x || x > 0.0995 ? 0 : x < 0.001 ? 3 : 1)) +
  "\u00a0%";

// No darker than this, so that the words stay readable in light and dark.
const tint = (colour, part) => `color-mix(in srgb, var(--${colour}) ${Math.round(45 * part)}%, transparent)`;

function paint(word, gain) {
  const part = Math.min(Math.abs(gain) / FULL, 1);
  if (part > 0.02) word.style.background = tint(gain > 0 ? "gain" : "loss", part);
  word.classList.toggle("strong", Math.abs(gain) >= STRONG);
  word.classList.toggle("loss", gain < 0);
}

// ---- a sentence ----

function line(kind, label, texts, language) {
  const row = element("div", "line " + kind), text = element("p");
  text.dir = "auto";
  text.lang = language;
  const words = texts.map((word, place) => {
    if (place && word.startsWith(" ")) text.append(" ");
    const made = element("span", "word", word.trim());
    text.append(made);
    return made;
  });
  row.append(element("span", "", label), text);
  return {row, text, words};
}

function card(sentence) {
  const box = element("article", "card"), [source, target] = data.languages;
  const head = element("header");
  const [place, length] = sentence.place;
  head.append(element("span", "", `${sentence.document}, sentence ${place} of ${length}`),
    element("b", "", `${signed(sentence.gain)} nats`));
  box.append(head);
  const columns = [];
  for (const context of sentence.context) {
    const away = Math.abs(context.at), label = `${away} ${context.at < 0 ? "before" : "after"}`;
    const made = line("context", label, context.words, source);
    if (context.cut) context.at < 0 ? made.text.prepend("\u2026 ") : made.text.append(" \u2026");
    columns.push(...made.words);
    box.append(made.row);
  }
  // The mark that ends a context, or stands for an empty one: attention that goes there goes to no word.
  const mark = element("span", "word mark", sentence.context.length ? "\u27e8end\u27e9" : "\u27e8no context\u27e9");
  if (!sentence.context.length) box.append(line("context", "context", [], source).row);
  box.querySelector(".context:last-of-type p").append(" ", mark);
  columns.push(mark);
  const answer = element("div", "answer");
  answer.setAttribute("aria-live", "polite");
  const own = line("source", "source", sentence.source, source);
  const reference = line("target", "target", sentence.target, target);
  box.append(own.row, reference.row, answer);
  answer.hidden = true;
  const view = {box, columns, answer, sentence};
  reference.words.at(-1).classList.add("mark");
  reference.words.forEach((word, at) => {
    const gain = sentence.log.true[at] - sentence.log.none[at];
    paint(word, gain);
    word.title = `${signed(gain)} nats: ` +
      underEach(sentence, at).join(", ");
    ask(word, at, reference.words, view, "decoder");
  });
  if (data.layers.encoder) own.words.forEach((word, at) => ask(word, at, own.words, view, "encoder"));
  sentence.translations.forEach((text, at) => {
    box.append(line("translation", at ? "translated without" : "translated with it", [text], target).row);
  });
  return box;
}

// ---- a word that is asked ----

let chosen = null;

// The words of a line are one stop of the Tab key; arrows go from word to word.
function ask(word, at, words, view, side) {
  word.setAttribute("role", "button");
  word.tabIndex = at ? -1 : 0;
  const choose = () => {
    words.forEach(other => { other.tabIndex = other === word ? 0 : -1; });
    if (chosen !== word) show(word, at, view, side);
  };
  word.addEventListener("click", choose);
  word.addEventListener("focus", choose);
  word.addEventListener("keydown", event => {
    const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: words.length - 1}[event.key];
    if (event.key === "Enter" || event.key === " ") choose();
    else if (words[to]) words[to].focus();
    else return;
    event.preventDefault();
  });
}

const unpacked = text => Uint8Array.from(atob(text), letter => letter.charCodeAt(0));

function hide() {
  document.querySelectorAll(".card.open").forEach(box => {
    box.classList.remove("open");
    box.querySelector(".answer").hidden = true;
    box.querySelectorAll(".context .word").forEach(word => {
      word.style.background = "";
      delete word.dataset.weight;
      word.title = "";
    });
  });
  if (chosen) chosen.classList.remove("chosen");
  chosen = null;
}

function show(word, at, view, side) {
  hide();
  chosen = word;
  word.classList.add("chosen");
  const {sentence, columns, answer, box} = view, layers = data.layers[side];
  const rows = sentence[side === "encoder" ? "source" : "target"].length;
  const weights = unpacked(sentence.attention[side]), shares = unpacked(sentence.share[side]);
  const every = [...Array(layers).keys()];
  const mean = values => values.reduce((sum, x) => sum + x, 0) / values.length;
  answer.replaceChildren();
  answer.hidden = false;
  box.classList.add("open");
  if (side === "decoder") answer.append(...probabilities(word, at, sentence));
  if (!layers) {
    answer.append(element("p", "", `No context attention in this model's ${side}.`));
    return;
  }
  const what = side === "encoder" ? `What the source word \u201c${word.textContent}\u201d took from the context` :
    "What it took from the context";
  answer.append(element("p", "", `${what}${data.gated ? ", and how much of it the gates let in" : ""} (${side}):`));
  const buttons = [every, ...every.map(layer => [layer])].map((some, number) => {
    const name = number ? `layer ${number}` : "all layers";
    const button = element("button", "", name);
    if (data.gated) {
      const share = mean(some.map(layer => shares[layer * rows + at])) / 255, gate = element("span", "gate");
      button.textContent += `, gate ${percent(share)}`;
      gate.append(element("i"));
      gate.firstChild.style.width = `${100 * share}%`;
      button.append(gate);
    }
    button.addEventListener("click", () => {
      buttons.forEach(other => other.setAttribute("aria-pressed", other === button));
      const row = columns.map((_, column) =>
        mean(some.map(layer => weights[(layer * rows + at) * columns.length + column])) / 255);
      shade(columns, row);
    });
    return button;
  });
  if (layers === 1) buttons.shift();  // one layer is all layers
  answer.append(...buttons);
  buttons[0].click();
}

// Not every system is asked with every kind of context.
const underEach = (sentence, at) => Object.keys(KINDS).filter(name => sentence.log[name]).map(
  name => `${percent(Math.exp(sentence.log[name][at]))} ${KINDS[name]}`);

function probabilities(word, at, sentence) {
  const gain = sentence.log.true[at] - sentence.log.none[at], factor = Math.exp(Math.abs(gain));
  const times = factor < 10 ? factor.toFixed(2) : Math.round(factor).toLocaleString("en");
  const more = gain > 0 ? "with its context as without" : "without its context as with it";
  const first = element("p");
  first.append(element("b", "", `\u201c${word.textContent}\u201d ${signed(gain)} nats`),
    `: ${times} times as probable ${more}.`);
  return [first, element("p", "", `Probability ${underEach(sentence, at).join(", ")}.`)];
}

function shade(columns, row) {
  const most = Math.max(...row, 0.01);
  columns.forEach((column, at) => {
    column.style.background = tint("accent", row[at] / most);
    column.title = `attention ${percent(row[at])}`;
    if (row[at] >= 0.05) column.dataset.weight = Math.round(100 * row[at]);
    else delete column.dataset.weight;
  });
}

// ---- the list ----

const PAGE = 20;  // sentences shown at first, and added at a time
const more = document.getElementById("more");
const cards = data.sentences.map(sentence => {
  const text = [sentence.document, ...sentence.context.map(c => c.words.join("")), sentence.source.join(""),
    sentence.target.join(""), ...sentence.translations].join("\n").toLowerCase();
  return {sentence, text, get box() { return this.made ??= card(sentence); }};
});
let found = [];
const orders = {gain: s => -s.gain, loss: s => s.gain, document: s => s.number};

function arrange() {
  const key = orders[document.getElementById("order").value];
  const wanted = document.getElementById("search").value.trim().toLowerCase();
  found = cards.filter(c => c.text.includes(wanted)).sort((a, b) => key(a.sentence) - key(b.sentence));
  list.replaceChildren();
  showMore();
}

function showMore() {
  const shown = list.childElementCount, next = found.slice(shown, shown + PAGE);
  list.append(...next.map(c => c.box));
  const left = found.length - shown - next.length, among = found.length < cards.length ? " found" : "";
  document.getElementById("count").textContent = `${found.length - left} of ${found.length}${among} shown`;
  more.textContent = `Show ${Math.min(PAGE, left)} more`;
  more.hidden = !left;
  return next;
}
more.addEventListener("click", () => showMore()[0].box.querySelector("[role=button]").focus());
document.getElementById("order").addEventListener("change", arrange);
document.getElementById("search").addEventListener("input", arrange);
document.addEventListener("keydown", event => { if (event.key === "Escape") hide(); });

const legend = document.getElementById("legend");
legend.append("Nats by which context made a word more or less probable:");
for (const gain of [-3, -1, -0.3, 0.3, 1, 3]) {
  const sample = element("span", "word", signed(gain));
  paint(sample, gain);
  legend.append(" ", sample);
}
legend.append(". Underlined: a gain of 1 or more (2.7 times as probable), dotted: a loss of 1 or more. Under context " +
  "words: per cent of the attention, from 5 on.");
arrange();
// One answer is open from the start, to show what there is: the word that gained most.
if (cards.length) {
  const {sentence, box} = cards.reduce((a, b) => (b.sentence.gain > a.sentence.gain ? b : a));
  const gains = sentence.log.true.map((x, at) => x - sentence.log.none[at]);
  box.querySelectorAll(".target .word")[gains.indexOf(Math.max(...gains))].click();
}
