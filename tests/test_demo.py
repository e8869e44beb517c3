"""The demo's claims hold."""

from __future__ import annotations

import runpy
from pathlib import Path

DEMO = Path(__file__).parents[1] / "samples" / "demo.py"


def test_every_claim_of_the_demo_holds(capsys):
    assert runpy.run_path(str(DEMO))["main"]() == 0
    out = capsys.readouterr().out
    assert "NOT TRUE" not in out
    assert out.count("  ok  ") >= 15
