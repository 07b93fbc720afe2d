// Sends a beacon for each page view: <script defer src=".../beacon.js" data-project="docs"></script>
// data-local: also on localhost and file: pages. readership.view(url): count a view by hand.
(() => {
  if (window.readership && readership.view) return; // Turbo runs body scripts at each visit
  const script = document.currentScript;
  const { project, local } = script ? script.dataset : {};
  let view = () => {};
  window.readership = { view: url => view(url) };

  let firstUrl, firstPage, url, counted;
  const warn = reason => console.warn('Readership:', reason);
  const explain = async response => response.ok || warn(response.status + ' ' + (await response.text()));
  const withoutHash = href => href.split('#')[0];

  // The canonical link, with missing utm_ parameters.
  const canonical = () => {
    const link = document.querySelector('link[rel=canonical]');
    if (!link || !link.href.startsWith(location.origin + '/')) return url;
    const page = new URL(link.href);
    new URLSearchParams(location.search).forEach((value, name) => {
      if (name.startsWith('utm_')) page.searchParams.set(name, value);
    });
    return page.href;
  };

  // After a navigation the canonical link may be stale.
  const current = () => (url === firstUrl ? firstPage : url);

  const count = (page, referrer) => {
    try {
      counted = withoutHash(new URL(page, url).href);
      const eventId = crypto.randomUUID // not on plain http
        ? crypto.randomUUID()
        : crypto.getRandomValues(new Uint32Array(4)).join('-');
      const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
      const body = JSON.stringify({ url: counted, referrer: referrer || undefined, eventId, timeZone });
      const hits = new URL(`v1/analytics/${encodeURIComponent(project)}/hits`, script.src).href;
      if ('keepalive' in Request.prototype)
        fetch(hits, { method: 'POST', body, keepalive: true, credentials: 'omit' }).then(explain).catch(warn);
      else navigator.sendBeacon(hits, body); // gives no response
    } catch (error) {
      warn(error); // not to the page
    }
  };

  const moved = (end = '#') => {
    const before = url;
    url = withoutHash(location.href);
    if (before.split(end)[0] !== url.split(end)[0]) count(current(), counted);
  };

  const watch = (method, end) => {
    const original = history[method];
    history[method] = function () {
      original.apply(this, arguments);
      moved(end);
    };
  };

  const start = () => {
    url = firstUrl = withoutHash(location.href);
    firstPage = canonical();
    count(firstPage, document.referrer);
    view = page => count(page || current(), counted);
    addEventListener('popstate', () => moved());
    addEventListener('pageshow', event => event.persisted && count(current(), document.referrer));
    watch('pushState');
    watch('replaceState', '?'); // not for a filter or a scroll position
  };

  if (!project) warn('add data-project="<project id>" to the script tag');
  else if (navigator.webdriver) return;
  else if (local == null && /^(|localhost|127(\.\d+){3}|\[::1])$/.test(location.hostname))
    warn('add data-local to the script tag to count local pages');
  else if (document.prerendering) document.addEventListener('prerenderingchange', start, { once: true });
  else start();
})();
