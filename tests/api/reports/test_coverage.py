"""The coverage of a project's sources."""

import io

import httpx
import pyarrow.parquet as pq


def test_source_has_its_first_and_last_hit_and_the_days_between_without_one(hits: httpx.Client) -> None:
    report = hits.get("coverage").json()
    assert report["sources"] == [
        {
            "source": "server",
            "firstHit": "2025-03-29T22:30:00Z",
            "lastHit": "2025-04-01T05:00:00Z",
            "missingDays": ["2025-03-31"],
            "silentSince": "2025-04-02",
        }
    ]
    span = {"from": "2025-03-29T22:30:00Z", "to": "2025-04-02T00:00:00Z"}
    assert report["measured"] == {"human": [span], "ai": [span], "bot": [span]}
    assert report["policy"] == "all"
    (warning,) = report["warnings"]
    assert "server has had no hit" in warning
    assert "2025-04-01" in warning


def test_project_without_hits_has_no_source(site: httpx.Client) -> None:
    nothing = {"sources": [], "policy": "all", "warnings": [], "overlapDays": 0, "unbeaconed": 0}
    assert site.get("coverage").json() == nothing | {"measured": {"human": [], "ai": [], "bot": []}}


def test_tables_have_a_row_for_each_source(hits: httpx.Client) -> None:
    csv = hits.get("coverage", headers={"Accept": "text/csv"})
    assert csv.text == (
        "source,firstHit,lastHit,missingDays,silentSince\r\n"
        "server,2025-03-29T22:30:00+00:00,2025-04-01T05:00:00+00:00,2025-03-31,2025-04-02\r\n"
    )
    assert csv.headers["X-As-Of"]
    line = hits.get("coverage", headers={"Accept": "application/x-ndjson"}).text
    assert line == (
        '{"source":"server","firstHit":"2025-03-29T22:30:00Z","lastHit":"2025-04-01T05:00:00Z",'
        '"missingDays":["2025-03-31"],"silentSince":"2025-04-02"}\n'
    )
    parquet = hits.get("coverage", headers={"Accept": "application/vnd.apache.parquet"}).content
    (row,) = pq.read_table(io.BytesIO(parquet)).to_pylist()
    assert (row["source"], row["missingDays"]) == ("server", ["2025-03-31"])
