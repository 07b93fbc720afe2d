const HITS = "{{ address }}/v1/analytics/{{ project }}/hits";

// Call it after the response, without waiting for it. A repeated post counts once.
// The visitor's IP address verifies AI agents. It is not stored.
export async function countView({ path, userAgent, address, referrer, status = 200 }) {
  const answer = await fetch(HITS, {
    method: "POST",
    headers: { Authorization: `Bearer ${process.env.READERSHIP_KEY}`, "Content-Type": "application/json" },
    body: JSON.stringify({ path, userAgent, address, referrer, status, eventId: crypto.randomUUID() }),
  });
  if (!answer.ok) throw new Error(`Readership: ${answer.status} ${await answer.text()}`);
}

await countView({ path: "/readership-test", userAgent: "Mozilla/5.0 (compatible; PerplexityBot/1.0)" });
