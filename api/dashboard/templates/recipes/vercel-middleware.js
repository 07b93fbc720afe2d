// middleware.js, beside package.json. With Next.js 16 or later the file is proxy.js.
const HITS = "{{ address }}/v1/analytics/{{ project }}/hits";
const NOT_PAGES = /\.({{ extensions }})$/i;

export const config = { matcher: "/((?!api/|_next/|_vercel/).*)" };

export default function middleware(request, context) {
  if (request.method === "GET" && !NOT_PAGES.test(new URL(request.url).pathname)) context.waitUntil(send(request));
}

async function send(request) {
  const view = {
    url: request.url,
    userAgent: request.headers.get("user-agent") || "",
    referrer: request.headers.get("referer") || undefined,
    address: request.headers.get("x-real-ip") || undefined, // verifies AI agents; not stored
    accept: request.headers.get("accept") || undefined,
    eventId: crypto.randomUUID(),
  };
  const answer = await fetch(HITS, {
    method: "POST",
    headers: { Authorization: `Bearer ${process.env.READERSHIP_KEY}`, "Content-Type": "application/json" },
    body: JSON.stringify(view),
  });
  if (!answer.ok) console.log("Readership:", answer.status, await answer.text());
}
