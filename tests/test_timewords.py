"""A text tells a time by its terms."""

import pytest

from wakeful.sketches import bag_of
from wakeful.terms import index_terms
from wakeful.timewords import tells_time


@pytest.mark.parametrize(
    "text",
    [
        "We met yesterday", "It began in May", "Back in 1999 it was new", "I moved two weeks ago", "Since MONDAY",
        "Wir waren gestern da", "Nos vemos mañana", "我昨天到了", "5月3日出发", "上个月搬家", "2023年の春", "on 2024-03-01",
    ],
)  # fmt: skip
def test_a_time_is_told(text: str) -> None:
    assert tells_time(index_terms(text))


@pytest.mark.parametrize(
    "text",
    ["", "The piano is sold", "It cost 300 crowns", "Anne asked moi", "日本へ行く", "Room 2 of 40", "call 19991"],
)
def test_no_time_is_told(text: str) -> None:
    assert not tells_time(index_terms(text))


def test_the_label_of_a_turn_with_its_date_is_not_what_was_said() -> None:
    assert not bag_of("Ana, 1 January 2023", "I sold the piano").tells_time
    assert bag_of("Ana, 1 January 2023", "I sold the piano last week").tells_time
