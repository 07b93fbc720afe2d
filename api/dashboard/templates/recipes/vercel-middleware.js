// middleware.js, beside package.json. With Next.js 16 or later the file is proxy.js.
const HITS = "{{ address }}/v1/analytics/{{ project }}/hits";
const NOT_PAGES = /\.({{ extensions }})$/i;
const SENT = ["accept-language", "sec-fetch-mode", "signature", "signature-agent", "signature-input", "x-vercel-ip-country"];

export const config = { matcher: "/((?!api/|_next/|_vercel/).*)" };

export default function middleware(request, context) {
  if (request.method === "GET" && !NOT_PAGES.test(new URL(request.url).pathname)) context.waitUntil(send(request));
}

async function send(request) {
  const view = {
    url: request.url,
    userAgent: request.headers.get("user-agent") || "",
    referrer: request.headers.get("referer") || undefined,
    // These three verify AI agents. Only a person's country and language of them are stored.
    address: request.headers.get("x-real-ip") || undefined,
    accept: request.headers.get("accept") || undefined,
    headers: Object.fromEntries([...request.headers].filter(([name]) => SENT.includes(name))),
    eventId: crypto.randomUUID(),
  };
  const answer = await fetch(HITS, {
    method: "POST",
    headers: { Authorization: `Bearer ${process.env.READERSHIP_KEY}`, "Content-Type": "application/json" },
    body: JSON.stringify(view),
  });
  if (!answer.ok) console.log("Readership:", answer.status, await answer.text());
}
