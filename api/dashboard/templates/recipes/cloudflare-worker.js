// readership.js: a Worker in front of the site. It sends each page view after the response; visitors do not wait.
const HITS = "{{ address }}/v1/analytics/{{ project }}/hits";
const NOT_PAGES = /\.({{ extensions }})$/i;
const SENT = ["accept-language", "cf-ipcountry", "sec-fetch-mode", "signature", "signature-agent", "signature-input"];

export default {
  async fetch(request, env, ctx) {
    ctx.passThroughOnException();
    const started = Date.now();
    const response = await fetch(request);
    const durationMs = Date.now() - started;
    if (isPage(request, response)) ctx.waitUntil(send(request, response, durationMs, env.READERSHIP_KEY));
    return response;
  },
};

function isPage(request, response) {
  const isShown = response.ok || response.status === 304;
  return request.method === "GET" && isShown && !NOT_PAGES.test(new URL(request.url).pathname);
}

async function send(request, response, durationMs, key) {
  const [type] = (response.headers.get("content-type") || "").split(";");
  const view = {
    url: request.url,
    userAgent: request.headers.get("user-agent") || "",
    referrer: request.headers.get("referer") || undefined,
    // These three verify AI agents. Only a person's country and language of them are stored.
    address: request.headers.get("cf-connecting-ip") || undefined,
    accept: request.headers.get("accept") || undefined,
    headers: Object.fromEntries([...request.headers].filter(([name]) => SENT.includes(name))),
    status: response.status,
    bytes: Number(response.headers.get("content-length") ?? NaN) || undefined,
    durationMs,
    cache: response.headers.get("cf-cache-status") || undefined,
    format: type.trim().toLowerCase() || undefined,
    eventId: crypto.randomUUID(),
  };
  const answer = await fetch(HITS, {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: JSON.stringify(view),
  });
  if (!answer.ok) console.log("Readership:", answer.status, await answer.text());
}
