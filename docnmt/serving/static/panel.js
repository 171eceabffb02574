// What context did for a word: its probability with context and without, the context words that were looked at, and
// how far the gates were open.

import {element, meter, percent, signed} from "./elements.js";
import {ask} from "./server.js";
import {overlap} from "./words.js";

const STRONG = 1, FULL = 3;  // nats: underlined from here on; the darkest colour
let open = null;  // the panel that is: {sentence, word, box}

// No darker than this, so that the words stay readable in light and dark.
const tint = (colour, part) => `color-mix(in srgb, var(--${colour}) ${Math.round(45 * part)}%, transparent)`;
const mean = values => values.reduce((sum, x) => sum + x, 0) / values.length;

export function closePanel(sentence = open?.sentence) {
  if (!open || open.sentence !== sentence) return;
  const {word, box} = open;
  open = null;
  sentence.box.classList.remove("open");
  for (const line of [sentence.original, sentence.translation]) line.mark("chosen", []);
  for (const each of sentence.translation.words) {
    each.node.style.background = "";
    each.node.classList.remove("strong", "loss");
  }
  const had = box.contains(document.activeElement);
  box.remove();
  if (had) word.node.focus();
}

export async function openPanel(sentence, line, word) {
  if (!sentence.done) return;
  closePanel();
  const close = element("button", {type: "button", className: "small close", ariaLabel: "Close"}, "✕");
  close.addEventListener("click", () => closePanel());
  const content = element("div", {}, element("p", {className: "dim"}, "Asking the model …"));
  const box = element("div", {className: "panel card", role: "region", ariaLabel: "What context did"}, content, close);
  open = {sentence, word, box};
  sentence.box.append(box);
  sentence.box.classList.add("open");
  sentence[line].mark("chosen", [word]);
  try {
    const found = await explanation(sentence);
    if (open?.box !== box) return;
    content.replaceChildren(...(line === "translation" ? ofTarget : ofSource)(sentence, word, found));
    paint(sentence, found);
  } catch (error) {
    sentence.explained = null;
    content.replaceChildren(element("p", {className: "error", role: "alert"}, error.message));
  }
  sentence.run.announce(content.querySelector("h3, p").textContent);
}

// One question a sentence, for all of its words. Of the document the model gets what it sees.
function explanation(sentence) {
  const {run} = sentence, [before, after] = run.model.context;
  const said = sentence.document ? [] : run.previous.map(source => ({source, text: ""}));
  const position = said.length + sentence.position, first = Math.max(0, position - before);
  const seen = [...said, ...run.documents[sentence.document]].slice(first, position + after + 1);
  sentence.explained ??= ask("explanation", {
    model: run.model.name,
    source: seen.map(each => each.source),
    target: seen.map(each => each.text ?? (each.wanted ? "" : each.source)),
    position: position - first,
  });
  return sentence.explained;
}

const place = (spans, word) => spans.findIndex(span => overlap(word, span));

function paint(sentence, found) {
  for (const word of sentence.translation.words) {
    const at = place(found.target, word);
    if (at < 0) continue;
    const gain = found.log.true[at] - found.log.none[at], part = Math.min(Math.abs(gain) / FULL, 1);
    if (part > 0.02) word.node.style.background = tint(gain > 0 ? "gain" : "loss", part);
    word.node.classList.toggle("strong", Math.abs(gain) >= STRONG);
    word.node.classList.toggle("loss", gain < 0);
  }
}

// ---- a word of the translation ----

function ofTarget(sentence, word, found) {
  const at = place(found.target, word);
  if (at < 0) return [element("p", {}, "The model does not know this word.")];
  return [probabilities(word, found.log.true[at], found.log.none[at]), attention("decoder", at, found)];
}

