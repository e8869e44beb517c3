"""The analysis of text: what looks or reads the same meets, in any language, and the index holds what a query asks."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.stems import english_stem
from wakeful.terms import MAX_TERM, STOP_WORDS, index_terms, query_terms

TEXT = st.text(max_size=80)


@given(TEXT)
def test_every_term_that_a_text_asks_for_is_among_those_the_index_keeps_of_it(text: str) -> None:
    assert set(query_terms(text)) <= set(index_terms(text))


@given(TEXT)
def test_terms_hold_no_space_no_quote_and_are_bounded(text: str) -> None:
    for term in index_terms(text):
        assert term
        assert len(term) <= MAX_TERM
        assert not any(letter.isspace() or letter in "\"'" for letter in term)


@given(TEXT)
def test_normal_forms_of_a_text_give_the_same_terms(text: str) -> None:
    composed, decomposed = unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)
    assert index_terms(composed) == index_terms(decomposed)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("cafe", "Café au lait"),
        ("ISTANBUL", "İstanbul"),
        ("istanbul", "ıstanbul"),
        ("strasse", "Straße"),
        ("ABC", "ａｂｃ full width"),
        ("москва", "МОСКВА"),
        ("محمد", "مُحَمَّد"),
        ("東京", "東京都に住む"),
        ("都", "東京都に住む"),
        ("서울", "서울에 산다"),
        ("สวัสดี", "เขาพูดว่าสวัสดีครับ"),
        ("👧", "family 👩‍👩‍👧"),
        ("right to left", "right\u200f to\u200e left"),
        ("C++", "I write C++ at work"),
        ("c#", "and C# at home"),
        ("node.js", "runs on Node.js 20"),
        ("node", "runs on Node.js 20"),
        ("CN-A10293", "contract cn-a10293 was signed"),
        ("a10293", "contract CN-A10293 was signed"),
        ("2024-03-01", "due 2024-03-01 at noon"),
        ("3:30", "at 3:30 pm"),
        ("user name", "call getUserName now"),
        ("max tokens", "max_tokens=5"),
        ("Ana", "Ana's dog"),
        ("runs", "she was running"),
        ("hiking", "they hiked"),
        ("allergies", "an allergy"),
    ],
)
def test_a_query_meets_its_text(query: str, text: str) -> None:
    assert query_terms(query)
    assert set(query_terms(query)) <= set(index_terms(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [("3:30", "3:35"), ("v1.2", "v1.20"), ("acme-corp1", "acme-corp2"), ("C++", "C#")],
)
def test_identifiers_that_differ_have_terms_that_differ(one: str, other: str) -> None:
    assert set(query_terms(one)) != set(query_terms(other))


def test_function_words_alone_ask_for_nothing() -> None:
    assert query_terms(" ".join(sorted(STOP_WORDS))) == []


@pytest.mark.parametrize(
    ("word", "stem"),
    [
        *(
            ("generalizations", "general"),
            ("hopefulness", "hope"),
            ("dying", "die"),
            ("skies", "sky"),
            ("news", "news"),
        ),
        *(("succeeding", "succeed"), ("agreed", "agre"), ("hopping", "hop"), ("hoping", "hope"), ("cries", "cri")),
        *(("happily", "happili"), ("controlling", "control"), ("university", "universiti"), ("at", "at")),
    ],
)
def test_words_are_cut_as_the_published_algorithm_cuts_them(word: str, stem: str) -> None:
    assert english_stem(word) == stem
