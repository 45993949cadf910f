"""Quantities: every suffix, exactly, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_core.api import InvalidObject
from scheduler_core.api.quantity import (
    MAX_INT64,
    NANO,
    format_bytes,
    format_cpu,
    format_quantity,
    format_resource,
    milli_value,
    parse_nano,
    parse_quantity,
    value,
)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("3", 3, id="plain"),
        pytest.param("+3", 3, id="plus"),
        pytest.param("-3", -3, id="minus"),
        pytest.param("007", 7, id="leading zeros"),
        pytest.param("1.5", Fraction(3, 2), id="decimals"),
        pytest.param(".5", Fraction(1, 2), id="no whole part"),
        pytest.param("5.", 5, id="no decimals after the point"),
        pytest.param("1n", Fraction(1, 10**9), id="n"),
        pytest.param("1u", Fraction(1, 10**6), id="u"),
        pytest.param("1m", Fraction(1, 1000), id="m"),
        pytest.param("1k", 10**3, id="k"),
        pytest.param("1M", 10**6, id="M"),
        pytest.param("1G", 10**9, id="G"),
        pytest.param("1T", 10**12, id="T"),
        pytest.param("1P", 10**15, id="P"),
        pytest.param("1E", 10**18, id="E is exa, not an exponent"),
        pytest.param("1Ki", 2**10, id="Ki"),
        pytest.param("1Mi", 2**20, id="Mi"),
        pytest.param("1Gi", 2**30, id="Gi"),
        pytest.param("1Ti", 2**40, id="Ti"),
        pytest.param("1Pi", 2**50, id="Pi"),
        pytest.param("1Ei", 2**60, id="Ei"),
        pytest.param("0.5Gi", 2**29, id="decimals with a binary suffix"),
        pytest.param("1e3", 1000, id="exponent e"),
        pytest.param("1E3", 1000, id="exponent E"),
        pytest.param("1e+3", 1000, id="exponent with plus"),
        pytest.param("15e-1", Fraction(3, 2), id="negative exponent"),
        pytest.param("0.1n", Fraction(1, 10**9), id="finer than nano rounds up"),
        pytest.param("-0.1n", Fraction(-1, 10**9), id="finer than nano rounds away from zero"),
        pytest.param("1e-999999999", Fraction(1, 10**9), id="vanishing exponent"),
        pytest.param("1e999999999", MAX_INT64, id="exploding exponent is cut"),
        pytest.param("10E", MAX_INT64, id="beyond 64 bits is cut"),
        pytest.param("0e999999999", 0, id="zero with an exploding exponent"),
        pytest.param(2, 2, id="JSON integer"),
        pytest.param(0.1, Fraction(1, 10), id="JSON number is read as written"),
        pytest.param(1e21, MAX_INT64, id="JSON number with exponent"),
    ],
)
def test_a_quantity_is_exact(text: str | float, amount: Fraction | int) -> None:
    assert parse_quantity(text) == amount


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param(" 1", id="blank before"),
        pytest.param("1 ", id="blank after"),
        pytest.param("1\n", id="newline after"),
        pytest.param("1 Gi", id="blank inside"),
        pytest.param("abc", id="no number"),
        pytest.param("Mi", id="suffix alone"),
        pytest.param(".", id="point alone"),
        pytest.param("-", id="sign alone"),
        pytest.param("1e3Mi", id="exponent and suffix"),
        pytest.param("1e", id="exponent without digits"),
        pytest.param("1e1.5", id="fractional exponent"),
        pytest.param("1K", id="capital K alone"),
        pytest.param("1ki", id="small k with i"),
        pytest.param("1KI", id="capital I"),
        pytest.param("1mi", id="m with i"),
        pytest.param("1.2.3", id="two points"),
        pytest.param("--1", id="two signs"),
        pytest.param("1_000", id="underscore"),
        pytest.param("1,5", id="comma"),
        pytest.param("0x10", id="hexadecimal"),
        pytest.param("\u0661", id="digits of another script"),
        pytest.param("inf", id="inf"),
        pytest.param("9" * 200, id="too long"),
    ],
)
def test_a_malformed_quantity_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(InvalidObject) as refused:
        parse_nano(text)
    assert refused.value.value == text
    assert str(refused.value).startswith("Invalid value: ")


def test_the_message_says_which_text_and_why() -> None:
    with pytest.raises(InvalidObject) as refused:
        value("1e3Mi")
    assert str(refused.value).startswith('Invalid value: "1e3Mi": not a quantity: a number such as')


@pytest.mark.parametrize("thing", [True, None, [], {}, float("nan"), float("inf")], ids=repr)
def test_what_is_neither_text_nor_a_finite_number_is_refused(thing: object) -> None:
    with pytest.raises(InvalidObject):
        parse_nano(thing)  # type: ignore[arg-type]


def test_true_is_refused_even_after_1_was_read() -> None:
    assert parse_nano(1) == NANO
    with pytest.raises(InvalidObject):
        parse_nano(True)


@pytest.mark.parametrize(
    ("text", "milli", "whole"),
    [
        pytest.param("1u", 1, 1, id="rounded up from almost nothing"),
        pytest.param("500u", 1, 1, id="half a milli"),
        pytest.param("1500m", 1500, 2, id="one and a half"),
        pytest.param("1001u", 2, 1, id="just above a milli"),
        pytest.param("-1500m", -1500, -1, id="negative rounds towards plus infinity"),
        pytest.param("10E", MAX_INT64, MAX_INT64, id="cut to 64 bits"),
    ],
)
def test_values_are_rounded_up(text: str, milli: int, whole: int) -> None:
    assert (milli_value(text), value(text)) == (milli, whole)


@given(st.integers(min_value=-MAX_INT64 * NANO, max_value=MAX_INT64 * NANO), st.booleans())
def test_formatting_and_parsing_round_trip(nano: int, binary: bool) -> None:
    assert parse_nano(format_quantity(nano, binary=binary)) == nano


@given(
    st.integers(min_value=0, max_value=10**6),
    st.integers(min_value=0, max_value=999),
    st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi"]),
)
def test_scaling_agrees_with_fractions(whole: int, decimals: int, suffix: str) -> None:
    scales: dict[str, Fraction | int] = {
        "": 1,
        "m": Fraction(1, 1000),
        "k": 1000,
        "M": 10**6,
        "G": 10**9,
        "Ki": 2**10,
        "Mi": 2**20,
        "Gi": 2**30,
    }
    expected = (whole + Fraction(decimals, 1000)) * scales[suffix]
    assert parse_quantity(f"{whole}.{decimals:03d}{suffix}") == expected


@given(st.text(max_size=12))
def test_any_text_is_either_a_quantity_or_refused(text: str) -> None:
    try:
        amount = parse_quantity(text)
    except InvalidObject:
        return
    assert parse_nano(format_quantity(int(amount * NANO))) == amount * NANO


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        pytest.param(format_cpu(0), "0", id="no cpu"),
        pytest.param(format_cpu(250), "250m", id="millicores"),
        pytest.param(format_cpu(1500), "1.5", id="cores"),
        pytest.param(format_cpu(4000), "4", id="whole cores"),
        pytest.param(format_bytes(0), "0", id="no bytes"),
        pytest.param(format_bytes(1023), "1023", id="bytes"),
        pytest.param(format_bytes(3 * 2**29), "1.5Gi", id="Gi"),
        pytest.param(format_bytes(512 * 2**20), "512Mi", id="Mi"),
        pytest.param(format_bytes(MAX_INT64), "8Ei", id="the largest"),
        pytest.param(format_bytes(-1024), "-1Ki", id="negative bytes"),
        pytest.param(format_resource("cpu", 100), "100m", id="resource cpu"),
        pytest.param(format_resource("hugepages-2Mi", 2**21), "2Mi", id="resource huge pages"),
        pytest.param(format_resource("example.com/gpu", 3000), "3000", id="resource extended"),
        pytest.param(format_quantity(64 * 2**20 * NANO, binary=True), "64Mi", id="exact binary"),
    ],
)
def test_amounts_are_written_for_people(shown: str, expected: str) -> None:
    assert shown == expected
