"""A name in reverse DNS is evidence only if the operator documents it and it has the address."""

import socket
from threading import Event

import pytest

from ingest.classification.classifier import classify
from ingest.verification.reverse_dns import (
    FAILED_S,
    FOUND_S,
    WAITING_MAX,
    ReverseDns,
    addresses_of,
    documented_names,
    name_of,
)
from tests.ingest.verification.test_directories import Clock

ADDRESS = "66.249.66.1"
NAME = "crawl-66-249-66-1.googlebot.com"


class Resolver:
    """Resolver with fixed answers, which records the addresses that it is asked for."""

    def __init__(self, name: str = NAME, *addresses: str) -> None:
        self.name = name
        self.addresses = addresses or (ADDRESS,)
        self.asked: list[str] = []

    def name_of(self, address: str) -> str:
        self.asked.append(address)
        if "\0" in self.name:
            raise ValueError("embedded null character")
        if not self.name:
            raise socket.herror(1, "Unknown host")
        return self.name

    def addresses_of(self, name: str) -> list[str]:
        if self.addresses == ("none",):
            raise socket.gaierror(-2, "Name or service not known")
        return list(self.addresses)


def pattern(resolver: Resolver, agent: str = "Googlebot", address: str = ADDRESS) -> str | None:
    return ReverseDns(10, resolver.name_of, resolver.addresses_of).pattern(agent, address)


@pytest.mark.parametrize(
    ("agent", "name", "expected"),
    [
        ("Googlebot", NAME, "googlebot.com"),
        ("Googlebot", "geo-crawl-66-249-66-1.geo.googlebot.com", "googlebot.com"),
        ("Googlebot", NAME.upper() + ".", "googlebot.com"),
        ("Googlebot", "a" * 239 + ".googlebot.com", "googlebot.com"),
        ("Googlebot", "googlebot.com", None),
        ("Googlebot", "evilgooglebot.com", None),
        ("Googlebot", "crawl.googlebot.com.example", None),
        ("Googlebot", "rate-limited-proxy-66-249-66-1.google.com", None),
        ("AdsBot-Google", "rate-limited-proxy-66-249-66-1.google.com", "rate-limited-proxy-*.google.com"),
        ("AdsBot-Google", "www.google.com", None),
        ("Google-NotebookLM", "66-249-66-1.gae.googleusercontent.com", "gae.googleusercontent.com"),
        ("Google-NotebookLM", "1.66.249.66.bc.googleusercontent.com", None),  # a virtual machine of anybody
        ("bingbot", "msnbot-157-55-33-18.search.msn.com", "search.msn.com"),
        ("YandexBot", "213-180-203-138.spider.yandex.com", "yandex.com"),
        ("SeznamBot", "fulltextrobot-77-75-77-1.seznam.cz", "fulltextrobot-*.seznam.cz"),
        ("SeznamBot", "mail.seznam.cz", None),
        ("GPTBot", NAME, None),
    ],
)
def test_name_that_the_operator_documents_is_evidence(agent: str, name: str, expected: str | None) -> None:
    assert pattern(Resolver(name), agent) == expected


@pytest.mark.parametrize(
    "resolver",
    [
        Resolver(NAME, "203.0.113.7"),  # the name of another address: anybody may write any name into reverse DNS
        Resolver(NAME, "none"),
        Resolver(""),
        Resolver("crawl\0.googlebot.com"),
        Resolver("a" * 240 + ".googlebot.com"),  # longer by one than a name in DNS may be
    ],
)
def test_name_that_is_not_confirmed_is_no_evidence(resolver: Resolver) -> None:
    assert pattern(resolver) is None


def test_one_of_several_addresses_confirms_a_name() -> None:
    assert pattern(Resolver(NAME, "2001:4860:4801::1", ADDRESS)) == "googlebot.com"
    assert pattern(Resolver(NAME, "2001:4860:4801:0::1"), address="2001:4860:4801::1") == "googlebot.com"


@pytest.mark.parametrize("address", ["10.0.0.1", "unknown", "", "fe80::1%eth0"])
def test_address_that_is_not_global_is_not_looked_up(address: str) -> None:
    resolver = Resolver()
    assert pattern(resolver, address=address) is None
    assert resolver.asked == []


