"""Messages between a server process and its worker arrive as they were sent."""

import logging
import sys

import pytest

from agent.worker import messages
from agent.worker.messages import ChildConfig, DeliveryReport, LogReport, TurnReport

NOT_UTF8 = b"caf\xe9".decode(errors="surrogateescape")


def test_configuration_arrives_with_an_environment_that_is_not_utf8() -> None:
    sent = ChildConfig("sqlite:////data/control.sqlite", "/data/jobs", {"NAME": NOT_UTF8}, 2, 15.5, 90, None)
    line = messages.encode(sent)
    assert line.index(b"\n") == len(line) - 1
    assert messages.decode_config(line) == sent


@pytest.mark.parametrize(
    "sent",
    [
        TurnReport(1.5, succeeded=False),
        DeliveryReport("given_up"),
        LogReport("readership.agent", 30, "WARNING", 1_700_000_000.25, f"two\nlines and {NOT_UTF8}"),
    ],
    ids=["turn", "delivery", "log"],
)
def test_report_arrives_as_one_line(sent: messages.Report) -> None:
    line = messages.encode(sent)
    assert line.index(b"\n") == len(line) - 1
    assert messages.decode_report(line) == sent


def logged_error() -> logging.LogRecord:
    try:
        {}["missing"]
    except KeyError:
        where = ("readership.agent", logging.ERROR, __file__, 1)
        return logging.LogRecord(*where, "turn %s of job %s", (7, "j1"), sys.exc_info())


def test_log_record_arrives_with_its_message_and_traceback() -> None:
    sent = logged_error()
    record = LogReport.from_record(sent).record()
    assert (record.name, record.levelname, record.created) == (sent.name, "ERROR", sent.created)
    text = logging.Formatter("%(levelname)s %(message)s").format(record)
    first, *_, last = text.splitlines()
    assert (first, last) == ("ERROR turn 7 of job j1", "KeyError: 'missing'")
    assert record.fields == {"traceback": record.exc_text}


def test_log_record_without_an_exception_has_no_traceback() -> None:
    record = LogReport("readership.agent", 20, "INFO", 0.0, "starts").record()
    assert logging.Formatter("%(message)s").format(record) == "starts"
    assert not hasattr(record, "fields")
