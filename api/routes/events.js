// Events that beacon.js sends without a call: data-events="outbound downloads 404", with 404 only on error pages.
const FILES =
  /\.(7z|avi|csv|dmg|docx?|exe|gz|key|midi|mov|mp[34]|mpeg|pdf|pkg|pps|pptx?|rar|rtf|txt|wav|wma|wmv|xlsx?|zip)$/i;

export const watch = (chosen, send) => {
  const names = chosen.split(/[\s,]+/);
  const nameOf = link => {
    if (names.includes('downloads') && FILES.test(link.pathname)) return 'File Download';
    if (names.includes('outbound') && link.host !== location.host) return 'Outbound Link: Click';
  };
  const clicked = click => {
    const link = click.composedPath().find(each => each.href && each.hostname); // not mailto:
    const name = link && click.button < 2 && nameOf(link);
    if (!name) return;
    const site = link.host === location.host ? '' : link.origin; // a file of the site has a path, as in access logs
    send(name, { props: { url: (site + link.pathname).slice(0, 2000) } });
  };
  addEventListener('click', clicked, true);
  addEventListener('auxclick', clicked, true);
  if (names.includes('404')) send('404', { props: { path: location.pathname.slice(0, 2000) }, interactive: false });
};
