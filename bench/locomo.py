"""Measure recall: how many of a question's evidence turns are among the first ten hits.

Two sets with one setting: LoCoMo (short turns of two people; ``--data`` names the folder that holds
``locomo/*.json``) and the generated long messages of ``long_messages.py``. Beside ours, in the same run: plain BM25,
plain vectors, LangGraph's ``InMemoryStore``, and mem0 where it is installed (``pip install mem0ai faiss-cpu langchain``).

    python bench/locomo.py --data FOLDER                        # static embedder, no embedder, peers
    python bench/locomo.py --data FOLDER --embedder minilm
    python bench/locomo.py --data FOLDER --without              # every ingredient left out in turn, on both sets

Figures, in percent: evidence recall@10 (share of a question's evidence among the first ten hits, averaged over the
questions with evidence) and nDCG@10 (binary gain, 1/log2(rank+1), ideal over min(evidence, 10)). All five categories of
LoCoMo count; a caption of a shared picture belongs to its turn.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import re
import shutil
import tempfile
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import common
import long_messages
from wakeful import Memory, MemoryScope, Turn
from wakeful.models.embed import coerce_embedder
from wakeful.retrieval import RecallSettings
from wakeful.stores import bm25
from wakeful.terms import index_terms, query_terms

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop", 5: "adversarial"}
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True)
class Question:
    """A question and the refs of the turns that answer it."""

    text: str
    evidence: frozenset[str]
    kind: str


@dataclass(frozen=True)
class Talk:
    """A conversation and its questions."""

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def locomo(folder: Path) -> list[Talk]:
    """Read LoCoMo: each turn with its session's date."""
    talks = []
    for path in sorted((folder / "locomo").glob("*.json")):
        for sample in json.loads(path.read_text()):
            talks.append(_talk(sample))
    return talks


