// Making elements, and writing numbers for people.

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made) made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const ICONS = {
  edit: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  alternatives: "M4 7h16M4 12h11M4 17h7M17 16l3 3 3-3",
};

export function iconButton(icon, label) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[icon]);
  svg.append(path);
  return element("button", {type: "button", title: label, ariaLabel: label}, svg);
}

export function meter(share, kind = "") {
  const bar = element("i");
  bar.style.width = `${100 * share}%`;
  return element("span", {className: `meter ${kind}`, ariaHidden: "true"}, bar);
}

const MINUS = "\u2212", SPACE = "\u00a0";

export const signed = x => (x > 0 ? "+" : x < 0 ? MINUS : "") + Math.abs(x).toFixed(2);

export function percent(share) {
  if (share && share < 0.0001) return `under 0.01${SPACE}%`;
  return (100 * share).toFixed(share > 0.0995 || !share ? 0 : share < 0.001 ? 2 : 1) + SPACE + "%";
}

export const counted = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

export function duration(seconds) {
  if (seconds < 60) return `${Math.max(1, Math.round(seconds))} s`;
  return seconds < 3600 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
