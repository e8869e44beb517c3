"""Scopes are exact paths; a fact holds in an interval; records refuse what no store can keep."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.errors import MemoryContractError
from wakeful.records import (
    MemoryEdge,
    MemoryLayer,
    MemoryNode,
    MemoryScope,
    NativeStorageScope,
    node_scope,
    tenant_scope,
    with_vector,
)

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
LOOK_ALIKES = (
    "a_b",
    "axb",
    "a%",
    "a",
    "ab",
    "A",
    "acme",
    "acme-corp",
    "*",
    "é",
    "e\u0301",
    "а",
    "ａ",
    " a",
    "a ",
    "..",
)

parts = st.one_of(
    st.sampled_from(LOOK_ALIKES),
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="/:\x00"), min_size=1, max_size=6),
)
paths = st.lists(st.tuples(parts, parts), min_size=1, max_size=4, unique_by=lambda level: level[0])
scopes = paths.map(lambda levels: MemoryScope.of(*levels))


def hour(count: float) -> datetime:
    return START + timedelta(hours=count)


def node(**values: Any) -> MemoryNode:
    return MemoryNode.new(**{"scope": MemoryScope.parse("org:acme"), "layer": "semantic", "at": START, **values})


@given(scopes)
def test_a_path_reads_back_as_its_scope(scope: MemoryScope) -> None:
    assert MemoryScope.parse(scope.path) == scope


@given(scopes, scopes)
def test_two_scopes_share_a_path_only_when_they_are_the_same(one: MemoryScope, other: MemoryScope) -> None:
    assert (one.path == other.path) == (one.levels == other.levels) == (one == other)
    assert one != other or hash(one) == hash(other)


@given(scopes, scopes)
def test_a_reader_sees_its_ancestors_and_itself_and_nothing_else(reader: MemoryScope, owner: MemoryScope) -> None:
    assert reader.sees(owner) == (owner in reader.visible()) == owner.contains(reader)
    for ancestor in reader.ancestors():
        assert reader.sees(ancestor)
        assert not ancestor.sees(reader)


@given(scopes, parts)
def test_a_child_sees_its_parent_and_is_not_seen(scope: MemoryScope, name: str) -> None:
    child = MemoryScope.of(*scope.levels, (f"{name}-kind", name))
    assert scope.child(f"{name}-kind", name) == child == scope.narrow((f"{name}-kind", name))
    assert child.sees(scope)
    assert not scope.sees(child)


@pytest.mark.parametrize(("one", "other"), [(a, b) for a in LOOK_ALIKES for b in LOOK_ALIKES if a < b])
def test_look_alikes_are_strangers(one: str, other: str) -> None:
    first, second = MemoryScope.of(("org", one)), MemoryScope.of(("org", other))
    assert not first.sees(second)
    assert not second.sees(first)
    assert not first.contains(second.child("user", "u"))


@pytest.mark.parametrize(
    "text", ["", "acme", "org:", ":acme", "org:a/", "/org:a", "org:a//user:b", "org:a:b", "org:a/org:b", "org:a\x00"]
)
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(MemoryContractError):
        MemoryScope.parse(text)


@pytest.mark.parametrize(
    "levels", [(), (("org", ""),), (("", "a"),), (("org", "a/b"),), (("org", "\ud800"),), (("a",),)]
)
def test_levels_that_are_no_levels_are_refused(levels: Any) -> None:
    with pytest.raises(MemoryContractError):
        MemoryScope.of(*levels)


def test_joined_parts_never_make_another_scope() -> None:
    with pytest.raises(MemoryContractError):
        MemoryScope.of(("a", "b:c"))
    with pytest.raises(MemoryContractError):
        MemoryScope.of(("a:b", "c"))


def test_a_scope_names_its_tenant_its_sub_tenant_and_its_session() -> None:
    scope = MemoryScope.of(("org", "acme"), ("user", "ana"), ("session", "s1"), namespace="green")
    assert (scope.tenant_id, scope.sub_tenant_id, scope.session) == ("acme", "ana", "s1")
    assert (scope.namespace, scope.identity_version) == ("green", 1)
    assert scope == MemoryScope.of(*scope.levels)
    assert scope.ancestors()[0].session is None
    assert MemoryScope.parse("session:s/user:u").session is None
    legacy = MemoryScope.for_tenant("acme", "s1")
    assert (legacy.identity_version, legacy.session, legacy.sub_tenant_id) == (0, "s1", "s1")


def test_a_native_scope_keeps_the_whole_path() -> None:
    scope = MemoryScope.parse("org:acme/user:ana")
    native = NativeStorageScope.from_scope(scope)
    assert (native.path, native.levels) == (scope.path, scope.levels)
    assert tenant_scope(native) is tenant_scope(scope) is scope
    assert node_scope(node(scope=scope)) is scope
    for wrong in ("org:acme", None):
        with pytest.raises(MemoryContractError):
            NativeStorageScope.from_scope(wrong)  # type: ignore[arg-type]
        with pytest.raises(MemoryContractError):
            tenant_scope(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("case", "fields", "as_of", "shown"),
    [
        ("open", {}, None, True),
        ("open, then", {}, -99, True),
        ("began now", {"valid_from": hour(0)}, None, True),
        ("begins later", {"valid_from": hour(1)}, None, False),
        ("begins later, as of then", {"valid_from": hour(1)}, 1, True),
        ("ended now", {"valid_until": hour(0)}, None, False),
        ("ended, as of before", {"valid_until": hour(0)}, -0.1, True),
        ("superseded", {"superseded_at": hour(-1)}, None, False),
        ("superseded though valid for longer", {"superseded_at": hour(-1), "valid_until": hour(9)}, None, False),
        ("superseded, as of before", {"superseded_at": hour(-1)}, -1.1, True),
        ("superseded, as of then", {"superseded_at": hour(-1)}, -1, False),
        ("closed in the past, as of inside", {"superseded_at": hour(-1), "valid_until": hour(-9)}, -10, True),
        ("closed in the past, as of the gap", {"superseded_at": hour(-1), "valid_until": hour(-9)}, -5, False),
        ("expired, as of before", {"expires_at": hour(-1)}, -5, False),
        ("retracted, as of before", {"status": "retracted"}, -5, False),
    ],
)
def test_what_was_true_then_is_told_from_what_is_true_now(
    case: str, fields: dict[str, Any], as_of: float | None, shown: bool
) -> None:
    assert node(**fields).visible_at(START, as_of=None if as_of is None else hour(as_of)) is shown, case


def test_a_change_of_address_shows_one_address_at_any_instant() -> None:
    moved = hour(24)
    oslo = node(content="Oslo", valid_until=moved, superseded_at=hour(30), superseded_by="rome")
    rome = node(content="Rome", valid_from=moved)
    for at in range(-48, 96):
        shown = [each.content for each in (oslo, rome) if each.visible_at(hour(99), as_of=hour(at))]
        assert shown == (["Oslo"] if at < 24 else ["Rome"])


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, True),
        ({"superseded_at": hour(-1)}, False),
        ({"expires_at": START}, False),
        ({"valid_from": hour(1)}, False),
        ({"valid_until": START}, False),
        ({"valid_from": START, "valid_until": hour(1), "expires_at": hour(1)}, True),
    ],
)
def test_an_edge_is_in_force_inside_its_times(fields: dict[str, Any], shown: bool) -> None:
    edge = MemoryEdge.new(scope=MemoryScope.parse("org:a"), source_id="a", target_id="b", at=START, **fields)
    assert edge.in_force_at(START) is shown


@pytest.mark.parametrize(
    "fields",
    [
        *({"at": datetime(2026, 1, 1)}, {"expires_at": datetime(2026, 1, 1)}, {"valid_from": "2026-01-01"}),
        *({"importance": 0}, {"importance": 11}, {"importance": float("nan")}, {"status": "gone"}, {"layer": "dream"}),
        *({"content": "a\x00b"}, {"label": "\ud800"}, {"id": ""}, {"colour": "red"}, {"scope": "org:acme"}),
    ],
)
def test_a_node_that_no_store_can_keep_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(MemoryContractError):
        node(**fields)


def test_a_time_of_any_zone_is_kept_as_its_instant_in_utc() -> None:
    kathmandu = timezone(timedelta(hours=5, minutes=45))
    made = node(at=START.astimezone(kathmandu), expires_at=hour(1).astimezone(kathmandu))
    assert (made.asserted_at, made.updated_at, made.expires_at) == (START, START, hour(1))
    assert made.asserted_at.tzinfo is made.expires_at.tzinfo is UTC  # type: ignore[union-attr]
    assert node(layer=MemoryLayer.EPISODIC).layer is MemoryLayer.EPISODIC


def test_a_node_with_a_vector_is_the_node_with_a_vector() -> None:
    bare = node(properties={"a": 1})
    assert with_vector(bare, b"1234", "m") == replace(bare, embedding=b"1234", embedding_model="m")
    assert bare.embedding is None
