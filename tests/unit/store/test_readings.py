"""Readings over time in the store, SQLite and PostgreSQL alike: merged, bounded, and each rack its own."""

from collections.abc import Callable

import pytest
from sqlalchemy import func, select, update

from lumctl.store import Store
from lumctl.store.database import writing
from lumctl.store.packed_hours import Point, Values
from lumctl.store.readings import KEEP_READINGS_S
from lumctl.store.schema import readings

MINUTE = 30_000_060
"""The first of an hour, counted since the epoch."""


@pytest.fixture
def store(opened: Callable[..., Store]) -> Store:
    return opened("r1")


def minutes(*numbers: int, component: str = "g1", **named: float) -> dict[int, dict[str, dict[str, Values]]]:
    return {n: {component: {name: Values(v - 1, v, v + 1) for name, v in named.items()}} for n in numbers}


def read(store: Store, component: str = "g1", back: int = 600) -> dict[str, tuple[Point, ...]]:
    return store.readings.of(component, since=(MINUTE - back) * 60, until=(MINUTE + 600) * 60)


def rows(store: Store) -> int:
    with store._engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(readings)).scalar()


def test_minutes_of_two_hours_are_two_rows_and_come_back_in_order(store: Store) -> None:
    store.readings.add(minutes(MINUTE, MINUTE - 1, power=300.0, temperature=50.0))
    assert rows(store) == 2
    found = read(store)
    assert found["power"] == (
        Point((MINUTE - 1) * 60.0, 299.0, 300.0, 301.0),
        Point(MINUTE * 60.0, 299.0, 300.0, 301.0),
    )
    assert set(found) == {"power", "temperature"}
    assert read(store, "g2") == {}


def test_a_minute_that_is_written_in_two_parts_holds_both(store: Store, opened: Callable[..., Store]) -> None:
    store.readings.add(minutes(MINUTE, power=300.0))
    opened("r1").readings.add(minutes(MINUTE, power=310.0))
    store.readings.add(minutes(MINUTE + 1, power=320.0))
    assert [each[1:4] for each in read(store)["power"]] == [(299.0, 305.0, 311.0), (319.0, 320.0, 321.0)]


def test_the_oldest_hour_is_that_of_the_own_rack(store: Store, opened: Callable[..., Store]) -> None:
    assert store.readings.oldest() is None
    opened("r2").readings.add(minutes(MINUTE - 600, power=300.0))
    store.readings.add(minutes(MINUTE, MINUTE + 61, power=300.0))
    assert store.readings.oldest() == (MINUTE - MINUTE % 60) * 60.0


def test_only_what_was_asked_for_is_given(store: Store) -> None:
    store.readings.add(minutes(*range(MINUTE, MINUTE + 10), power=300.0))
    found = store.readings.of("g1", since=(MINUTE + 3) * 60 + 30, until=(MINUTE + 5) * 60)
    assert [each.at / 60 - MINUTE for each in found["power"]] == [3, 4, 5]


def test_old_hours_are_dropped(store: Store) -> None:
    kept = int(KEEP_READINGS_S // 60)
    store.readings.add(minutes(MINUTE - kept - 120, MINUTE - kept + 1, power=300.0))
    store.readings.add(minutes(MINUTE, power=300.0))
    assert len(read(store, back=kept + 600)["power"]) == 2


def test_racks_in_one_database_have_each_their_own(opened: Callable[..., Store]) -> None:
    one, other = opened("r1"), opened("r2")
    one.readings.add(minutes(MINUTE, power=300.0))
    other.readings.add(minutes(MINUTE, power=500.0))
    assert read(one)["power"][0].mean == 300.0
    assert read(other)["power"][0].mean == 500.0


def test_a_row_that_is_damaged_is_written_anew(store: Store) -> None:
    store.readings.add(minutes(MINUTE, power=300.0))
    with writing(store._engine) as connection:
        connection.execute(update(readings).values(body=b"\x01nonsense"))
    assert read(store) == {}
    store.readings.add(minutes(MINUTE + 1, power=310.0))
    assert [each.mean for each in read(store)["power"]] == [310.0]


def test_more_components_than_fit_into_one_transaction(store: Store) -> None:
    many = {MINUTE: {f"g{n}": {"power": Values(n, n, n)} for n in range(1200)}}
    store.readings.add(many)
    store.readings.add(many)
    assert rows(store) == 1200
    assert read(store, "g1199")["power"][0].mean == 1199.0