function probabilities(word, with_, without) {
  const gain = with_ - without, factor = Math.exp(Math.abs(gain));
  const whole = factor < 1e6 ? Math.round(factor).toLocaleString("en") : "over a million";
  const times = factor < 10 ? factor.toFixed(1) : whole;
  let verdict = "context hardly matters";
  if (factor >= 1.1) verdict = `${times} times as probable ${gain > 0 ? "with context" : "without context"}`;
  const bars = element("div", {className: "bars"});
  for (const [label, log, kind] of [["with context", with_, ""], ["without", without, "none"]]) {
    const figure = element("span", {className: "dim"}, `log\u00a0p ${signed(log)}`);
    bars.append(element("span", {}, label), meter(Math.exp(log), kind),
      element("span", {}, percent(Math.exp(log)), " ", figure));
  }
  const note = `Context changed its log-probability by ${signed(gain)} nats. The words of the sentence are coloured by ` +
    "that: green where context made them more probable, red where less.";
  const head = element("h3", {}, `“${word.text}”: ${verdict}`);
  return element("div", {}, head, bars, element("p", {className: "dim"}, note));
}

// ---- a word of the source ----

function ofSource(sentence, word, found) {
  const at = place(found.source, word), head = element("h3", {}, `“${word.text}”, read in its context`);
  const note = element("p", {className: "dim"}, "What the encoder took from the context while it read this word. What " +
    "context did to probabilities is told by the words of the translation.");
  return [element("div", {}, head, note), attention("encoder", at, found)];
}

// ---- where it looked ----

function attention(side, at, found) {
  const box = element("div"), weights = found.attention[side], shares = found.share[side];
  box.append(element("h4", {}, `Looked at in the context (${side})`));
  if (!weights.length || at < 0) {
    box.append(element("p", {}, `This model's ${side} has no context attention that could be shown.`));
    return box;
  }
  const columns = [];
  const lines = found.context.map(({at: away, words, cut}) => {
    const line = element("p", {className: "seen", dir: "auto"});
    const label = `${Math.abs(away)} ${away < 0 ? "before" : "after"}`;
    line.append(element("span", {className: "away"}, label), cut && away < 0 ? "… " : "");
    words.forEach((word, number) => {
      if (number && word.startsWith(" ")) line.append(" ");
      const node = element("span", {className: "word"}, word.trim());
      columns.push(node);
      line.append(node);
    });
    if (cut && away > 0) line.append(" …");
    return line;
  });
  const nowhere = element("p", {className: "dim"});
  const every = weights.map((_, layer) => layer);
  const choices = every.length > 1 ? [every, ...every.map(layer => [layer])] : [every];
  const buttons = choices.map((layers, number) => {
    const name = layers.length === every.length ? (every.length > 1 ? "all layers" : "its layer") : `layer ${number}`;
    const button = element("button", {type: "button", className: "small"}, name);
    if (shares.length) {
      const share = mean(layers.map(layer => shares[layer][at]));
      button.append(meter(share), `gate ${percent(share)}`);
    }
    button.addEventListener("click", () => {
      for (const other of buttons) other.ariaPressed = String(other === button);
      shade(columns, layers.map(layer => weights[layer][at]), nowhere);
    });
    return button;
  });
  const gates = shares.length ? "Gate: how much of what was looked at the layer let in." :
    "This model has no gates: everything it looks at is added.";
  box.append(element("div", {className: "layers", role: "group", ariaLabel: "Layers"}, ...buttons), ...lines, nowhere,
    element("p", {className: "dim"}, gates));
  buttons[0].click();
  return box;
}

function shade(columns, rows, nowhere) {
  const weights = rows[0].map((_, column) => mean(rows.map(row => row[column])));
  const most = Math.max(...weights.slice(0, columns.length), 0.01);
  columns.forEach((node, column) => {
    const weight = weights[column];
    node.style.background = tint("accent", weight / most);
    node.title = `attention ${percent(weight)}`;
    if (weight >= 0.05) node.dataset.weight = Math.round(100 * weight);
    else delete node.dataset.weight;
  });
  const rest = percent(weights[columns.length]);
  nowhere.textContent = columns.length ? `Numbers are per cent of the attention, from 5 on; ${rest} went to no word.` :
    "There is nothing before this sentence to look at.";
}
