"""Look-alike scopes never see each other, on any path that reads; no name is ever code."""

from __future__ import annotations

import pytest

from wakeful import Memory, MemoryContractError, MemoryLayer, MemoryNode, MemoryScope, Turn
from wakeful.errors import NotFound

LOOKALIKES = (
    (("t", "a_b"),),
    (("t", "axb"),),
    (("t", "a%"),),
    (("t", "a"),),
    (("t", "ab"),),
    (("t", "A"),),
    (("t", "а"),),  # Cyrillic
    (("t", "á"),),
    (("t", "a\u0301"),),
    (("t", " a"),),
    (("t", "*"),),
    (("t", "acme"),),
    (("t", "acme-corp"),),
    (("t", "a"), ("u", "b")),
    (("t", "a"), ("u", "bc")),
    (("t", "ab"), ("u", "c")),
)
HOSTILE = ("'; DROP TABLE nodes;--", '"x" OR 1=1', "`x`", "$1", "..%2f..", "SELECT", "x" * 10_000, "a\\b", "?", "{}")


def secret(scope: MemoryScope) -> str:
    return f"zebra{abs(hash(scope.levels)) % 10**12} is the code word"


def test_every_read_path_shows_a_scope_its_own_and_its_ancestors_rows_alone(memory: Memory) -> None:
    scopes = [MemoryScope.of(*levels) for levels in LOOKALIKES]
    ids = {}
    for scope in scopes:
        ids[scope] = memory.remember(scope, secret(scope), extract=False).ids[0]
        memory.remind(scope, secret(scope), event="wake")
        memory.note(scope, secret(scope))
    for reader in scopes:
        visible = {secret(owner) for owner in scopes if reader.sees(owner)}
        found = {hit.node.content for hit in memory.recall(reader, "what is the code word", k=100)}
        assert found == visible
        for owner in scopes:
            if owner != reader and not reader.sees(owner):
                with pytest.raises(NotFound):
                    memory.history(reader, ids[owner])
                assert "no such memory" in str(memory.explain(reader, "code word", ids[owner]))
                assert not memory.forget(reader, ids[owner])
                with pytest.raises(NotFound):
                    memory.link(reader, ids[reader], ids[owner])
        assert {node.content for node in memory.working(reader)} == {secret(reader)}
        assert {due.text for due in memory.due(reader, event="wake")} == {secret(reader)}
        exported = {node.scope for node in memory.export(reader).nodes()}
        assert exported == {owner for owner in scopes if reader.contains(owner)}


def test_writing_never_touches_a_row_of_another_owner(memory: Memory) -> None:
    parent, child = MemoryScope.of(("t", "a")), MemoryScope.of(("t", "a"), ("u", "b"))
    written = memory.remember(parent, "Ana lives in Oslo").nodes[0]
    memory.remember(child, "Ana lives in Rome", at=written.asserted_at.replace(year=2027))
    assert memory.history(parent, written.id)[-1].node.superseded_at is None
    assert not memory.forget(child, written.id)
    with pytest.raises(NotFound):
        memory.approve(child, written.id)
    with pytest.raises(MemoryContractError):
        memory.remember(child, written)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_never_code(memory: Memory, name: str) -> None:
    scope = MemoryScope.of(("t", name.replace("/", "_").replace(":", "_")))
    other = MemoryScope.of(("t", "other"))
    memory.remember(other, "the other one stays", extract=False)
    node = MemoryNode.new(
        scope=scope,
        layer=MemoryLayer.SEMANTIC,
        label=name,
        content=f"about {name}",
        at=memory.store.execute and memory._clock(),
        id=name,
        properties={name[:50]: name},
    )
    memory.remember(scope, node)
    memory.remember(scope, [Turn("hello there", speaker=name, session=name, ref=name)], extract=False)
    target = memory.remember(scope, "something else", extract=False).ids[0]
    memory.link(scope, name, target, relation=name)
    assert memory.history(scope, name)[0].node.label == name
    assert len(memory.recall(scope, name + " about", k=10).hits) <= 10
    assert [hit.node.ref for hit in memory.recall(scope, "hello")] == [name]
    assert memory.forget(scope, name)
    assert memory.erase(scope).verified
    assert [hit.node.content for hit in memory.recall(other, "stays")] == ["the other one stays"]


@pytest.mark.parametrize(
    "levels", [(), (("", "a"),), (("t", ""),), (("t", "a/b"),), (("t", "a:b"),), (("t", "a"), ("t", "b"))]
)
def test_an_empty_or_broken_scope_is_an_error_and_never_everything(levels: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(MemoryContractError):
        MemoryScope(levels)


def test_a_missing_scope_is_an_error_on_every_verb(memory: Memory) -> None:
    for call in (
        lambda: memory.remember(None, "x"),  # type: ignore[arg-type]
        lambda: memory.recall(None, "x"),  # type: ignore[arg-type]
        lambda: memory.recall("org:acme", "x"),  # type: ignore[arg-type]
    ):
        with pytest.raises(MemoryContractError):
            call()
