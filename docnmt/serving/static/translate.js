// The page "Translate": a text or a file comes in, its sentences are translated one by one, and go out as a file.

import {counted, duration, element} from "./elements.js";
import {closePanel} from "./panel.js";
import {Sentence} from "./sentence.js";
import {cut, fetched, save, stream, written} from "./server.js";

const at = id => document.getElementById(id);
const PASTED = "text.txt";  // what a pasted text is called: it is read as such a file is

let models = [];
let file = null;  // the one that was chosen, if any
let run = null;  // what is on the page: the file, its model, its sentences
let working = null;  // stops what is under way

// ---- what is said ----

function announce(text) { at("live").textContent = text; }

function complain(error) {
  if (error.name === "AbortError") return;
  at("error").textContent = error.message;
  at("error").hidden = false;
  console.debug(error);
}

// ---- what comes in ----

const model = () => models.find(each => each.name === at("model").value);

async function begin() {
  const response = await fetch("page/models");
  const told = await response.json();
  models = told.models;
  at("model").append(...models.map(({name, languages}) =>
    element("option", {value: name}, `${name} (${languages.join(" → ")})`)));
  at("model").value = told.default;
  at("model-choice").hidden = models.length < 2;
  at("kinds").textContent = `Files: ${told.kinds.join(", ")}; others as lines of text.`;
  showLanguages();
}

// Short texts in which a sentence is clear only after the one before it.
const EXAMPLES = {
  fr: "Je pense à la lettre. Elle sera couverte de neige.",
  en: "The letter is on the table. It is for you. She wrote it yesterday.",
  de: "Der Brief liegt auf dem Tisch. Er ist für dich. Sie hat ihn gestern geschrieben.",
  es: "La carta está en la mesa. Es para ti. La escribió ayer.",
};

const example = () => EXAMPLES[model().languages[0].split("-")[0]];

function tryExample() {
  if (file) remove();
  at("text").value = example();
  translate();
}

// A term, =, and its translation a line.
function glossary() {
  const terms = {};
  for (const line of at("glossary").value.split("\n").filter(line => line.trim())) {
    const [term, ...rest] = line.split(/\t|=/);
    if (!term.trim() || rest.length !== 1 || !rest[0].trim()) {
      throw new Error(`“${line.trim()}” is not a term. Write a term, an equals sign and its translation.`);
    }
    terms[term.trim()] = rest[0].trim();
  }
  return terms;
}

function showLanguages() {
  at("languages").textContent = model().names.join(" → ");
  at("text").lang = at("previous").lang = model().languages[0];
  at("example").hidden = !example();
  at("demo").hidden = !model().demo;
  at("context-switch").hidden = !model().context;
}

function choose(chosen) {
  if (!chosen) return;
  file = chosen;
  at("error").hidden = true;
  at("chosen-name").textContent = file.name;
  const thousands = Math.round(file.size / 1000).toLocaleString("en");
  at("chosen-size").textContent = file.size < 1000 ? `${file.size} bytes` : `${thousands} kB`;
  at("encoding-choice").hidden = !/\.(txt|md|markdown|json|arb|srt|vtt)$/i.test(file.name);
  at("encoding").value = "";
  at("chosen").hidden = false;
  at("text").hidden = true;
  at("translate").focus();
  announce(`File ${file.name} chosen`);
}

function remove() {
  file = null;
  at("file").value = at("encoding").value = "";
  at("chosen").hidden = true;
  at("text").hidden = false;
  at("text").focus();
}

// ---- translating ----

async function translate() {
  const isPasted = !file, given = file ?? new File([at("text").value], PASTED);
  if (isPasted && !at("text").value.trim()) {
    at("text").focus();
    return complain(new Error("There is no text. Type or paste some, or choose a file."));
  }
  await work(async signal => {
    const chosen = model(), terms = glossary(), encoding = isPasted ? "" : at("encoding").value;
    const found = await cut(given, chosen.name, signal, encoding);
    const said = at("previous").value;
    const before = said.trim() ? await cut(new File([said], PASTED), chosen.name, signal) : {documents: []};
    const previous = before.documents.flatMap(({sentences}) => sentences.map(({text}) => text));
    lay(given, isPasted, chosen, found, {previous, glossary: terms, context: at("context").checked, encoding});
    await fill(signal, true);
    if (at("without").checked) await fill(signal, false);
  });
}

