// Small tools for building and updating a document. Text is always set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

// A new HTML element: attributes by name, then children (elements or texts).
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

// A new SVG element, likewise.
export function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  change(node, attributes);
  node.append(...children);
  return node;
}

// Set attributes, but only those that differ: a slider's tick then touches little. `null` removes one.
export function change(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null) node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  }
}

// Set a node's text, if it differs.
export function say(node, text) {
  if (node.textContent !== String(text)) node.textContent = text;
}

// Set a node's text where `A_t` means a subscript: made of `sub` in HTML, of shifted text in SVG.
export function sayWithSubscripts(node, text) {
  if (node.saidText === text) return;
  node.saidText = text;
  const inSvg = node.namespaceURI === SVG;
  const lowered = (letter) =>
    inSvg ? [shape("tspan", { dy: 3, "font-size": "75%" }, letter), shape("tspan", { dy: -3 }, "\u200b")] : [element("sub", {}, letter)];
  const parts = text.split(/_(\w)/); // every second part is a subscript
  node.replaceChildren(...parts.flatMap((part, place) => (place % 2 ? lowered(part) : [part])));
}

// Keep one child for each key: make what is new, drop what is gone, put them in order, and return them.
export function keyed(parent, keys, make) {
  const kept = (parent.keyedChildren ??= new Map());
  for (const [key, node] of kept) {
    if (!keys.includes(key)) {
      node.remove();
      kept.delete(key);
    }
  }
  keys.forEach((key, place) => {
    if (!kept.has(key)) kept.set(key, make(key, place));
    const node = kept.get(key);
    if (parent.children[place] !== node) parent.insertBefore(node, parent.children[place] ?? null);
  });
  return keys.map((key) => kept.get(key));
}

let names = 0;

// An id that nothing else in the document has.
export function freshId(stem) {
  names += 1;
  return `${stem}-${names}`;
}

// JupyterLab takes arrow keys for itself unless the control says otherwise.
export const KEEPS_KEYS = { "data-lm-suppress-shortcuts": "true" };