@pytest.mark.parametrize(("name", "time_to_live_s"), [(NAME, FOUND_S), ("", FAILED_S)])
def test_answer_is_cached(name: str, time_to_live_s: int) -> None:
    resolver, clock = Resolver(name), Clock()
    dns = ReverseDns(10, resolver.name_of, resolver.addresses_of, clock)
    assert dns.pattern("Googlebot", ADDRESS) == dns.pattern("Googlebot", ADDRESS)
    assert resolver.asked == [ADDRESS]
    clock.now += time_to_live_s
    dns.pattern("Googlebot", ADDRESS)
    assert resolver.asked == [ADDRESS, ADDRESS]


def test_lookups_that_never_end_do_not_block_and_are_bounded() -> None:
    asked, release, count = Event(), Event(), 0

    def name_of(address: str) -> str:
        nonlocal count
        count += 1
        asked.set()
        assert release.wait(30)
        raise OSError

    dns = ReverseDns(0, name_of)
    for _ in range(2):
        for number in range(2 * WAITING_MAX):
            assert dns.pattern("Googlebot", f"66.249.{number // 256}.{number % 256}") is None
    assert asked.wait(30)
    dns.close()  # cancels the lookups that wait for a thread
    release.set()
    assert count <= 8


def test_addresses_beyond_the_maximum_of_waiting_lookups_are_not_looked_up() -> None:
    asked, release, all_asked, last_asked = list[str](), Event(), Event(), Event()

    def name_of(address: str) -> str:
        assert release.wait(30)
        asked.append(address)
        if len(asked) == WAITING_MAX:
            all_asked.set()
        if address == ADDRESS:
            last_asked.set()
        raise OSError

    dns = ReverseDns(0, name_of)
    addresses = [f"66.250.{number // 256}.{number % 256}" for number in range(2 * WAITING_MAX)]
    for address in addresses:
        assert dns.pattern("Googlebot", address) is None
    release.set()
    assert all_asked.wait(30)
    dns.pattern("Googlebot", ADDRESS)  # the last of the queue
    assert last_asked.wait(30)
    dns.close()
    assert sorted(asked) == sorted([*addresses[:WAITING_MAX], ADDRESS])


def test_agents_are_names_of_the_column_agent() -> None:
    agents = {agent for row in documented_names() for agent in row.agents}
    user_agents = {agent: f"Mozilla/5.0 (compatible; {agent}/1.0)" for agent in agents}
    user_agents["YandexBot"] = "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)"  # known by its page
    assert {agent: classify(text).agent for agent, text in user_agents.items()} == {agent: agent for agent in agents}


def test_system_resolver_finds_the_name_and_the_addresses_of_this_machine() -> None:

    assert name_of("127.0.0.1")
    assert "127.0.0.1" in addresses_of("127.0.0.1")


def test_addresses_that_are_looked_up_at_once_are_answered_from_the_cache() -> None:
    resolver = Resolver(NAME, ADDRESS, "66.249.66.2")
    dns = ReverseDns(0, resolver.name_of, resolver.addresses_of)
    dns.look_up_all([ADDRESS, "66.249.66.2", "66.249.66.3", "10.0.0.1", "unknown"], 30)
    assert sorted(resolver.asked) == [ADDRESS, "66.249.66.2", "66.249.66.3"]
    dns.look_up_all([ADDRESS], 30)
    assert len(resolver.asked) == 3
    last = ("66.249.66.2", "66.249.66.3")
    assert [dns.pattern("Googlebot", address) for address in last] == ["googlebot.com", None]


def test_lookups_of_many_addresses_at_once_end_at_the_deadline() -> None:
    release = Event()

    def name_of(address: str) -> str:
        assert release.wait(30)
        raise OSError

    dns = ReverseDns(0, name_of)
    dns.look_up_all([f"66.249.{number // 256}.{number % 256}" for number in range(2 * WAITING_MAX)], 0)
    assert dns.pattern("Googlebot", "66.249.0.1") is None
    dns.close()
    release.set()
