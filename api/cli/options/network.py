"""Options with which an operator allows the verification of agents to use the network."""

from dataclasses import replace

import click

from api import environment
from api.settings import Settings, parsed

reverse_dns_option = click.option(
    "--reverse-dns",
    "is_reverse_dns",
    is_flag=True,
    help="Verify crawlers by reverse DNS, too: needs the network. [default: $READERSHIP_REVERSE_DNS, else off]",
)
key_directories_option = click.option(
    "--key-directories",
    metavar="HOST,...",
    help="Fetch the keys of signing agents from these hosts, or from * for all that are known: needs the network."
    " [default: $READERSHIP_KEY_DIRECTORIES, else none]",
)


def with_options(settings: Settings, is_reverse_dns: bool, key_directories: str | None = None) -> Settings:
    """Return the settings with these options, which precede the variables. Raises InvalidSetting: unknown host."""
    hosts = settings.key_directories
    if key_directories is not None:
        hosts = parsed("--key-directories", key_directories, environment.hosts)
    return replace(settings, reverse_dns=settings.reverse_dns or is_reverse_dns, key_directories=hosts)
