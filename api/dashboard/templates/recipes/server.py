import os
import uuid

import httpx

READERSHIP = httpx.Client(
    base_url="{{ address }}/v1/analytics/{{ project }}/",
    headers={"Authorization": f"Bearer {os.environ['READERSHIP_KEY']}"},
    timeout=5,
)


def count_view(
    path: str, user_agent: str, address: str | None = None, referrer: str | None = None, status: int = 200
) -> None:
    """Count a page view. Call it after the response, in the background; a repeated post counts once.

    The visitor's IP address verifies AI agents. It is not stored.
    """
    view = {"path": path, "userAgent": user_agent, "status": status, "eventId": str(uuid.uuid4())}
    if address:
        view["address"] = address
    if referrer:
        view["referrer"] = referrer
    READERSHIP.post("hits", json=view).raise_for_status()


count_view("/readership-test", "Mozilla/5.0 (compatible; ClaudeBot/1.0; +claudebot@anthropic.com)")
