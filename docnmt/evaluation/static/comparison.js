"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const [find, order, differing, count, list, more] =
  ["find", "order", "differing", "count", "sentences", "more"].map(id => document.getElementById(id));
const PAGE = 40;
const number = new Intl.NumberFormat("en");
let shown = [], done = 0;

// Words and marks, each with the space before it; in a script without spaces, each character.
const UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff";
const TOKEN = new RegExp(`\\s*(?:[${UNSPACED}]|(?:(?![${UNSPACED}])[\\p{L}\\p{M}\\p{N}])+|[^\\s])`, "gu");
const tokens = text => text.match(TOKEN) || [];
const bare = parts => parts.map(part => part.trim());

function element(name, kind, text) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Which tokens of either side are not in their longest common subsequence.
function differences(a, b) {
  const width = b.length + 1, best = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      best[i * width + j] = a[i] === b[j] ? best[(i + 1) * width + j + 1] + 1
        : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
  const left = a.map(() => true), right = b.map(() => true);
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) left[i++] = right[j++] = false;
    else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i++;
    else j++;
  }
  return [left, right];
}

function marked(parts, differs, known) {
  const line = element("dd", "text");
  line.dir = "auto";
  bare(parts).forEach((word, k) => {
    const mark = element("mark", known.has(word.toLowerCase()) ? "right" : "wrong", word);
    line.append(parts[k].slice(0, -word.length), differs[k] ? mark : word);
  });
  return line;
}

function scored(scores, k) {
  const cell = element("dd", "score", scores[k].toFixed(1));
  if (k) {
    const gap = scores[k] - scores[0];
    const text = Math.abs(gap) < 0.05 ? "0.0" : (gap > 0 ? "+" : "\u2212") + Math.abs(gap).toFixed(1);
    cell.append(" ", element("span", text === "0.0" ? "" : gap > 0 ? "gain" : "loss", `(${text})`));
  }
  return cell;
}

function article(sentence) {
  const made = element("article"), rows = element("dl");
  made.append(element("h3", "", `${data.documents[sentence.document]}, sentence ${sentence.position}`), rows);
  const given = [];
  if (sentence.source !== null) given.push(["source", sentence.source]);
  sentence.references.forEach((text, k) =>
    given.push([sentence.references.length > 1 ? `reference ${k + 1}` : "reference", text]));
  for (const [name, text] of given) {
    const line = element("dd", "given", text);
    line.dir = "auto";
    rows.append(element("dt", "given", name), line);
  }
  const known = new Set(bare(sentence.references.flatMap(tokens)).map(word => word.toLowerCase()));
  const lines = sentence.outputs.map(tokens);
  const differs = lines.map(line => line.map(() => false));
  for (let k = 1; k < lines.length; k++) {
    const [left, right] = differences(bare(lines[0]), bare(lines[k]));
    left.forEach((apart, i) => { differs[0][i] ||= apart; });
    differs[k] = right;
  }
  lines.forEach((line, k) =>
    rows.append(element("dt", "", data.systems[k]), scored(sentence.scores, k), marked(line, differs[k], known)));
  return made;
}

function showMore() {
  list.append(...shown.slice(done, done + PAGE).map(article));
  done = Math.min(done + PAGE, shown.length);
  more.hidden = done >= shown.length;
}

const searched = new Map();
function searchable(sentence) {
  if (!searched.has(sentence)) searched.set(sentence, [data.documents[sentence.document], sentence.source || "",
    ...sentence.references, ...sentence.outputs].join("\n").toLowerCase());
  return searched.get(sentence);
}

function update() {
  const wanted = find.value.trim().toLowerCase();
  shown = data.sentences.filter(sentence =>
    (!differing.checked || sentence.outputs.some(text => text !== sentence.outputs[0]))
    && (!wanted || searchable(sentence).includes(wanted)));
  if (order.value) {
    const [kind, system] = order.value.split(" ");
    const gap = sentence => (sentence.scores[system] - sentence.scores[0]) * (kind === "gain" ? -1 : 1);
    shown.sort((a, b) => gap(a) - gap(b));
  }
  count.textContent = `${number.format(shown.length)} of ${number.format(data.sentences.length)} sentences`;
  list.replaceChildren();
  done = 0;
  showMore();
}

let waiting;
find.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(update, 120); });
order.addEventListener("change", update);
differing.addEventListener("change", update);
document.getElementById("controls").addEventListener("submit", event => event.preventDefault());
more.addEventListener("click", showMore);
new IntersectionObserver(entries => { if (entries.some(entry => entry.isIntersecting) && !more.hidden) showMore(); },
  { rootMargin: "800px" }).observe(more);
document.addEventListener("keydown", event => {
  if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
    event.preventDefault();
    find.focus();
  }
});
update();
