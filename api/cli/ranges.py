"""The command `ranges`: the address lists with which agents are verified."""

import difflib
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import click
import msgspec
import pyarrow as pa

from api import data_folder
from api.cli import output
from api.settings import Settings
from ingest.errors import ListUnavailable
from ingest.verification import address_lists, refresh
from ingest.verification.address_lists import FRESH_DAYS, AddressList
from ingest.verification.addresses import contains, number_of
from warehouse import disk
from warehouse.plural import counted

rows_format = output.rows_option("csv")
names_argument = click.argument("names", metavar="[AGENT|LIST]...", nargs=-1)


class ListRow(msgspec.Struct, frozen=True):
    """Row of `ranges show`. `age_days` is the number of days since `seen`. `fresh` is whether absence from the list is
    evidence for a request of today."""

    list: str
    operator: str
    tokens: tuple[str, ...]
    created: date | None
    seen: date
    age_days: int
    fresh: bool
    prefixes: int
    complete: bool
    copies: int
    origin: str
    source: str
    sha256: str


class ChangeRow(msgspec.Struct, frozen=True):
    """Row of `ranges diff` and `ranges refresh`. `error` is the reason why a list was not downloaded."""

    list: str
    operator: str
    seen: date
    created: date | None
    prefixes: int
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    error: str | None = None


@click.group()
def ranges() -> None:
    """Show, compare and download the address lists with which agents are verified."""


@ranges.command("show")
@names_argument
@click.option("--address", help="Show only the lists that have this IP address.")
@rows_format
@click.pass_obj
def show(settings: Settings, names: tuple[str, ...], address: str | None, form: str | None) -> None:
    """Show all address lists, or those of agents such as GPTBot.

    Exits with status 1 if no list has the address.
    """
    of_owner = address_lists.read_folder(settings.ranges)
    lists = _chosen(of_owner, names)
    if address is not None:
        number = number_of(address)
        if number is None:
            raise click.UsageError(f"{address} is not an IPv4 or IPv6 address of the internet")
        lists = [each for each in lists if contains(each.prefixes, number)]
    today = datetime.now(UTC)
    rows = [_list_row(each, today, of_owner.get(each.id)) for each in lists]
    _show(rows, _lists_table(rows), form)
    if address is not None and not rows:
        output.ERR.print(f"no list has the address {address}", markup=False)
        raise click.exceptions.Exit(1)


@ranges.command("diff")
@names_argument
@rows_format
@click.pass_obj
def diff(settings: Settings, names: tuple[str, ...], form: str | None) -> None:
    """Download the lists and show what `ranges refresh` would change. Writes nothing."""
    _download(_chosen(address_lists.read_folder(settings.ranges), names), settings, form, is_stored=False)


@ranges.command("refresh")
@names_argument
@rows_format
@click.pass_obj
def refresh_(settings: Settings, names: tuple[str, ...], form: str | None) -> None:
    """Download the operators' present lists into the data folder.

    A service that runs uses them after its next start. Exits with status 1 if a list could not be downloaded; its
    present copy stays in use. Lists that operators publish only as a page for people are left out.
    """
    data_folder.require(settings)
    _download(_chosen(address_lists.read_folder(settings.ranges), names), settings, form, is_stored=True)


def _download(lists: Sequence[AddressList], settings: Settings, form: str | None, *, is_stored: bool) -> None:
    """Download lists, store them if asked, and show the changes. Exit with status 1 if a download failed."""
    now = datetime.now(UTC)
    rows = []
    with refresh.new_client() as client:
        for each in lists:
            try:
                change = refresh.refreshed(each, client, now)
            except ListUnavailable as error:
                rows.append(ChangeRow(**_fields(each), error=str(error)))
                continue
            if is_stored:
                disk.make_folder(settings.ranges)
                disk.write(settings.ranges / f"{each.id}.json", address_lists.encode(change.new))
            rows.append(ChangeRow(**_fields(change.new), added=tuple(change.added), removed=tuple(change.removed)))
    _show(rows, _changes_table(rows), form)
    failed = {row.list for row in rows if row.error} & {each.id for each in lists if each.is_json}
    for row in rows:
        if row.error:
            output.ERR.print(f"{row.list}: {row.error}; the copy of {row.seen} stays in use", markup=False)
    if failed:
        output.ERR.print(f"{counted(len(failed), 'list')} not downloaded; check the network and try again")
        raise click.exceptions.Exit(1)


def _chosen(of_owner: Mapping[str, AddressList], names: Sequence[str]) -> list[AddressList]:
    """Return the newest copies of the lists whose ids or agents are in `names`, in any case; of all lists if `names` is
    empty.

    Raises: click.UsageError for a name without a list.
    """
    lists = address_lists.newest(address_lists.shipped(), of_owner)
    by_name: dict[str, list[AddressList]] = {}
    for each in lists.values():
        for name in (each.id, *each.tokens):
            by_name.setdefault(name.lower(), []).append(each)
    for name in names:
        if name.lower() not in by_name:
            nearest = difflib.get_close_matches(name.lower(), by_name, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else "readership ranges show prints all lists"
            raise click.UsageError(f"there is no address list of {name}: {hint}")
    chosen = {each.id for name in names for each in by_name[name.lower()]}
    return [each for each in lists.values() if not names or each.id in chosen]


def _list_row(each: AddressList, now: datetime, of_owner: AddressList | None) -> ListRow:
    return ListRow(
        **_fields(each),
        tokens=each.tokens,
        age_days=(now.date() - each.seen).days,
        fresh=each.is_fresh(now),
        complete=each.complete,
        copies=each.copies,
        origin="data folder" if of_owner and of_owner.seen == each.seen else "release",
        source=each.source,
        sha256=each.sha256,
    )


def _fields(each: AddressList) -> dict[str, Any]:
    created = each.created.date() if each.created else None
    known = {"list": each.id, "operator": each.operator, "seen": each.seen}
    return {**known, "created": created, "prefixes": len(each.prefixes)}


def _show(rows: Sequence[ListRow] | Sequence[ChangeRow], table: object, form: str | None) -> None:
    if output.chosen_form(form) != "csv":
        output.show_rows(rows, table, form)
    elif rows:
        items = (msgspec.structs.asdict(row).items() for row in rows)
        cells = [{name: " ".join(cell) if isinstance(cell, tuple) else cell for name, cell in row} for row in items]
        output.write(pa.Table.from_pylist(cells).to_reader(), "csv")


def _lists_table(rows: Sequence[ListRow]) -> object:
    columns = ("list", "operator", "agents", "created", "seen", "age", "prefixes", "source")
    cells = (
        (
            *(row.list, row.operator, ", ".join(row.tokens), row.created or "", f"{row.seen} ({row.origin})"),
            counted(row.age_days, "day") + ("" if row.fresh else f", over {FRESH_DAYS}"),
            *(row.prefixes, row.source),
        )
        for row in rows
    )
    return output.table(columns, cells)


def _changes_table(rows: Sequence[ChangeRow]) -> object:
    columns = ("list", "operator", "created", "prefixes", "added", "removed", "result")
    cells = (
        (
            *(row.list, row.operator, row.created or "", row.prefixes, len(row.added), len(row.removed)),
            "not downloaded" if row.error else "changed" if row.added or row.removed else "unchanged",
        )
        for row in rows
    )
    return output.table(columns, cells)
