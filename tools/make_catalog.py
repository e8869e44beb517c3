"""Make the catalogue snapshot from LiteLLM's table of models.

Run at release, with the table taken from LiteLLM's wheel (nothing of it is installed or imported):

    pip download --no-deps litellm --dest /tmp/litellm
    unzip -j /tmp/litellm/litellm-*.whl 'litellm/model_prices_and_context_window_backup.json' -d /tmp/litellm
    python tools/make_catalog.py /tmp/litellm/model_prices_and_context_window_backup.json --version 1.110.2 \
        --date 2026-11-30 --out src/wakeful/models/catalog.json
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wakeful.models.catalog import REGIONS, REVISION, VARIANT, VENDORS, spellings

PROVIDERS = (
    "anthropic",
    "openai",
    "gemini",
    "vertex_ai-language-models",
    "mistral",
    "codestral",
    "deepseek",
    "xai",
    "cohere_chat",
    "cohere",
    "moonshot",
    "zai",
    "minimax",
    "meta_llama",
    "ai21",
    "dashscope",
    "groq",
    "cerebras",
    "bedrock_converse",
    "bedrock",
    "vertex_ai-anthropic_models",
)
"""Providers whose models are taken; where two offer the same id, the first one's facts stand."""

FAMILY = re.compile(r"^(claude|deepseek|[rv]\d(\.\d)?)$")
"""Ids that, without their prefix, name a family and no model."""

CHAT = frozenset({"chat", "responses", "completion"})


def bare(name: str) -> str:
    """Give the id without the prefixes of gateways, regions and vendors and without Bedrock's revision; dates stay."""
    tail = name.lower().rsplit("/", 1)[-1]
    plain = VENDORS.sub("", REGIONS.sub("", tail))
    return REVISION.sub("", VARIANT.sub("", plain)).replace("@", "-")


def million(cost: Any) -> float | None:
    """Give a price per token as one per million tokens."""
    return None if cost is None else float(f"{float(cost) * 1e6:.6g}")


def row(entry: Mapping[str, Any]) -> list[Any] | None:
    """Give an entry's row, or None when it says nothing of use."""
    window = entry.get("max_input_tokens") or entry.get("max_tokens")
    limit = entry.get("max_output_tokens")
    if not isinstance(window, int) or window < 1:
        return None
    return [
        window,
        limit if isinstance(limit, int) and limit > 0 else None,
        million(entry.get("input_cost_per_token")),
        million(entry.get("output_cost_per_token")),
        million(entry.get("cache_read_input_token_cost")),
        million(entry.get("cache_creation_input_token_cost")),
    ]


def select(table: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Give the rows of the chosen providers by bare id; dated ids that equal their undated one are left out."""
    models: dict[str, list[Any]] = {}
    for provider in PROVIDERS:
        names = [n for n, e in table.items() if e.get("litellm_provider") == provider and e.get("mode") in CHAT]
        # Global ids first: regional ones carry a surcharge.
        for name in sorted(names, key=lambda n: (REGIONS.match(n) is not None, n.count("/"), n)):
            if name.startswith(("ft:", "bedrock/", "1024-x", "azure")):
                continue
            found = row(table[name])
            if found is not None and not FAMILY.match(bare(name)):
                models.setdefault(bare(name), found)
    kept = {}
    for name, facts in models.items():
        shorter = [form for form in spellings(name) if form != name and form in models]
        if not any(models[form] == facts for form in shorter[:1]):
            kept[name] = facts
    return dict(sorted(kept.items()))


def main() -> int:
    """Read the table, write the snapshot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, help="LiteLLM's model_prices_and_context_window_backup.json")
    parser.add_argument("--version", required=True, help="LiteLLM's version")
    parser.add_argument("--date", required=True, help="day of the table, ISO 8601")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    models = select(json.loads(args.table.read_text(encoding="utf-8")))
    head = {"source": f"LiteLLM {args.version} (MIT)", "date": args.date}
    lines = ",\n".join(
        f"{json.dumps(name)}:{json.dumps(facts, separators=(',', ':'))}" for name, facts in models.items()
    )
    text = f'{{"source":{json.dumps(head["source"])},"date":{json.dumps(head["date"])},"models":{{\n{lines}\n}}}}\n'
    json.loads(text)
    args.out.write_text(text, encoding="utf-8")
    print(f"{len(models)} models, {len(text):,} bytes: {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
