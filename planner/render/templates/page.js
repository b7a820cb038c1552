"use strict";
// A slider over the rows of the table that follows it: it shows one row at a time and the table is folded.
for (const box of document.querySelectorAll(".pick")) {
  const all = box.nextElementSibling;
  const rows = all.querySelectorAll("tbody tr");
  const slider = box.querySelector("input");
  const shown = box.querySelectorAll("output > span > span");
  const show = () => {
    const picked = rows[Number(slider.value)];
    shown.forEach((place, at) => {
      place.textContent = picked.cells[at].textContent;
      place.parentElement.hidden = place.textContent === "";
    });
    rows.forEach((row) => row.classList.toggle("now", row === picked));
    slider.setAttribute("aria-valuetext", picked.cells[0].textContent);
  };
  slider.addEventListener("input", show);
  box.hidden = false;
  all.open = false;
  show();
}
