// Small improvements of pages that work without this script: the viewer's time zone, the tab of the page in view, copy buttons, and files as text.
"use strict";
(() => {
  const root = document.documentElement;
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const storedZone = () => (document.cookie.match(/(?:^|; )readership_zone=([^;]*)/) || [])[1];
  if (zone && zone !== storedZone()) {
    const secure = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `readership_zone=${zone}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
    if (zone === storedZone() && zone !== root.dataset.zone && document.querySelector("[data-zoned]")) location.reload();
  }

  const prepare = (part) => {
    for (const button of part.querySelectorAll("[data-copy][hidden]")) button.hidden = !navigator.clipboard;
    for (const field of part.querySelectorAll("[data-fill][hidden]")) field.hidden = false;
  };
  prepare(document);
  const tab = document.querySelector(".tabs [aria-current]");
  if (tab) tab.parentElement.scrollLeft = tab.offsetLeft - (tab.parentElement.clientWidth - tab.offsetWidth) / 2;
  document.addEventListener("htmx:after:swap", () => prepare(document));

  // htmx leaves the page as it is if the service refuses a part of it, or cannot be reached: then the link opens a page, which has the message.
  for (const name of ["htmx:response:error", "htmx:error"]) {
    document.addEventListener(name, (event) => {
      const link = event.target.closest("a[href]");
      if (link) location.assign(link.href);
    });
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
    const label = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 2000);
  });
  // D, W, M, Y and the arrow keys open another period, as in Plausible.
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, .scroll")) return;
    const link = document.querySelector(`[aria-keyshortcuts="${CSS.escape(event.key.length > 1 ? event.key : event.key.toUpperCase())}"]`);
    if (link) link.click();
  });
  document.addEventListener("change", async (event) => {
    const filled = event.target.type === "file" && event.target.closest("[data-fill]");
    if (filled && event.target.files.length) document.getElementById(filled.dataset.fill).value = await event.target.files[0].text();
    if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
  });
})();
