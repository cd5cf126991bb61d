// On the page of all rules: a search field that hides the table rows without the words typed.
document.addEventListener("DOMContentLoaded", () => {
  if (!/\/rules\/(index\.html)?$/.test(location.pathname)) return;
  const table = document.querySelector("article table");
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = "What do you see? For example: hangs";
  field.setAttribute("aria-label", "Search the rules by symptom");
  field.style.cssText =
    "width:100%;padding:.5em;font:inherit;color:inherit;background:transparent;border:1px solid;box-sizing:border-box";
  table.before(field);
  const words = (text) => text.toLowerCase().match(/\w+/g) || [];
  field.addEventListener("input", () => {
    const wanted = words(field.value);
    for (const row of document.querySelectorAll("article tbody tr")) {
      const found = words(row.textContent);
      row.hidden = !wanted.every((word) => found.some((each) => each.startsWith(word)));
    }
  });
});
