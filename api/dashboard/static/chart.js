// Highlights an interval of a time chart, and shows its numbers: the cells of the chart's table. The pointer and the arrow
// keys move the highlight. A chart without this script is complete, with its numbers in the table.
(() => {
  "use strict";

  const create = (parent, tag, name) => {
    const element = parent.appendChild(document.createElement(tag));
    element.className = name;
    return element;
  };

  function setUp(figure) {
    const plot = figure.querySelector("[data-slots]");
    const names = [...figure.querySelectorAll("thead th")].map(cell => cell.textContent.trim());
    const rows = [...figure.querySelectorAll("tbody tr")];
    if (!plot || !rows.length || plot.hasAttribute("tabindex")) return;
    const slots = Number(plot.dataset.slots);
    const cursor = create(plot, "div", "chart-cursor");
    const tooltip = create(plot, "div", "chart-tooltip");
    const spoken = create(plot, "p", "visually-hidden");
    let current = -1;

    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-label", "Chart. Press the left and right arrow keys to read each interval.");
    spoken.setAttribute("aria-live", "polite");
    tooltip.setAttribute("aria-hidden", "true");
    cursor.hidden = tooltip.hidden = true;

    function show(index) {
      current = Math.max(0, Math.min(rows.length - 1, index));
      const cells = [...rows[current].cells].map(cell => cell.textContent.trim());
      tooltip.replaceChildren();
      create(tooltip, "strong", "").textContent = cells[0];
      cells.slice(1).forEach((cell, order) => {
        const line = create(tooltip, "span", "");
        create(line, "i", "").textContent = names[order + 1];
        create(line, "b", "").textContent = cell;
      });
      cursor.hidden = tooltip.hidden = false;
      cursor.style.left = `${100 * current / slots}%`;
      cursor.style.width = `${100 / slots}%`;
      const middle = plot.clientWidth * (current + 0.5) / slots;
      const left = middle < plot.clientWidth / 2 ? middle + 14 : middle - 14 - tooltip.offsetWidth;
      tooltip.style.left = `${Math.max(-40, Math.min(plot.clientWidth - tooltip.offsetWidth + 12, left))}px`;
      return cells;
    }

    function hide() {
      cursor.hidden = tooltip.hidden = true;
      current = -1;
    }

    const follow = event => {
      const box = plot.getBoundingClientRect();
      const index = Math.floor((event.clientX - box.left) / box.width * slots);
      if (index !== current) show(index);
    };
    plot.addEventListener("pointermove", follow);
    plot.addEventListener("pointerdown", follow);
    plot.addEventListener("pointerleave", event => { if (event.pointerType !== "touch") hide(); }); // a finger leaves when it is lifted
    plot.addEventListener("pointercancel", hide); // the finger scrolls the page
    document.addEventListener("pointerdown", event => { if (!plot.contains(event.target)) hide(); });
    plot.addEventListener("mouseleave", hide); // Chromium 156 sends no pointerleave in the first page of a process
    plot.addEventListener("blur", hide);
    plot.addEventListener("keydown", event => {
      const next = { ArrowLeft: current < 0 ? rows.length - 1 : current - 1, ArrowRight: current + 1, Home: 0, End: rows.length - 1 }[event.key];
      if (event.key === "Escape") hide();
      if (next === undefined) return;
      event.preventDefault();
      const cells = show(next);
      spoken.textContent = [cells[0], ...cells.slice(1).map((cell, order) => `${names[order + 1]} ${cell}`)].join(", ");
    });
  }

  // A menu closes with a click outside of it, and with Escape.
  const closeMenus = except => document.querySelectorAll("details.menu[open]").forEach(menu => { if (menu !== except) menu.open = false; });
  document.addEventListener("click", event => closeMenus(event.target.closest("details.menu")));
  document.addEventListener("keydown", event => { if (event.key === "Escape") closeMenus(null); });

  const setUpAll = root => root.querySelectorAll(".chart").forEach(setUp);
  document.addEventListener("htmx:after:swap", () => setUpAll(document));
  setUpAll(document);
})();
