const HITS = "{{ address }}/v1/analytics/{{ project }}/hits";
// Without Cloudflare in front of your site, leave out cf-ipcountry: a client may send any country.
const SENT = ["accept-language", "cf-ipcountry", "sec-fetch-mode", "signature", "signature-agent", "signature-input"];

// Call it after the response, without waiting for it. A repeated post counts once.
// url: the one that the visitor requested. address: the visitor's IP address. headers: those of the request, with lower-case names.
// They verify AI agents; the address and the headers of SENT are not stored,
// except the country and the first language of a person.
// measured: the bytes, durationMs and cache of the response that you know.
export async function countView(url, address, headers, status = 200, measured = {}) {
  const view = {
    url,
    userAgent: headers["user-agent"] || "",
    referrer: headers.referer,
    address,
    accept: headers.accept,
    headers: Object.fromEntries(SENT.filter((name) => headers[name]).map((name) => [name, headers[name]])),
    status,
    ...measured,
    eventId: crypto.randomUUID(),
  };
  const answer = await fetch(HITS, {
    method: "POST",
    headers: { Authorization: `Bearer ${process.env.READERSHIP_KEY}`, "Content-Type": "application/json" },
    body: JSON.stringify(view),
  });
  if (!answer.ok) throw new Error(`Readership: ${answer.status} ${await answer.text()}`);
}

await countView("https://example.com/readership-test", "3.211.124.183", {
  "user-agent": "Mozilla/5.0 (compatible; PerplexityBot/1.0; +https://perplexity.ai/perplexitybot)",
  accept: "*/*",
});
