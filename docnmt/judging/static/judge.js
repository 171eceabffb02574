const NAME = "docnmt-judge"; // under which this browser remembers who judges
const narrow = matchMedia("(max-width: 40rem)");

// How many sentences are shown around the one to judge, unless the whole text is asked for. Both translations should be
// in sight at once.
const around = () => narrow.matches ? { source: 2, translation: 1, after: 1 } : { source: 3, translation: 3, after: 1 };

const [error, field, who, name, link, where, progress, source, pair, whole, back, forward, done] =
  ["error", "judge", "who", "name", "link", "where", "progress", "source", "pair", "whole", "back", "forward", "done"]
    .map(id => document.getElementById(id));
const sections = ["welcome", "judging", "thanks"].map(id => document.getElementById(id));
const choices = [...document.querySelectorAll("[data-choice]")];
const [first, second] = pair.children;
const number = new Intl.NumberFormat("en");
const of = (part, total) => `${number.format(part)} of ${number.format(total)}`;

let judge = "", shown = null, busy = false;

// Some browsers are told to keep nothing: then the name is asked for again.
function remember(judge) {
  try { localStorage.setItem(NAME, judge); } catch { /* not kept */ }
}

function remembered() {
  try { return localStorage.getItem(NAME) || ""; } catch { return ""; }
}

// ---- asking the server ----

class Refused extends Error {}

async function ask(path, body) {
  const sent = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let answer, told;
  try {
    answer = await fetch(path, { ...sent, cache: "no-store", signal: AbortSignal.timeout(15000) });
    told = await answer.json();
  } catch {
    throw new Refused("The server does not answer. Nothing that was saved is lost; try again in a moment.");
  }
  if (!answer.ok) throw new Refused(told.error);
  return told;
}

// One thing at a time: a key pressed while the last answer is on its way is not meant for the next sentence.
async function act(work) {
  if (busy) return;
  busy = true;
  document.body.setAttribute("aria-busy", "true");
  try {
    await work();
    error.hidden = true;
  } catch (problem) {
    if (!(problem instanceof Refused)) throw problem;
    error.textContent = problem.message;
    error.hidden = false;
    error.scrollIntoView({ block: "nearest" });
  } finally {
    busy = false;
    document.body.removeAttribute("aria-busy");
  }
}

// ---- what is seen ----

function open(id) {
  for (const section of sections) section.hidden = section.id !== id;
  who.hidden = id === "welcome";
  name.textContent = judge;
}

function welcome() {
  judge = "";
  shown = null;
  remember("");
  open("welcome");
  field.value = "";
  field.focus();
}

function line(kind, content) {
  const made = document.createElement("p");
  made.className = kind;
  made.dir = "auto";
  if (typeof content === "string") made.textContent = content;
  else for (const [text, differs] of content) {
    const part = differs ? document.createElement("mark") : document.createTextNode(text);
    if (differs) part.textContent = text;
    made.append(part);
  }
  if (!made.textContent.trim()) {
    made.classList.add("nothing");
    made.textContent = "(no translation)";
  }
  return made;
}

const isWhole = () => whole.getAttribute("aria-pressed") === "true";

function fill(into, { before, sentence, after = [] }, most) {
  const near = isWhole() ? [before, after] : [before.slice(-most), after.slice(0, around().after)];
  const [earlier, later] = near.map(texts => texts.map(text => line("around", text)));
  into.append(...earlier, line("now", sentence), ...later);
}

function render() {
  const { question, questions, judged, document: text, documents, sentence, sentences, choice } = shown;
  open("judging");
  const bold = document.createElement("b");
  bold.textContent = of(question, questions);
  where.replaceChildren(bold, ` · text ${of(text, documents)}, sentence ${of(sentence, sentences)}`);
  progress.max = questions;
  progress.value = judged;
  source.replaceChildren();
  for (const article of [first, second]) article.replaceChildren(article.firstElementChild);
  fill(source, shown.source, around().source);
  fill(first, shown.first, around().translation);
  fill(second, shown.second, around().translation);
  pair.style.setProperty("--rows", first.children.length);
  for (const button of choices) button.setAttribute("aria-pressed", String(button.dataset.choice === choice));
  whole.hidden = sentence - 1 <= around().translation && sentences - sentence <= around().after;
  back.disabled = question === 1;
  forward.disabled = choice === null;
  window.scrollTo(0, 0);
  if (isWhole()) source.querySelector(".now").scrollIntoView({ block: "center" });
  else second.querySelector(".now").scrollIntoView({ block: "nearest" }); // no further down than it has to be
}

function thank(judged) {
  done.textContent = `You have judged all ${number.format(judged)} sentences. Everything is saved; you can close this page.`;
  open("thanks");
  document.querySelector("#thanks h1").focus();
}

// ---- what is done ----

async function show(question) {
  shown = await ask(`api/questions/${question}?judge=${encodeURIComponent(judge)}`);
  render();
}

async function enter(given) {
  const told = await ask("api/judges", { name: given });
  judge = told.judge;
  remember(judge);
  link.href = told.link;
  if (told.next === null) {
    shown = null;
    progress.max = told.questions;
    thank(told.judged);
  } else await show(told.next);
}

async function choose(choice) {
  const told = await ask(`api/questions/${shown.question}`, { judge, choice });
  shown.choice = choice;
  shown.judged = told.judged;
  await goForward();
}

async function goForward() {
  if (shown.question < shown.questions) await show(shown.question + 1);
  else thank(shown.judged);
}

const isOpen = id => !document.getElementById(id).hidden;

async function goBack() {
  if (isOpen("thanks")) await show(progress.max);
  else if (shown.question > 1) await show(shown.question - 1);
}

function toggleWhole() {
  whole.setAttribute("aria-pressed", String(!isWhole()));
  render();
}

document.getElementById("enter").addEventListener("submit", event => {
  event.preventDefault();
  act(() => enter(field.value));
});
document.getElementById("leave").addEventListener("click", () => busy || welcome());
document.getElementById("again").addEventListener("click", () => act(goBack));
back.addEventListener("click", () => act(goBack));
forward.addEventListener("click", () => act(goForward));
whole.addEventListener("click", toggleWhole);
narrow.addEventListener("change", () => isOpen("judging") && render());
for (const button of choices) button.addEventListener("click", () => act(() => choose(button.dataset.choice)));

document.addEventListener("keydown", event => {
  // A key held down judges once; keys of the browser and of a field stay theirs.
  if (event.repeat || event.ctrlKey || event.altKey || event.metaKey || event.target.tagName === "INPUT") return;
  const judging = isOpen("judging");
  if (judging && "123".includes(event.key)) act(() => choose(choices[event.key - 1].dataset.choice));
  else if (event.key === "ArrowLeft" && (judging || isOpen("thanks"))) act(goBack);
  else if (event.key === "ArrowRight" && judging && !forward.disabled) act(goForward);
  else if (event.key === "d" && judging && !whole.hidden) toggleWhole();
  else return;
  event.preventDefault();
});

open("");
// A judge's own link leads here with the name after the #.
field.value = decodeURIComponent(location.hash.slice(1)) || remembered();
history.replaceState(null, "", location.pathname);
if (field.value) act(() => enter(field.value)).then(() => judge || open("welcome"));
else welcome();
