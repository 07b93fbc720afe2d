import os
import uuid
from collections.abc import Mapping

import httpx

READERSHIP = httpx.Client(
    base_url="{{ address }}/v1/analytics/{{ project }}/",
    headers={"Authorization": f"Bearer {os.environ['READERSHIP_KEY']}"},
    timeout=5,
)
# Without Cloudflare in front of your site, leave out cf-ipcountry: a client may send any country.
SENT = ("accept-language", "cf-ipcountry", "sec-fetch-mode", "signature", "signature-agent", "signature-input")


def count_view(url: str, address: str, headers: Mapping[str, str], status: int = 200, **measured: float | str) -> None:
    """Count a page view. Call it after the response, in the background; a repeated post counts once.

    `url` is the one that the visitor requested, `address` the visitor's IP address, and `headers` are those of the
    request, with lower-case names. They verify AI agents; the address and the headers of SENT are not stored,
    except the country and the first language of a person.
    `measured` has the `bytes`, `durationMs` and `cache` of the response, as far as you know them.
    """
    view = {
        "url": url,
        "userAgent": headers.get("user-agent", ""),
        "referrer": headers.get("referer"),
        "address": address,
        "accept": headers.get("accept"),
        "headers": {name: headers[name] for name in SENT if name in headers},
        "status": status,
        **measured,
        "eventId": str(uuid.uuid4()),
    }
    READERSHIP.post("hits", json=view).raise_for_status()


count_view(
    "https://example.com/readership-test",
    "20.64.57.211",
    {"user-agent": "Mozilla/5.0 (compatible; ClaudeBot/1.0; +claudebot@anthropic.com)", "accept": "*/*"},
)