// One thing at a time: shows that it is under way, lets it be stopped, and tells what went wrong.
async function work(task) {
  working?.abort();
  const mine = working = new AbortController();
  at("error").hidden = true;
  at("work").hidden = false;
  at("progress").removeAttribute("value");
  at("progress-text").textContent = "";
  refresh();
  try {
    await task(mine.signal);
  } catch (error) {
    complain(error);
  }
  if (working !== mine) return;  // another one has begun
  working = null;
  at("work").hidden = true;
  run?.all.forEach(sentence => sentence.wait(false));
  refresh();
}

function lay(given, isPasted, chosen, found, how) {
  closePanel();
  if (!how.context) chosen = {...chosen, context: null};  // as a model that has none
  run = {
    file: given, name: found.name, model: chosen, ...how, languages: chosen.languages, isPasted,
    documents: [], showsPlain: at("without").checked, unsaved: false, announce,
    changed() { run.unsaved = true; refresh(); },
  };
  const parts = [];
  found.documents.forEach(({id, sentences}, number) => {
    const rows = sentences.map((each, position) => new Sentence(run, number, position, each));
    run.documents.push(rows);
    if (found.documents.length > 1) parts.push(element("h2", {className: "document"}, id));
    parts.push(...rows.map(row => row.box));
  });
  run.all = run.documents.flat();
  at("sentences").replaceChildren(...parts);
  at("sentences").classList.toggle("many", run.all.length > 300);
  at("without-switch").hidden = !chosen.context;
  const {name, guessed} = found.encoding ?? {};
  at("hint").textContent = [
    name && `The file was read as ${name}${guessed ? ", which is a guess: name another encoding if letters are wrong" : ""}.`,
    chosen.context && "Choose a word to see what context did for it.",
  ].filter(Boolean).join(" ");
  at("copy").hidden = !run.isPasted || !navigator.clipboard;
  at("download").textContent = run.isPasted ? "Download text" : `Download ${run.name}`;
  at("result").hidden = false;
  at("empty").hidden = true;
  refresh();
  if (at("result").getBoundingClientRect().top > 0.8 * innerHeight) at("work").scrollIntoView();
}

// Asks for all translations that are not there yet, with context or without.
async function fill(signal, context) {
  const lacks = sentence => sentence.wanted && (context ? !sentence.done : sentence.done && sentence.plain === null);
  // What was said before stands before the first document, and is wanted by nobody.
  const before = number => number ? [] : run.previous;
  const documents = run.documents.map((rows, number) => ({
    sentences: [...before(number), ...rows.map(row => row.source)],
    wanted: rows.filter(lacks).map(row => before(number).length + row.position),
  }));
  const total = documents.reduce((sum, document) => sum + document.wanted.length, 0);
  if (!total) return;
  if (context) run.all.forEach(sentence => sentence.wait(true));
  announce(`Translating ${counted(total, "sentence")}${context ? "" : " without context"}`);
  const started = performance.now();
  let done = 0;
  tick(done, total, started, context);
  const question = {model: run.model.name, context: context && run.context, glossary: run.glossary, documents};
  await stream("translate", question, signal, ({document, sentence, texts, unmet}) => {
    const row = run.documents[document][sentence - before(document).length];
    if (context) row.receive(texts, unmet);
    else row.receivePlain(texts[0] || row.source);
    tick(++done, total, started, context);
  });
  announce(`Done: ${counted(total, "sentence")}${context ? "" : " without context"}`);
}

