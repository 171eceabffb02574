// What the page asks the server.

export class Problem extends Error {}

async function send(path, body, signal) {
  const headers = typeof body === "string" ? {"Content-Type": "application/json"} : {};
  let response;
  try {
    response = await fetch(`page/${path}`, {method: "POST", headers, body, signal});
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server does not answer. Is it still running?");
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw new Problem(told.error ?? `The server refused this (${response.status} ${response.statusText}).`);
}

export const ask = async (path, question) => (await send(path, JSON.stringify(question))).json();

// The answer as bytes.
export const fetched = async (path, question) => (await send(path, JSON.stringify(question))).blob();

function form(fields) {
  const made = new FormData();
  for (const [name, value] of Object.entries(fields)) made.append(name, value);
  return made;
}

export async function cut(file, model, signal, encoding = "") {
  return (await send("sentences", form({file, model, encoding}), signal)).json();
}

export async function written(file, model, texts, encoding) {
  return (await send("file", form({file, model, texts: JSON.stringify(texts), encoding}))).blob();
}

// Calls `receive` with each line of the answer, as they come.
export async function stream(path, question, signal, receive) {
  const response = await send(path, JSON.stringify(question), signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    let value, done;
    try {
      ({value, done} = await reader.read());
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem("The connection to the server was lost.");
    }
    const lines = (rest + (value ?? "")).split("\n");
    rest = done ? "" : lines.pop();
    for (const line of lines.filter(Boolean)) {
      const answer = JSON.parse(line);
      if (answer.error) throw new Problem(answer.error);
      receive(answer);
    }
    if (done) return;
  }
}

export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