def _talk(sample: dict[str, Any]) -> Talk:
    conversation = sample["conversation"]
    numbers = sorted(int(key[8:]) for key in conversation if re.fullmatch(r"session_\d+", key))
    turns = []
    for number in numbers:
        at = datetime.strptime(conversation[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for said in conversation[f"session_{number}"]:
            text = said["text"]
            if said.get("blip_caption"):
                text += f" [shares {said['blip_caption']}]"
            turns.append(Turn(text, speaker=said["speaker"], at=at, session=f"session_{number}", ref=said["dia_id"]))
    known = {turn.ref for turn in turns}
    questions = []
    for asked in sample["qa"]:
        found = {f"D{int(a)}:{int(b)}" for text in asked.get("evidence", ()) for a, b in _EVIDENCE.findall(text)}
        if found & known:
            questions.append(Question(asked["question"], frozenset(found & known), CATEGORIES[asked["category"]]))
    return Talk(sample["sample_id"], tuple(turns), tuple(questions))


def long_talks() -> list[Talk]:
    """Read the generated set."""
    talks = []
    for made in long_messages.generate():
        turns = tuple(Turn(m.text, speaker=m.speaker, at=m.at, session=m.session, ref=m.ref) for m in made.messages)
        questions = tuple(Question(q.text, frozenset(q.evidence), q.kind) for q in made.questions)
        talks.append(Talk(made.name, turns, questions))
    return talks


Search = Callable[[Question], Sequence[str | None]]
"""Gives the refs of the first hits, best first."""


def score(talks: Sequence[Talk], make: Callable[[Talk], Search]) -> dict[str, Any]:
    """Run every question of every conversation and average."""
    recalls, gains, seconds, kinds = [], [], 0.0, defaultdict(list)
    for talk in talks:
        search = make(talk)
        for question in talk.questions:
            started = time.process_time()
            refs = search(question)[:10]
            seconds += time.process_time() - started
            hits = [ref in question.evidence for ref in refs]
            recalls.append(sum(hits) / len(question.evidence))
            kinds[question.kind].append(recalls[-1])
            ideal = sum(1 / math.log2(place + 2) for place in range(min(10, len(question.evidence))))
            gains.append(sum(hit / math.log2(place + 2) for place, hit in enumerate(hits)) / ideal)
    return {
        "recall@10": _percent(recalls),
        "ndcg@10": _percent(gains),
        "by kind": {kind: _percent(found) for kind, found in sorted(kinds.items())},
        "questions": len(recalls),
        "ms a question (CPU)": round(1000 * seconds / len(recalls), 2),
    }


def _percent(values: Iterable[float]) -> float:
    held = list(values)
    return round(100 * sum(held) / len(held), 1)


def ours(embedder: Any, settings: RecallSettings | None = None, *, extract: bool = True, url: str = "memory://") -> Any:
    """Our memory as a user has it: ``remember`` the turns, ``recall`` each question."""

    def make(talk: Talk) -> Search:
        memory = Memory.open(url, embedder=embedder, recall=settings)
        scope = MemoryScope.of(("conversation", talk.name))
        memory.remember(scope, list(talk.turns), extract=extract)
        return lambda question: [hit.node.ref for hit in memory.recall(scope, question.text, k=10).hits]

    return make


def plain_words(talk: Talk) -> Search:
    """BM25 over speaker and text, with stems: what most people would build."""
    bags = [index_terms(f"{turn.speaker} {turn.text}") for turn in talk.turns]
    mean = sum(map(len, bags)) / len(bags)
    postings: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for number, bag in enumerate(bags):
        for term in bag:
            postings[term][number] = postings[term].get(number, 0) + 1

    def search(question: Question) -> list[str | None]:
        scores: defaultdict[int, float] = defaultdict(float)
        for term in query_terms(question.text):
            held = postings.get(term, {})
            weight = bm25.idf(len(bags), len(held))
            for number, count in held.items():
                scores[number] += weight * bm25.saturation(count, len(bags[number]), mean)
        best = sorted(scores, key=lambda number: (-scores[number], number))
        return [talk.turns[number].ref for number in best[:10]]

    return search


def plain_vectors(embedder: Any) -> Callable[[Talk], Search]:
    """Cosine over whole turns."""
    import numpy

    def matrix(texts: list[str], kind: Any) -> Any:
        return numpy.stack([numpy.frombuffer(vector, "<f4") for vector in embedder.embed(texts, kind)])

    def make(talk: Talk) -> Search:
        held = matrix([f"{turn.speaker}: {turn.text}" for turn in talk.turns], "document")

        def search(question: Question) -> list[str | None]:
            scores = held @ matrix([question.text], "query")[0]
            return [talk.turns[int(number)].ref for number in numpy.argsort(-scores, kind="stable")[:10]]

        return search

    return make


def langgraph_store(embedder: Any) -> Callable[[Talk], Search]:
    """LangGraph's in-memory store with the same embedder."""
    import numpy
    from langgraph.store.memory import InMemoryStore

    def embed(texts: list[str]) -> list[list[float]]:
        return [numpy.frombuffer(vector, "<f4").tolist() for vector in embedder.embed(list(texts), "document")]

    def make(talk: Talk) -> Search:
        index: Any = {"dims": embedder.dimensions, "embed": embed, "fields": ["text"]}
        store = InMemoryStore(index=index)
        for number, turn in enumerate(talk.turns):
            store.put((talk.name,), str(number), {"text": f"{turn.speaker}: {turn.text}", "ref": turn.ref})
        return lambda question: [hit.value["ref"] for hit in store.search((talk.name,), query=question.text, limit=10)]

    return make


def mem0_store(embedder: Any) -> Callable[[Talk], Search]:
    """mem0 over FAISS with the same embedder, without a model (``infer=False``): rows that no model has rewritten."""
    os.environ.setdefault("MEM0_TELEMETRY", "False")
    os.environ.setdefault("OPENAI_API_KEY", "none")  # its constructor asks for one; nothing is called
    import mem0
    import numpy
    from langchain_core.embeddings import Embeddings

    class Vectors(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            found: list[float] = numpy.frombuffer(embedder.embed((text,), "query")[0], "<f4").tolist()
            return found

    def make(talk: Talk) -> Search:
        folder = tempfile.mkdtemp()
        weakref.finalize(talk, shutil.rmtree, folder, ignore_errors=True)
        store = {"path": folder, "embedding_model_dims": embedder.dimensions, "collection_name": "talk"}
        memory = mem0.Memory.from_config(
            {
                "vector_store": {"provider": "faiss", "config": store},
                "embedder": {"provider": "langchain", "config": {"model": Vectors()}},
                "history_db_path": f"{folder}/history.db",
            }
        )
        for turn in talk.turns:
            text = f"{turn.speaker}: {turn.text}"
            memory.add([{"role": "user", "content": text}], user_id="ana", infer=False, metadata={"ref": turn.ref})

        def search(question: Question) -> list[str]:
            found = memory.search(question.text, filters={"user_id": "ana"}, top_k=10)
            return [each["metadata"]["ref"] for each in found["results"]]

        return search

    return make


WITHOUT: dict[str, dict[str, Any]] = {
    "vectors": {"dense": 0.0, "dense_long": 0.0},
    "window": {"window": 0.0},
    "session": {"session": 0.0},
    "what a question passes on": {"from_question": RecallSettings().from_before},
    "what stands before": {"from_question": 0.0, "from_before": 0.0},
    "what stands after": {"from_after": 0.0, "from_answer": 0.0},
    "speaker": {"speaker": 0.0},
    "words of time": {"time_words": 0.0},
    "malus of questions": {"question": 0.0},
    "length": {"length": 0.0},
    "period": {"in_period": 0.0},
}
"""Ingredients, each with the settings that leave it out."""


def main() -> None:
    """Run and save."""
    parser = common.parse(__doc__)
    parser.add_argument("--embedder", default="static")
    parser.add_argument("--without", action="store_true", help="leave out every ingredient in turn")
    parser.add_argument("--url", default="memory://", help="store; one is opened for each conversation")
    options = parser.parse_args()
    sets = {"long messages": long_talks()}
    if options.data is not None:
        sets = {"locomo": locomo(options.data), **sets}
    embedder = coerce_embedder(options.embedder)
    rows: dict[str, Callable[[Talk], Search]] = {
        f"wakeful, {options.embedder}": ours(embedder, url=options.url),
        f"wakeful, {options.embedder}, without extraction": ours(embedder, extract=False, url=options.url),
    }
    if options.without:
        for name, changes in WITHOUT.items():
            settings = replace(RecallSettings(), **changes)
            rows[f"  without {name}"] = ours(embedder, settings, extract=False, url=options.url)
    else:
        rows |= {
            "wakeful, no embedder": ours(False, url=options.url),
            "plain BM25": plain_words,
            f"plain vectors, {options.embedder}": plain_vectors(embedder),
            f"LangGraph InMemoryStore, {options.embedder}": langgraph_store(embedder),
        }
        if importlib.util.find_spec("mem0") is not None:
            rows[f"mem0 with FAISS, {options.embedder}"] = mem0_store(embedder)
    result: dict[str, Any] = {}
    for name, talks in sets.items():
        for row, make in rows.items():
            found = result.setdefault(name, {})[row.strip()] = score(talks, make)
            kinds = " ".join(f"{kind} {value}" for kind, value in found["by kind"].items())
            print(
                f"{name:14} {row:44} R@10 {found['recall@10']:5.1f}  nDCG@10 {found['ndcg@10']:5.1f}  "
                f"{found['ms a question (CPU)']:6.2f} ms  {kinds}",
                flush=True,
            )
    inputs = {name: [[turn.text for turn in talk.turns] for talk in talks] for name, talks in sets.items()}
    suffix = f"-{options.embedder}" + ("-without" if options.without else "")
    common.save(f"recall{suffix}", result, inputs=inputs, out=options.out)


if __name__ == "__main__":
    main()