function tick(done, total, started, context) {
  const left = (performance.now() - started) / 1000 / done * (total - done);
  at("progress").max = total;
  at("progress").value = done;
  at("progress-text").textContent = `${done} of ${counted(total, "sentence")}${context ? "" : " without context"}` +
    (done > 2 && done < total ? `, about ${duration(left)} left` : "");
  // Those who hear the page are told now and then.
  if (done && done < total && done % Math.ceil(total / 4) === 0) announce(at("progress-text").textContent);
}

// ---- what is on the page ----

function refresh() {
  if (!run) return;
  const busy = working !== null, missing = run.all.filter(row => row.wanted && !row.done).length;
  at("go-on").hidden = busy || !missing;
  for (const id of ["copy", "download", "tmx"]) at(id).disabled = busy || run.all.every(row => !row.done);
  const compared = run.all.filter(row => row.plain !== null);
  const changed = compared.filter(row => row.contextMatters).length;
  let text = "";
  if (missing && !busy) text = `${counted(missing, "sentence")} not translated`;
  else if (run.showsPlain && compared.length) {
    text = `Context changed ${changed} of ${counted(compared.length, "sentence")}.`;
  }
  at("summary").textContent = text;
}

async function showPlain(shown) {
  if (!run) return;
  run.showsPlain = shown;
  run.all.forEach(row => { if (row.done) row.compare(); });
  refresh();
  if (!shown || working) return;  // what is under way ends with it
  await work(signal => fill(signal, false));
  announce(at("summary").textContent);
}

// ---- what goes out ----

const texts = () => run.all.map(row => row.text);

async function deliver(task) {
  at("error").hidden = true;
  try {
    await task();
  } catch (error) {
    complain(error);
  }
}

const download = () => deliver(async () => {
  save(await written(run.file, run.model.name, texts(), run.encoding), run.name);
  run.unsaved = false;
});

const copy = () => deliver(async () => {
  const text = await (await written(run.file, run.model.name, texts(), run.encoding)).text();
  await navigator.clipboard.writeText(text);
  announce("Copied");
  at("copy").textContent = "Copied";
  setTimeout(() => { at("copy").textContent = "Copy"; }, 2000);
});

const memory = () => deliver(async () => {
  const stem = run.name.replace(/\.[^.]*$/, "");
  const pairs = run.all.filter(row => row.done).map(row => [stem, row.source, row.text]);
  save(await fetched("tmx", {model: run.model.name, pairs}), `${stem}.tmx`);
  run.unsaved = false;
});

// ---- what is done with it ----

at("form").addEventListener("submit", event => { event.preventDefault(); translate(); });
at("text").addEventListener("keydown", event => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) translate();
});
at("model").addEventListener("change", showLanguages);
at("example").addEventListener("click", tryExample);
at("choose").addEventListener("click", () => at("file").click());
at("file").addEventListener("change", () => choose(at("file").files[0]));
at("remove").addEventListener("click", remove);
at("cancel").addEventListener("click", () => {
  working?.abort();
  announce("Cancelled");
});
at("go-on").addEventListener("click", () => work(async signal => {
  await fill(signal, true);
  if (at("without").checked) await fill(signal, false);
}));
at("without").addEventListener("change", () => showPlain(at("without").checked));
at("download").addEventListener("click", download);
at("copy").addEventListener("click", copy);
at("tmx").addEventListener("click", memory);

const holdsFiles = event => event.dataTransfer.types.includes("Files");
addEventListener("dragover", event => {
  if (!holdsFiles(event)) return;
  event.preventDefault();
  at("form").classList.add("over");
});
addEventListener("dragleave", event => { if (!event.relatedTarget) at("form").classList.remove("over"); });
addEventListener("drop", event => {
  if (!holdsFiles(event)) return;
  event.preventDefault();
  at("form").classList.remove("over");
  choose(event.dataTransfer.files[0]);
});
addEventListener("beforeunload", event => { if (run?.unsaved) event.preventDefault(); });

begin().catch(() => complain(new Error("The server does not answer. Is it still running?")));
