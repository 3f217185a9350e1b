// SPDX-License-Identifier: Apache-2.0
// Elements of the page. Text from a daemon becomes text, and never markup. What has not changed is left alone, so that a
// reader of the page keeps the place.

const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

function fill(element, attributes, children) {
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

export const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/** A value that is null or false removes its attribute. */
export function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) element.removeAttribute(name);
    else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
  }
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Let `parent` have `count` children, made by make(). */
function setCount(parent, count, make) {
  while (parent.children.length > count) parent.lastElementChild.remove();
  while (parent.children.length < count) parent.append(make());
}

/** A list of texts. */
export function setList(list, texts) {
  setCount(list, texts.length, () => html("li"));
  texts.forEach((text, i) => setText(list.children[i], text));
}

const WORD_MAX = 12, CODE_MAX = 22, TEXT_MAX = 40; // characters that fit into a pair: of a word, of a small one, of a text

/** What a pair needs, so that no word is broken: the whole width, or smaller letters. */
function classOfFact(text) {
  const word = Math.max(...text.split(" ").map((part) => part.length));
  return [word > WORD_MAX && "code", (word > CODE_MAX || text.length > TEXT_MAX) && "wide"].filter(Boolean).join(" ") || null;
}

/** The pairs of a <dl>, [name, text] each; a pair without a text is left out. */
export function setFacts(list, pairs) {
  const shown = pairs.filter(([, text]) => text !== null && text !== undefined && text !== "");
  setCount(list, shown.length, () => html("div", {}, html("dt"), html("dd")));
  shown.forEach(([name, text], i) => {
    const pair = list.children[i];
    setText(pair.firstChild, name);
    setText(pair.lastChild, text);
    setAttributes(pair, { class: classOfFact(text) });
  });
}

/** Rows of a table: `columns` are {name, number, text(row)}; the first is the head of its row. classOf(row) is the class of a
 *  row, or null. `order` is {column, down}, or null: rows come as they are; onOrder(index) is called when the reader chooses
 *  a column. */
export function setTable(table, columns, rows, classOf, order, onOrder) {
  if (!table.tHead) {
    const head = table.createTHead().insertRow();
    columns.forEach((column, i) => {
      const label = onOrder ? html("button", { type: "button" }, column.name) : column.name;
      if (onOrder) label.addEventListener("click", () => onOrder(i));
      head.append(html("th", { scope: "col", class: column.number ? "number" : null }, label));
    });
    table.append(html("tbody"));
  }
  if (onOrder)
    [...table.tHead.rows[0].cells].forEach((cell, i) =>
      setAttributes(cell, { "aria-sort": order.column === i ? (order.down ? "descending" : "ascending") : null }));
  setCount(table.tBodies[0], rows.length, () => html("tr", {}, ...columns.map((column, i) => i === 0
    ? html("th", { scope: "row" }) : html("td", { class: column.number ? "number" : null }))));
  rows.forEach((row, r) => {
    const line = table.tBodies[0].rows[r];
    setAttributes(line, { class: classOf(row) });
    columns.forEach((column, c) => setText(line.cells[c], column.text(row)));
  });
}
