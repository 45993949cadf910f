"""Many rows in few statements, without a model object for each.

``bulk_create`` spends some 60 microseconds a row on objects and SQL text; at thousands of rows a
second that is the worker's whole core. Here a row is a tuple in the order of the named columns,
as the database takes it: JSON is text, see ``json_text``.

SQLite gets statements of many rows: its driver lets go of the interpreter's lock at each
statement, and a busy thread takes milliseconds to give it back. They go to the driver as they are,
because Django reads a statement once more to replace its marks. PostgreSQL gets one COPY.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from operator import itemgetter
from typing import Any, Final

import orjson
from django.db import connection, models, transaction

Row = Sequence[Any]

#: Rows in one statement. Few different sizes, so that the driver's statement cache holds them.
_CHUNKS: Final = (512, 128, 32, 8, 2, 1)
#: Parameters in one statement that are not one of the rows' values.
_OTHER_PARAMETERS: Final = 16
_PARAMETERS_OF_POSTGRESQL: Final = 65_535

_turn = threading.Lock()


@contextmanager
def write_turn() -> Iterator[None]:
    """A transaction that writes; on SQLite the threads of a process take turns.

    SQLite has one writer. Who finds it busy sleeps up to 100 ms before looking again, while others
    come and go; threads of one process do better to stand in line. Not to be nested.
    """
    if connection.vendor != "sqlite":
        with transaction.atomic():
            yield
        return
    with _turn, transaction.atomic():
        yield


def insert(model: type[models.Model], columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Insert rows, all or none; ``columns`` are names of concrete columns (``run_id``).

    Must be called inside a transaction.

    Raises:
        django.db.Error: nothing was inserted.
    """
    if not rows:
        return
    if connection.vendor == "postgresql":
        _copy(model._meta.db_table, tuple(columns), rows)
        return
    for chunk in _chunks(rows, len(columns)):
        _execute(
            _insert_statement(model._meta.db_table, tuple(columns), len(chunk)),
            [value for row in chunk for value in row],
        )


def update(
    model: type[models.Model],
    key: str,
    columns: Sequence[str],
    rows: Sequence[Row],
    condition: str,
    parameters: Sequence[Any],
) -> list[Any]:
    """Set ``columns`` of the rows whose ``key`` is a row's first value, where ``condition`` holds.
    Quick where the keys lie close together.

    ``condition`` is SQL over the table's columns (``t.``), with a ``%s`` for each parameter.

    Returns:
        The keys that were found.
    """
    found: list[Any] = []
    rows = sorted(rows, key=itemgetter(0))
    for chunk in _chunks(rows, 1 + len(columns)):
        statement = _update_statement(model, key, tuple(columns), len(chunk), condition)
        values = [value for row in chunk for value in row]
        ends = [chunk[0][0], chunk[-1][0]] if connection.vendor == "postgresql" else []
        found += [row[0] for row in _fetch(statement, [*values, *parameters, *ends])]
    return found


def delete(model: type[models.Model], ids: Sequence[int]) -> None:
    """Delete rows that nothing refers to, without reading them first. Inside a transaction."""
    if not ids:
        return
    key = model._meta.pk.column
    marks = ", ".join(["%s"] * len(ids))
    _execute(f'DELETE FROM "{model._meta.db_table}" WHERE "{key}" IN ({marks})', ids)  # noqa: S608


def json_text(value: Any) -> str:
    """JSON as a column takes it. NUL, which PostgreSQL refuses, becomes U+FFFD."""
    try:
        text = orjson.dumps(value).decode()
    except (TypeError, ValueError):  # integers beyond 64 bits, halves of surrogate pairs
        text = json.dumps(value)
    return json.dumps(_without_nul(json.loads(text))) if "\\u0000" in text else text


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd")
    if isinstance(value, list):
        return [_without_nul(item) for item in value]
    if isinstance(value, dict):
        return {_without_nul(key): _without_nul(item) for key, item in value.items()}
    return value


# --- statements -------------------------------------------------------------------------------


def _chunks(rows: Sequence[Row], width: int) -> Iterator[Sequence[Row]]:
    start, most = 0, _most_parameters()
    while start < len(rows):
        left = len(rows) - start
        size = next(n for n in _CHUNKS if n == 1 or (n <= left and n * width <= most))
        yield rows[start : start + size]
        start += size


@cache
def _insert_statement(table: str, columns: tuple[str, ...], count: int) -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    return f'INSERT INTO "{table}" ({names}) VALUES {_places(len(columns), count)}'  # noqa: S608


@cache
def _update_statement(
    model: type[models.Model], key: str, columns: tuple[str, ...], count: int, condition: str
) -> str:
    sets = ", ".join(
        f'"{name}" = {_cast(model, name, f"v.column{number}")}'
        for number, name in enumerate(columns, start=2)
    )
    # As long as it knows little of a table, PostgreSQL does not look the keys up in an index: it
    # reads all that the condition leaves, the whole run, and throws away what does not match. A
    # range is always looked up.
    within = f' AND t."{key}" BETWEEN %s AND %s' if connection.vendor == "postgresql" else ""
    return (
        f'UPDATE "{model._meta.db_table}" AS t SET {sets} '  # noqa: S608 - names of columns
        f"FROM (VALUES {_places(1 + len(columns), count)}) AS v "
        f'WHERE t."{key}" = {_cast(model, key, "v.column1")} AND {condition}{within} '
        f'RETURNING "{key}"'
    )


def _cast(model: type[models.Model], column: str, value: str) -> str:
    """PostgreSQL does not guess the type of a value in a list of rows."""
    if connection.vendor != "postgresql":
        return value
    kind = next(f for f in model._meta.concrete_fields if f.column == column).db_type(connection)
    return f"{value}::{kind}"


def _places(width: int, count: int) -> str:
    place = f"({', '.join(['%s'] * width)})"
    return ", ".join([place] * count)


def _execute(statement: str, parameters: Sequence[Any]) -> None:
    _fetch(statement, parameters)


def _fetch(statement: str, parameters: Sequence[Any]) -> list[Any]:
    """What a statement answers. Its text has no sign of percent but the marks."""
    with connection.cursor() as cursor:
        if connection.vendor != "sqlite":
            cursor.execute(statement, parameters)
            return list(cursor.fetchall()) if cursor.description else []
        driver = connection.connection
        with connection.wrap_database_errors:
            return list(driver.execute(_with_question_marks(statement), parameters).fetchall())


@cache
def _with_question_marks(statement: str) -> str:
    return statement.replace("%s", "?")


def _most_parameters() -> int:
    """SQLite takes 32,766 parameters in one statement, some builds 999."""
    if connection.vendor != "sqlite":
        return _PARAMETERS_OF_POSTGRESQL - _OTHER_PARAMETERS
    connection.ensure_connection()
    most: int = connection.connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
    return most - _OTHER_PARAMETERS


def _copy(table: str, columns: tuple[str, ...], rows: Sequence[Row]) -> None:
    names = ", ".join(f'"{name}"' for name in columns)
    with (
        connection.cursor() as cursor,
        connection.wrap_database_errors,
        cursor.copy(f'COPY "{table}" ({names}) FROM STDIN') as copy,
    ):
        for row in rows:
            copy.write_row(row)
