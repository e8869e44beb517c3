"""Tell what a query asks for, without a model: to know something, or to have something done.

Signs are counted with weights and compared; a close result is ``ambiguous``. Words are matched after NFKC and case
folding, by whole word where the script has spaces and by substring where it has none. The word lists cover English,
German, French, Spanish, Portuguese, Italian, Russian, Ukrainian, Chinese, Japanese and Korean.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

from wakeful.assembly.context import IntentVerdict, Label

SURE = 0.75
"""Confidence from which an enforced verdict may skip layers."""

MARGIN = 0.5
"""A lead below this weight is ambiguous."""

QUESTION_WORDS = frozenset(
    """what which who whom whose when where why how is are was were do does did can could
    was welche welcher wer wann wo warum wie wieso qui que quoi quand où pourquoi comment quel quelle
    qué quién cuándo dónde cómo cuál por quem quando onde como qual chi cosa dove perché
    что кто когда где почему зачем как какой какая какие сколько що хто коли де чому як який скільки""".split()
)
ACTION_WORDS = frozenset(
    """add apply assign book buy call cancel change close compose copy create delete deploy disable download draft email
    enable export fix forward generate install invite make merge move open order pay post print publish push refund
    remind remove rename replace reply reschedule reset restart run save schedule send set share start stop submit
    transfer translate turn update upgrade upload write
    sende schicke buche storniere erstelle lösche ändere kaufe bestelle starte stoppe speichere öffne schreibe
    verschiebe envoie envoyez réserve annule crée supprime modifie achète commande lance arrête enregistre écris
    envía reserva cancela crea borra elimina cambia compra pide inicia guarda escribe
    envie reserve cancele crie apague mude compre peça inicie salve escreva
    invia prenota annulla elimina cambia compra ordina avvia salva scrivi
    отправь отправьте забронируй отмени отмените создай создайте удали удалите измени измените купи закажи запусти
    останови сохрани напиши перенеси надішли забронюй скасуй створи видали зміни купи замов запусти збережи""".split()
)
RECALL_WORDS = frozenset(
    """tell explain describe list show remember recall summarize compare know mean find
    erkläre zeige nenne explique montre liste explica muestra explique mostre spiega mostra
    расскажи объясни покажи напомни поясни розкажи""".split()
)
QUESTION_PARTS = tuple(
    "什么 怎么 为什么 哪 谁 多少 吗 何 なに どこ いつ 誰 なぜ ですか 무엇 언제 어디 누가 왜 까요".split()
)
ACTION_PARTS = tuple(
    """发送 预订 取消 创建 删除 修改 购买 安排 请把 送って 予約して キャンセルして 作成して 削除して 変更して
    보내 예약해 취소해 만들어 삭제해 변경해""".split()
)
POLITE = frozenset("please bitte por favor svp s'il пожалуйста будь ласка".split())

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


def classify(query: str) -> IntentVerdict:
    """Classify a query. Deterministic; linear in its length; an empty query is ``ambiguous``."""
    text = unicodedata.normalize("NFKC", query).casefold().strip()
    words = _WORD.findall(text[:2_000])
    knowledge, action = 0.0, 0.0
    reasons: list[str] = []
    first = next((word for word in words if word not in POLITE), "")
    if first in ACTION_WORDS:
        action += 1.5
        reasons.append(f"imperative:{first}")
    elif first in QUESTION_WORDS:
        knowledge += 1.0
        reasons.append(f"question-word:{first}")
    elif first in RECALL_WORDS:
        knowledge += 1.0
        reasons.append(f"ask-to-tell:{first}")
    for word in words[1:]:
        if word in ACTION_WORDS and first not in ACTION_WORDS:
            action += 0.5
            reasons.append(f"action-word:{word}")
            break
    if text.endswith(("?", "؟", "？")) or "¿" in text:
        knowledge += 0.75
        reasons.append("question-mark:?")
    for part in QUESTION_PARTS:
        if part in text:
            knowledge += 1.0
            reasons.append(f"question-part:{part}")
            break
    for part in ACTION_PARTS:
        if part in text:
            action += 1.25
            reasons.append(f"action-part:{part}")
            break
    if re.match(r"(can|could|would|will) you\b", text) and action:
        action += 2.0
        reasons.append("request:can you")
    return _verdict(knowledge, action, tuple(reasons))


def enforced(verdict: IntentVerdict) -> IntentVerdict:
    """The verdict with what it lets be skipped: an action needs no episodes of the past."""
    if verdict.label != "action" or verdict.confidence < SURE:
        return verdict
    return replace(verdict, skip_layers=("episodic",))


def _verdict(knowledge: float, action: float, reasons: tuple[str, ...]) -> IntentVerdict:
    total = knowledge + action
    if not total or abs(knowledge - action) < MARGIN:
        return IntentVerdict("ambiguous", 0.0 if not total else 0.5, reasons)
    label: Label = "knowledge" if knowledge > action else "action"
    return IntentVerdict(label, max(knowledge, action) / total, reasons)
