"""Remove secrets from what is to be remembered: by the name of a field, and by the value itself, at any depth.

A secret becomes ``[secret:KIND]``, so the text stays readable and says what was there. Three nets:

- known formats of keys, a table with sources;
- a value that stands behind a name such as ``password`` or ``api_key``, in text and in mappings;
- a long run of mixed characters whose entropy is that of random bytes. Hashes, ids and dates are not secrets: hexadecimal
  runs, UUIDs, ULIDs and words joined by signs are left alone unless a name gives them away.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

FORMATS: tuple[tuple[str, str], ...] = (
    # (kind, pattern). Sources: the providers' documentation of their token formats; GitHub secret scanning patterns,
    # https://docs.github.com/en/code-security/secret-scanning/introduction/supported-secret-scanning-patterns
    (
        "private_key",
        r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
        r"(?:-----END (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----|$)",
    ),
    ("anthropic_key", r"\bsk-ant-[A-Za-z0-9_-]{16,}"),
    ("openai_key", r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}"),
    ("stripe_key", r"\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("webhook_secret", r"\bwhsec_[A-Za-z0-9+/=]{16,}"),
    ("github_token", r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})"),
    ("gitlab_token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("aws_key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    ("google_key", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("google_token", r"\bya29\.[A-Za-z0-9_-]{20,}"),
    ("slack_token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("slack_webhook", r"https://hooks\.slack\.com/services/[A-Za-z0-9/_-]{20,}"),
    ("npm_token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("pypi_token", r"\bpypi-[A-Za-z0-9_-]{50,}"),
    ("huggingface_token", r"\bhf_[A-Za-z0-9]{30,}"),
    ("sendgrid_key", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("digitalocean_token", r"\bdo[opr]_v1_[a-f0-9]{64}\b"),
    ("jwt", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ("url_password", r"(?<=://)[^\s/:@]{1,64}:[^\s/@]{1,128}(?=@)"),
    ("bearer_token", r"(?<=[Bb]earer )[A-Za-z0-9._~+/-]{16,}=*"),
    ("basic_credentials", r"(?<=[Bb]asic )[A-Za-z0-9+/]{16,}={0,2}"),
)  # fmt: skip

_NAMES = (
    r"pass(?:word|wd|phrase|code)?|pwd|secret|token|api[_\- ]?key|access[_\- ]?key|private[_\- ]?key|auth[_\- ]?key"
    r"|signing[_\- ]?key|encryption[_\- ]?key|credentials?|authorization|cookie|session[_\- ]?id|pin|cvv|cvc|otp"
    r"|passwort|kennwort|contraseña|mot de passe|пароль|密码|パスワード|비밀번호"
)
_NAME = re.compile(rf"(?:^|[_\-.\s])(?:{_NAMES})(?:$|[_\-.\s])", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_HARMLESS = re.compile(
    r"(?:max|min|num|total|input|output|prompt|completion|cached|used|count|limit|usage)", re.IGNORECASE
)
"""Names of counts: ``max_tokens``, ``token_count``."""

_NAMED_VALUE = re.compile(
    rf"(?P<name>(?<!\[)\b[\w\-]*(?:{_NAMES}))(?P<sign>[\"']?\s*(?:[:=]|\bis\b|\bist\b|\best\b|\bes\b|：|は|是)\s*[\"'`]?)(?P<value>[^\s\"'`,;<>]{{4,}})",
    re.IGNORECASE,
)
_LONG_RUN = re.compile(r"[A-Za-z0-9+/_=\-]{24,}")
_ORDINARY = re.compile(
    r"^(?:[0-9a-fA-F-]+|[0-9a-hjkmnp-tv-z]{26}|[\d.\-_/:]+|[A-Z]+(?:[_-][A-Z]+)*|"
    r"[A-Za-z]{1,20}(?:[_\-/+=][A-Za-z]{1,20})+|[a-z]+|[A-Z]+|(?:[A-Z]?[a-z]+)+)$"
)
_HINTS = tuple(
    "pass pwd secret token key credential authoriz cookie session cvv cvc otp kennwort contraseña пароль 密码 パスワード"
    " 비밀번호 pin: pin= ://".split()
)
_SHORTEST = 16
"""Characters of the shortest run that a format or a random secret needs."""
_FORMATS = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in FORMATS))
_ENTROPY = 3.9
"""Bits a character. English words joined lie under 3.6, base64 of random bytes of 24 characters or more above 4."""


def scrub_text(text: str) -> tuple[str, int]:
    """Remove secrets from a text. Gives the text, the very same when there are none, and how many were removed."""
    if not _may_hold(text):
        return text, 0
    count = 0

    def known(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return f"[secret:{match.lastgroup}]"

    def named(match: re.Match[str]) -> str:
        nonlocal count
        value = match["value"].rstrip(".!?)")
        if value.startswith("[secret:") or not _is_value(match["name"], match["sign"], value):
            return match[0]
        count += 1
        rest = match["value"][len(value) :]
        return f"{match['name']}{match['sign']}[secret:named]{rest}"

    def random_run(match: re.Match[str]) -> str:
        nonlocal count
        if _looks_random(match[0]):
            count += 1
            return "[secret:high_entropy]"
        return match[0]

    clean = _FORMATS.sub(known, text)
    clean = _NAMED_VALUE.sub(named, clean)
    clean = _LONG_RUN.sub(random_run, clean)
    return (clean, count) if count else (text, 0)


def _may_hold(text: str) -> bool:
    """Whether it is worth looking closer: most texts hold neither a telling word nor a long run."""
    lower = text.lower()
    for hint in _HINTS:
        if hint in lower:
            return True
    if " pin " in lower or "mot de" in lower:
        return True
    return max(map(len, text.split()), default=0) >= _SHORTEST


def scrub_value(value: Any, *, depth: int = 0) -> tuple[Any, int]:
    """Remove secrets from JSON data at any depth: by the names of its fields, and from every string in it.

    Gives new data (what holds no secret is the same object) and how many were removed.
    """
    if depth > 64:
        return "[secret:too_deep]", 1
    if isinstance(value, str):
        return scrub_text(value)
    if isinstance(value, Mapping):
        count, changed = 0, {}
        for key, inner in value.items():
            if names_secret(str(key)) and _holds_value(inner):
                changed[key] = "[secret:named]"
                count += 1
                continue
            clean_key, in_key = scrub_text(key) if isinstance(key, str) else (key, 0)
            changed[clean_key], found = scrub_value(inner, depth=depth + 1)
            count += found + in_key
        return (changed, count) if count else (value, 0)
    if isinstance(value, (list, tuple)):
        pairs = [scrub_value(inner, depth=depth + 1) for inner in value]
        count = sum(found for _, found in pairs)
        return ([inner for inner, _ in pairs], count) if count else (value, 0)
    return value, 0


def names_secret(name: str) -> bool:
    """Whether a field of this name holds a secret: ``password``, ``apiKey``, ``X-Auth-Token``, not ``max_tokens``."""
    spaced = _CAMEL.sub("_", name)
    return _NAME.search(spaced) is not None and _HARMLESS.search(spaced) is None


def _holds_value(value: Any) -> bool:
    if value is None or isinstance(value, bool) or value == "":
        return False
    return not (isinstance(value, str) and value.startswith("[secret:"))


def _is_value(name: str, sign: str, value: str) -> bool:
    """Whether what stands behind a secret's name is one: behind ``is`` a plain word is not ("my password is long")."""
    if not names_secret(_CAMEL.sub("_", name)):
        return False
    if any(mark in sign for mark in ":=：") or "は" in sign or "是" in sign:
        return len(value) >= 4 and not value.startswith(("http://", "https://"))
    return any(character.isdigit() for character in value) or any(not c.isalnum() for c in value.strip("-"))


def _looks_random(run: str) -> bool:
    if _ORDINARY.match(run) or run.count("-") + run.count("_") + run.count("/") > len(run) // 5:
        return False
    kinds = any(c.islower() for c in run) + any(c.isupper() for c in run) + any(c.isdigit() for c in run)
    return kinds == 3 and entropy(run) >= _ENTROPY


def entropy(text: str) -> float:
    """Shannon entropy of a text's characters, bits a character. Source: Shannon, 1948, theorem 2."""
    total = len(text)
    return -sum(n / total * math.log2(n / total) for n in Counter(text).values()) if total else 0.0
