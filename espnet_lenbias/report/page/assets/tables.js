// Tables that sort and filter, and the list of utterances, which does too.
"use strict";

(() => {
  // Empty values are not known, and come last whatever the order is.
  function compare(a, b, sign) {
    if (a === "" || b === "") return (a === "") - (b === "");
    const difference = Number(a) - Number(b);
    if (!Number.isNaN(difference)) return sign * difference;
    return sign * a.localeCompare(b, undefined, { numeric: true });
  }

  function sortChildren(parent, valueOf, sign) {
    const items = [...parent.children].map((item) => [valueOf(item), item]);
    items.sort(([a], [b]) => compare(a, b, sign));
    parent.append(...items.map(([, item]) => item));
  }

  function sortBy(table, head) {
    const ascending = head.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const place = head.cellIndex;
    sortChildren(table.tBodies[0], (row) => row.cells[place].dataset.value, ascending ? 1 : -1);
  }

  function filter(input) {
    const items = [...document.getElementById(input.dataset.filters).children];
    const words = input.value.toLowerCase().split(/\s+/);
    for (const item of items) {
      const text = item.textContent.toLowerCase();
      item.hidden = !words.every((word) => text.includes(word));
    }
    const shown = items.filter((item) => !item.hidden).length;
    const output = input.parentElement.querySelector("output");
    output.textContent = input.value.trim() ? `${shown} of ${items.length}` : "";
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    for (const head of table.tHead.rows[0].cells) {
      head.querySelector("button").addEventListener("click", () => sortBy(table, head));
    }
  }
  for (const input of document.querySelectorAll("input[data-filters]")) {
    input.addEventListener("input", () => filter(input));
  }
  for (const select of document.querySelectorAll("select[data-sorts]")) {
    const list = document.getElementById(select.dataset.sorts);
    select.addEventListener("change", () => {
      const sign = "descending" in select.selectedOptions[0].dataset ? -1 : 1;
      sortChildren(list, (item) => item.dataset[select.value], sign);
    });
  }
})();
