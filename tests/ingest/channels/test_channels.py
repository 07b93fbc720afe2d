"""Referrers and campaigns have the channel that an owner would name."""

import csv
from pathlib import Path

import pytest

from ingest.channels.channels import CHANNELS, CLICKS, NAMES, channel, of_referrer

OF_HOSTS = {
    # Referrers of the Apache sample log of sample_data's source, and of the tests of other tools' parsers.
    "Search": """
        www.google.com www.google.fr www.google.es www.google.co.uk www.google.de www.google.co.in www.google.com.br
        www.google.se www.google.it www.google.nl www.google.ru www.google.dk www.google.ca www.google.cz
        www.google.com.hk www.google.at www.google.fi www.google.com.mx www.google.com.au www.google.pl www.google.ba
        www.google.com.ar www.google.no www.google.hr www.google.com.ua www.google.co.th www.google.co.il www.google.by
        www.google.lv www.google.com.vn www.google.com.sg www.google.co.jp www.google.sk www.google.si www.google.ro
        www.google.pt www.google.ie encrypted.google.com images.google.fr www.bing.com duckduckgo.com r.duckduckgo.com
        www.baidu.com yandex.ru images.yandex.ru search.daum.net es.search.yahoo.com it.images.search.yahoo.com
        s3-us3.ixquick.com aolsearch.aol.co.uk www.aolsearch.com uk.search-results.com go.mail.ru search.tb.ask.com
        search.ke.voila.fr www.dalesearch.com isearch.avg.com kagi.com www.ecosia.org search.brave.com
        com.google.android.googlequicksearchbox""",
    "Social": """
        t.co www.facebook.com m.facebook.com l.facebook.com lm.facebook.com www.odnoklassniki.ru www.tumblr.com
        psychicbazaar.tumblr.com stackoverflow.com unix.stackexchange.com superuser.com askubuntu.com bsky.app
        go.bsky.app mastodon.social fosstodon.org x.com l.threads.com news.ycombinator.com old.reddit.com
        out.reddit.com com.reddit.frontpage www.linkedin.com lnkd.in github.com gist.github.com steamcommunity.com
        vk.com away.vk.com www.producthunt.com l.instagram.com com.instagram.android com.linkedin.android""",
    "Email": """
        rich-v01.bluewin.ch deref-gmx.net deref-web.de 36ohk6dgmcd1n-c.c.yom.mail.yahoo.net
        co106w.col106.mail.live.com webmail1m.orange.fr mail.google.com com.google.android.gm outlook.live.com
        lightmailer-bs.gmx.net email.ionos.co.uk mail.daum.net mail.onet.pl deref-1und1-02.de
        mail.rambler.ru mail.centrum.cz m.mail.rambler.ru mail.yandex.by email.seznam.cz fr.mail.yahoo.com""",
    "AI assistants": """
        chatgpt.com www.chatgpt.com chat.openai.com claude.ai phind.com copilot.microsoft.com copilot.com
        gemini.google.com pplx.ai www.perplexity.ai perplexity.ai grok.com chat.deepseek.com com.openai.chatgpt
        chat.mistral.ai meta.ai""",
    "Video": "youtube.com www.youtube.com m.youtube.com youtu.be vimeo.com player.vimeo.com www.twitch.tv",
    "Paid": "tdsf.doubleclick.net pagead2.googlesyndication.com syndicatedsearch.goog www.adsensecustomsearchads.com",
    "Referral": """
        s-chassis.co.nz logstash.net tuxradar.com kufli.blogspot.com en.wikipedia.org en.m.wikipedia.org
        www.linux.org.ru ubuntuforums.org keepass.info translate.googleusercontent.com docs.google.com
        www.markosaric.com officeapps.live.com linktr.ee notofficeapps.live.com google.com.evil.example
        news.yahoo.co.jp page.auctions.yahoo.co.jp notfacebook.com fakechatgpt.com chatgpt.com.example xt.co""",
}
OF_CAMPAIGNS = [
    # host, utm_source, utm_medium, click
    ("Direct", None, None, None, None),
    ("Paid", "google.com", None, None, "gclid"),
    ("Paid", None, "google", "paid", None),
    ("Paid", None, "google", "cpc", None),
    ("Paid", "www.tiktok.com", None, "paid", None),
    ("Paid", None, "facebook", "paid_social", None),
    ("Paid", None, None, "banner", None),
    ("Paid", None, "fb-ads", None, None),
    ("Paid", None, "Google-ads", None, None),
    ("Paid", None, "Adwords", None, None),
    ("Paid", "www.google.com", None, "display", "123identifier"),
    ("Paid", "chatgpt.com", "chatgpt.com", "cpc", None),
    ("Search", "duckduckgo.com", None, None, "unknown"),
    ("Search", None, "duckduckgo", None, None),
    ("Search", None, "GOOGLE", None, None),
    ("Search", None, None, "organic", None),
    ("Social", None, "twitter", None, None),
    ("Social", None, "ig", None, None),
    ("Social", None, None, "social", None),
    ("Social", "l.facebook.com", None, None, "fbclid"),
    ("Social", None, None, None, "igshid"),
    ("Social", None, None, None, "igsh"),
    ("Social", None, "spring", None, "fbclid"),
    ("Referral", "blog.example", None, None, "fbclid"),
    ("Search", "www.google.com", None, None, "fbclid"),
    ("Email", None, "spring", "email", "fbclid"),
    ("Paid", "l.facebook.com", "facebook", "paid", "fbclid"),
    *(
        ("Paid", None, None, medium, None)
        for medium in (
            "cpc_brand",
            "brand-cpc",
            "CPM",
            "ppc2",
            "paidads",
            "social-paid",
            "non brand paid",
            "non_brand_paid",
            "canon-paid",
            "email,cpv2",
            "retargeting",
        )
    ),
    *(("Referral", None, None, medium, None) for medium in ("unpaid", "prepaid", "mcp", "appcp")),
    *(
        ("Referral", None, None, medium, None)
        for medium in ("non-paid", "not_paid", "brand_non-paid", "newsletter-cp2024", "email_cp", "cpanel", "cpcom")
    ),
    ("Referral", "open.substack.com", "substack", "web", None),
    ("Email", None, "substack", "email", None),
    ("Video", None, "yt", None, None),
    ("Video", None, None, "video", None),
    ("Email", None, "email", None, None),
    ("Email", None, None, "email", None),
    ("Email", "www.google.com", "newsletter", "email", None),
    ("Affiliates", None, None, "affiliate", None),
    ("Affiliates", "partner.example", "partner.example", "Affiliate", None),
    ("AI assistants", None, "chatgpt.com", None, None),
    ("AI assistants", "www.google.com", "perplexity", None, None),
    ("AI assistants", None, "openai", "referral", None),
    ("AI assistants", None, None, "ai-assistant", None),
    ("Referral", None, "linktree", None, None),
    ("Referral", None, None, "referral", None),
    ("Referral", "othersite.example", None, None, None),
]


