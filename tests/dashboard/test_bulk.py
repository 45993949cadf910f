from __future__ import annotations

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from dashboard import bulk
from dashboard.models import Lease

pytestmark = pytest.mark.django_db(transaction=True)

COLUMNS = ("name", "holder", "epoch", "renewed_at", "queue")


def rows(count: int) -> list[tuple[str, str, int, float, str]]:
    return [(f"lease-{i:05d}", "tab\tback\\slash\n", i, i / 4, "") for i in range(count)]


@pytest.mark.parametrize("count", [0, 1, 3, 64, 200])
def test_what_is_inserted_is_there(count: int) -> None:
    with bulk.write_turn():
        bulk.insert(Lease, COLUMNS, rows(count))
    assert list(Lease.objects.order_by("name").values_list(*COLUMNS)) == rows(count)


def test_many_rows_are_few_statements() -> None:
    with (
        CaptureQueriesContext(
            connection,
        ) as asked,
        transaction.atomic(),
    ):
        bulk.insert(Lease, COLUMNS, rows(640))
    inserts = [query for query in asked.captured_queries if "INSERT" in query["sql"]]
    assert len(inserts) <= 10


def test_all_or_none() -> None:
    with pytest.raises(DatabaseError), bulk.write_turn():
        bulk.insert(Lease, COLUMNS, [*rows(70), rows(1)[0]])
    assert not Lease.objects.exists()


def test_an_update_says_which_keys_it_found() -> None:
    with bulk.write_turn():
        bulk.insert(Lease, COLUMNS, rows(70))
    changes = [(f"lease-{i:05d}", "me", 7) for i in range(60, 80)]
    with bulk.write_turn():
        found = bulk.update(Lease, "name", ("holder", "epoch"), changes, 't."queue" = %s', [""])
    assert sorted(found) == [f"lease-{i:05d}" for i in range(60, 70)]
    assert Lease.objects.filter(holder="me", epoch=7).count() == 10


def test_rows_are_deleted_by_key() -> None:
    with bulk.write_turn():
        bulk.insert(Lease, COLUMNS, rows(5))
    keep, *gone = Lease.objects.order_by("name").values_list("pk", flat=True)
    with bulk.write_turn():
        bulk.delete(Lease, gone)
        bulk.delete(Lease, [])
    assert list(Lease.objects.values_list("pk", flat=True)) == [keep]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param({"a": [1, "\u00e9"]}, '{"a":[1,"\u00e9"]}', id="plain"),
        pytest.param({"a\x00": ["b\x00"]}, '{"a\\ufffd": ["b\\ufffd"]}', id="NUL"),
        pytest.param(2**70, str(2**70), id="more than 64 bits"),
        pytest.param(["\\u0000"], '["\\\\u0000"]', id="a backslash is no NUL"),
    ],
)
def test_json_as_a_column_takes_it(value: object, text: str) -> None:
    assert bulk.json_text(value) == text
