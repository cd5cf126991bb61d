// On the page of all rules: a field that leaves only the rows of the tables that say every word.
document.addEventListener("DOMContentLoaded", () => {
  if (!/\/rules\/(index\.html)?$/.test(location.pathname)) return;
  const tables = document.querySelectorAll("article table");
  if (!tables.length) return;
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = "What do you see? For example: hangs";
  field.setAttribute("aria-label", "Filter the rules by what you see");
  field.style.cssText = "width:100%;padding:.5em;font:inherit;color:inherit;background:transparent;border:1px solid;box-sizing:border-box";
  const first = tables[0];
  (first.closest(".md-typeset__scrollwrap") || first).before(field);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of document.querySelectorAll("article tbody tr")) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
});
