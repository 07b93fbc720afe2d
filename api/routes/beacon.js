// Sends a beacon for each page view: <script defer src=".../beacon.js" data-project="docs"></script>
// data-local: also on localhost and file: pages. readership.view(url): count a view by hand.
// readership('Signup', {props: {plan: 'pro'}}): send an event. data-events: see events.js. Served without comments.
(() => {
  const { readership: queued, plausible } = window;
  if (queued && queued.view) return; // Turbo runs body scripts at each visit
  const script = document.currentScript;
  const { project, local, events } = script ? script.dataset : {};
  const waiting = [];
  let flush = () => {};
  let view = () => {};

  const event = (name, options) => {
    const { props, interactive, callback } = options || {};
    waiting.push({ name, props, interactive });
    flush();
    if (callback) callback({}); // as Plausible does, also where nothing is sent
  };

  // Return a function for calls, in place of a page's stub with a queue. Plausible's script may read the queue later.
  const caller = stub => {
    if (stub && stub.q) stub.q.forEach(call => event(...call));
    return Object.assign((...call) => {
      event(...call);
      if (stub) stub(...call);
    }, stub);
  };
  window.readership = Object.assign(caller(queued), { view: page => view(page) });
  if (!plausible || /\.q\b/.test(plausible)) window.plausible = caller(plausible);

  let firstUrl, firstPage, url, counted, ms, since;
  const warn = text => console.warn('Readership:', text);
  const explain = response =>
    response.ok || response.text().then(text => warn(response.status + ' ' + text));
  const noHash = href => href.split('#')[0];

  // The canonical link or else the address, with the parameters of campaigns and, without value, of advertisements and Meta.
  const canonical = () => {
    const link = document.querySelector('link[rel=canonical]');
    const page = new URL(link && link.href.startsWith(location.origin + '/') ? link.href : url);
    new URL(url).searchParams.forEach((value, name) => {
      if (/^utm_|^(ref|source)$/.test(name)) page.searchParams.set(name, value);
      if (/(gad_source|^igsh|(cl?k?|^igsh|fat_|bra)id)$/.test(name)) page.searchParams.set(name, 1);
    });
    return page.href;
  };

  // After a navigation the canonical link may be stale.
  const current = () => (url === firstUrl ? firstPage : url);

  const send = (kind, fields, page = counted) => {
    try {
      counted = noHash(new URL(page, url).href);
      const eventId = crypto.getRandomValues(new Uint32Array(3)).join('-'); // randomUUID is not on plain http
      const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
      const body = JSON.stringify({ url: counted, eventId, timeZone, ...fields });
      fetch(new URL(`v1/analytics/${encodeURIComponent(project)}/${kind}`, script.src), {
        method: 'POST', body, keepalive: true, credentials: 'omit'
      }).then(explain).catch(warn);
    } catch (error) {
      warn(error); // not to the page
    }
  };

  // Send how long the page of the last view was visible, each time that it is hidden or left: older browsers do not hide
  // a page that is left.
  const watchTime = left => {
    const before = since;
    since = !(left || document.hidden) && Date.now();
    if (!before) return;
    ms += Date.now() - before;
    event('engagement', { props: { ms }, interactive: false });
  };

  const count = (page, referrer) => {
    send('hits', { referrer: referrer || undefined }, page);
    ms = since = 0;
    watchTime();
  };

  const moved = end => {
    const before = url.split(end)[0];
    url = noHash(location.href);
    if (before !== url.split(end)[0]) count(current(), counted);
  };

  const watch = (method, end) => {
    const original = history[method];
    history[method] = (...call) => {
      original.apply(history, call);
      moved(end);
    };
  };

  const start = () => {
    url = firstUrl = noHash(location.href);
    firstPage = canonical();
    count(firstPage, document.referrer);
    view = page => count(page || current(), counted);
    flush = () => waiting.splice(0).forEach(each => send('events', each));
    flush();
    addEventListener('popstate', () => moved());
    addEventListener('visibilitychange', () => watchTime());
    addEventListener('pagehide', watchTime);
    addEventListener('pageshow', event => event.persisted && count(current(), document.referrer));
    watch('pushState');
    watch('replaceState', '?'); // not for a filter or a scroll position
    if (events) import(new URL('events.js', script.src)).then(each => each.watch(events, event)).catch(warn);
  };

  if (!project) warn('add data-project to the script tag');
  else if (navigator.webdriver) return;
  else if (local == null && /^(|localhost|127(\.\d+){3}|\[::1])$/.test(location.hostname))
    warn('add data-local to count local pages');
  else if (document.prerendering) document.addEventListener('prerenderingchange', start, { once: true });
  else start();
})();
