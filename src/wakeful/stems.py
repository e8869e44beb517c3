"""Stem English words: ``running`` and ``runs`` meet in ``run``.

The stems are kept in every store's index, so they must be the same in every process that opens it: the stemmer is part
of the library and not an option. Words of other languages pass through with little harm, since only English suffixes
are cut and only behind the first vowel and consonant.

Source: the Porter2 algorithm, https://snowballstem.org/algorithms/english/stemmer.html (rules R1, R2, steps 0 to 5).
"""

from __future__ import annotations

import re

_VOWELS = "aeiouy"
_R1_PREFIX = re.compile(r"gener|commun|arsen|past|univers|later|emerg|organ|inter")
_REGION = re.compile(r"[aeiouy][^aeiouy]")
_SHORT_END = re.compile(r"(?:^|.*[^aeiouy])[aeiouy][^aeiouywxY]$|^[aeiouy][^aeiouy]$|^past$", re.DOTALL)
_HAS_VOWEL = re.compile(r"[aeiouy]")
_DOUBLES = ("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")
_LI_BEFORE = "cdeghkmnrt"

_EXCEPTIONS = {
    "skis": "ski",
    "skies": "sky",
    "idly": "idl",
    "gently": "gentl",
    "ugly": "ugli",
    "early": "earli",
    "only": "onli",
    "singly": "singl",
} | {word: word for word in ("sky", "news", "howe", "atlas", "cosmos", "bias", "andes")}

_AFTER_1A = frozenset(("inning", "outing", "canning", "herring", "earring", "evening", "proceed", "exceed", "succeed"))

_STEP2 = tuple(
    sorted(
        {
            "tional": "tion",
            "enci": "ence",
            "anci": "ance",
            "abli": "able",
            "entli": "ent",
            "izer": "ize",
            "ization": "ize",
            "ational": "ate",
            "ation": "ate",
            "ator": "ate",
            "alism": "al",
            "aliti": "al",
            "alli": "al",
            "fulness": "ful",
            "ousli": "ous",
            "ousness": "ous",
            "iveness": "ive",
            "iviti": "ive",
            "biliti": "ble",
            "bli": "ble",
            "fulli": "ful",
            "lessli": "less",
            "ogist": "og",
            "ogi": "og",
            "li": "",
        }.items(),
        key=lambda pair: -len(pair[0]),
    )
)
_STEP3 = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("alize", "al"),
    ("icate", "ic"),
    ("iciti", "ic"),
    ("ative", ""),
    ("ical", "ic"),
    ("ness", ""),
    ("ful", ""),
)
_STEP4 = (
    *("ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize"),
    *("ion", "al", "er", "ic"),
)


def english_stem(word: str) -> str:
    """Cut the English suffixes of a lower-case word. Words under three letters are their own stem."""
    if len(word) < 3:
        return word
    fixed = _EXCEPTIONS.get(word)
    if fixed is not None:
        return fixed
    word = _mark_consonant_y(word.lstrip("'"))
    r1, r2 = _regions(word)
    for suffix in ("'s'", "'s", "'"):
        if word.endswith(suffix):
            word = word[: -len(suffix)]
            break
    word = _plural(word)
    if word in _AFTER_1A:
        return word
    word = _past(word, r1)
    if len(word) > 2 and word[-1] in "yY" and word[-2] not in _VOWELS:
        word = word[:-1] + "i"
    word = _derived(word, r1)
    word = _adjective(word, r1, r2)
    word = _residue(word, r1, r2)
    return word.replace("Y", "y")


def _mark_consonant_y(word: str) -> str:
    """Write ``Y`` for a y that begins the word or follows a vowel: it counts as a consonant."""
    if "y" not in word:
        return word
    out: list[str] = []
    for place, letter in enumerate(word):
        if letter == "y" and (place == 0 or out[-1] in _VOWELS):
            letter = "Y"
        out.append(letter)
    return "".join(out)


def _regions(word: str) -> tuple[int, int]:
    """Where R1 and R2 begin: behind the first, then the next, consonant that follows a vowel."""
    prefix = _R1_PREFIX.match(word)
    if prefix:
        r1 = prefix.end()
    else:
        found = _REGION.search(word)
        r1 = found.end() if found else len(word)
    found = _REGION.search(word, r1)
    return r1, found.end() if found else len(word)


def _plural(word: str) -> str:
    """Step 1a: plurals."""
    if not word.endswith(("s", "ied")):
        return word
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith(("us", "ss")):
        return word
    if word.endswith("s") and _HAS_VOWEL.search(word, 0, len(word) - 2):
        return word[:-1]
    return word


def _past(word: str, r1: int) -> str:
    """Step 1b: past tenses and participles."""
    for suffix in ("eedly", "eed"):
        if word.endswith(suffix):
            return word[: -len(suffix)] + "ee" if len(word) - len(suffix) >= r1 else word
    for suffix in ("ingly", "edly", "ing", "ed"):
        if not word.endswith(suffix):
            continue
        stem = word[: -len(suffix)]
        if not _HAS_VOWEL.search(stem):
            return word
        if suffix in ("ing", "ingly") and len(stem) == 2 and stem[1] == "y":
            return stem[0] + "ie"
        if stem.endswith(("at", "bl", "iz")):
            return stem + "e"
        if stem.endswith(_DOUBLES):
            return stem if len(stem) == 3 and stem[0] in "aeo" else stem[:-1]
        if len(stem) <= r1 and _SHORT_END.match(stem):
            return stem + "e"
        return stem
    return word


def _derived(word: str, r1: int) -> str:
    """Step 2: derived endings, only inside R1."""
    for suffix, instead in _STEP2:
        if not word.endswith(suffix):
            continue
        stem = word[: -len(suffix)]
        if len(stem) < r1:
            return word
        if (suffix == "ogi" and not stem.endswith("l")) or (suffix == "li" and stem[-1:] not in _LI_BEFORE):
            return word
        return stem + instead
    return word


def _adjective(word: str, r1: int, r2: int) -> str:
    """Step 3: adjective endings."""
    for suffix, instead in _STEP3:
        if word.endswith(suffix):
            stem = word[: -len(suffix)]
            if len(stem) < r1 or (suffix == "ative" and len(stem) < r2):
                return word
            return stem + instead
    return word


def _residue(word: str, r1: int, r2: int) -> str:
    """Steps 4 and 5: what is left behind R2, and a last e or double l."""
    for suffix in _STEP4:
        if word.endswith(suffix):
            stem = word[: -len(suffix)]
            if len(stem) >= r2 and (suffix != "ion" or stem.endswith(("s", "t"))):
                word = stem
            break
    if word.endswith("e"):
        stem = word[:-1]
        if len(stem) >= r2 or (len(stem) >= r1 and not _SHORT_END.match(stem)):
            return stem
    elif word.endswith("ll") and len(word) - 1 >= r2:
        return word[:-1]
    return word
