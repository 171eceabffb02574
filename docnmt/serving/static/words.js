// Words of a text, with their places in it, and which of them are others in another text.

const segmenters = new Map();

function segmenter(language) {
  if (!segmenters.has(language)) {
    let made;
    try { made = new Intl.Segmenter(language, {granularity: "word"}); }
    catch { made = new Intl.Segmenter("en", {granularity: "word"}); }  // a code that is none
    segmenters.set(language, made);
  }
  return segmenters.get(language);
}

// Words and marks of punctuation, each with its begin and end; spaces are what is between them.
export function words(text, language) {
  return [...segmenter(language).segment(text)].filter(part => part.segment.trim()).map(part => ({
    text: part.segment, begin: part.index, end: part.index + part.segment.length, isWord: part.isWordLike,
  }));
}

export const overlap = (word, [begin, end]) => word.begin < end && begin < word.end;

// For each of two rows of words, which of them the longest common row leaves out.
export function differences(some, others) {
  const a = some.map(word => word.text), b = others.map(word => word.text);
  const longest = Array.from({length: a.length + 1}, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i][j] = a[i] === b[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  const left = [new Set(), new Set()];
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { i++; j++; }
    else if (j === b.length || (i < a.length && longest[i + 1][j] >= longest[i][j + 1])) left[0].add(i++);
    else left[1].add(j++);
  }
  return left;
}