@pytest.mark.parametrize("name", OF_HOSTS)
def test_referrer_has_the_channel_of_its_host(name: str) -> None:
    wrong = {host: got for host in OF_HOSTS[name].split() if (got := channel(host, None, None, None)) != name}
    assert not wrong


def test_parameters_have_priority_over_the_referrer() -> None:
    wrong = {case: got for name, *case_ in OF_CAMPAIGNS if (got := channel(*(case := tuple(case_)))) != name}
    assert not wrong
    assert len(OF_CAMPAIGNS) + sum(len(hosts.split()) for hosts in OF_HOSTS.values()) >= 120


def test_published_cases_have_the_channel_of_their_source() -> None:
    """The rules matched 123 of the 235 rows when they were first compared.

    Then rules were added for the others: that 234 match now is no measure of accuracy. The row that differs has the
    `utm_source` that Substack adds to links in its letters, where the medium is `email`, and on its pages alike.
    `published.csv` has Google's list of sources without shops and hosts of blogs, the campaigns of Adobe's test whose
    kind is not that every campaign is paid, and PostHog's test with clicks that were recorded.
    """
    with (Path(__file__).parent / "published.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    fields = ("host", "utm_source", "utm_medium", "click")
    assert {
        (row["channel"], *(row[name] for name in fields)): got
        for row in rows
        if (got := channel(*(row[name] or None for name in fields))) != row["channel"]
    } == {("Email", "", "substack", "", ""): "Referral"}
    assert len({(*map(row.get, fields),) for row in rows}) == len(rows) >= 120
    assert all(row["source"].startswith("https://") for row in rows)


def test_table_has_each_value_once() -> None:
    assert NAMES == (
        "Paid", "Email", "Affiliates", "AI assistants", "Search", "Social", "Video", "Referral", "Direct",
    )  # fmt: skip
    for field in ("sites", "campaigns", "media"):
        values = [value for each in CHANNELS for value in getattr(each, field)]
        assert sorted({value for value in values if values.count(value) > 1}) == []
        assert [value for value in values if value != value.lower()] == []
    assert len({*CLICKS}) == len(CLICKS)


def test_referrer_within_the_site_has_no_channel() -> None:
    hosts = ["www.shop.example", "shop.example", "blog.shop.example", "google.com", None]
    for own in ("shop.example", "www.shop.example"):
        assert [of_referrer(host, frozenset({own})) for host in hosts] == [None, None, "Referral", "Search", "Direct"]
