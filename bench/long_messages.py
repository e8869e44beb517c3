"""A generated set of long assistant messages with known evidence: the counterweight to short chat turns.

Eight conversations, each about ten undertakings over eight sessions. The person asks in a line or two; the assistant
answers at length (about 250 to 500 words of advice on several aspects), and somewhere inside stands one decision. A
question asks for a decision in other words; its evidence is the message that holds it, and where the decision was
changed later, both messages. Everything follows from the seed, so the set is the same on every machine. No setting of
the retrieval room was chosen on it; it is there to show what a setting costs on long texts.

    python bench/long_messages.py                 # print a sample and the sizes
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

SEED = 20_250_101

# What is undertaken, and words of its field that a long answer about it uses.
FIELDS = {
    "bakery website": "bread sourdough croissant oven homepage menu opening checkout photos",
    "kitchen renovation": "cabinets plumbing tiles worktop sink hob electrician ventilation drawers",
    "marathon training": "running pace kilometres shoes recovery stretching intervals hydration heart",
    "thesis chapter": "literature argument footnotes references methodology draft professor hypothesis citation",
    "vegetable garden": "tomatoes compost seedlings soil watering beans mulch slugs greenhouse",
    "podcast launch": "episodes microphone listeners editing interview jingle audience recording feed",
    "tenant portal": "login rent repairs landlord documents permissions notifications dashboard residents",
    "sensor firmware": "battery interrupt sampling calibration flash bootloader temperature radio voltage",
    "charity auction": "donors bids raffle gala fundraising auctioneer artworks tickets catalogue",
    "language course": "vocabulary grammar pronunciation verbs flashcards teacher conversation listening dictionary",
    "wedding trip": "flights hotel beach luggage passports honeymoon ferry itinerary island",
    "invoice importer": "parser totals currency ledger supplier scanning validation rows accounting",
    "board game night": "dice cards snacks players rules strategy rounds table score",
    "choir festival": "singers rehearsal conductor soprano stage concert harmony audience scores",
    "bike workshop": "wheels brakes chain spokes gears tyres tools frame pump",
    "payment gateway": "cards refunds fraud settlement webhooks encryption merchants transactions chargeback",
    "photo archive": "negatives scanner albums metadata prints storage backup portraits duplicates",
    "community library": "books shelves readers lending catalogue donations novels children reading",
    "rooftop solar plan": "panels inverter roof kilowatt sunlight installer wiring subsidy meter",
    "recipe newsletter": "subscribers ingredients seasonal cooking soup inbox photographs desserts spices",
    "puppy schooling": "leash treats barking obedience crate commands walks toys chewing",
    "data warehouse": "tables queries pipelines columns partition reports analysts schema loading",
    "hiking club": "trails boots maps summit backpack weather compass members huts",
    "school play": "actors costumes scenery curtain lines audience director props pupils",
}
UNDERTAKINGS = tuple(FIELDS)

# aspect: (words of the statement, words of the question, values)
ASPECTS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "supplier": (
        ("For the {u} I would go with {v} as the supplier", "{v} should deliver the materials of the {u}"),
        (
            "Who was going to provide the goods for the {u}?",
            "Which vendor did you suggest for my {u}?",
            "Which supplier was it for the {u}?",
            "What did you say about materials for the {u}?",
        ),
        ("Harlow Brothers", "Nordvik", "Green Anvil", "Castellan", "Petit Moulin", "Brightwater Co-op"),
    ),
    "budget": (
        ("we settled on a budget of {v} for the {u}", "the spending limit for the {u} is {v}"),
        (
            "How much money can go into the {u}?",
            "What sum did we allow for the {u}?",
            "What is the budget of the {u}?",
            "Remind me of the spending limit we set for the {u}.",
        ),
        ("4,200 euros", "850 dollars", "12,500 euros", "2,300 pounds", "640 euros", "9,750 dollars"),
    ),
    "deadline": (
        ("the {u} has to be finished by {v}", "{v} is the deadline of the {u}"),
        (
            "When must the {u} be ready?",
            "Until what date do I have to complete the {u}?",
            "What is the deadline of the {u}?",
            "By when should the {u} be finished?",
        ),
        ("14 June", "the second week of October", "3 March", "Ascension Day", "28 November", "the end of July"),
    ),
    "place": (
        ("the best venue for the {u} is {v}", "we will hold the first meeting about the {u} at {v}"),
        (
            "Where will people gather for the {u}?",
            "Which location was recommended for my {u}?",
            "What venue fits the {u} best?",
            "Where is the first meeting about the {u}?",
        ),
        ("the old customs house", "Room 214", "Linden Street 9", "the mill courtyard", "Pier 3", "the annex upstairs"),
    ),
    "tool": (
        ("use {v} to keep track of the {u}", "{v} is the right software for the {u}"),
        (
            "With which program should I manage the {u}?",
            "What application did you advise for the {u}?",
            "What should I use to keep track of the {u}?",
            "Which software is right for the {u}?",
        ),
        ("Obsidian", "PostgreSQL", "Airtable", "a plain spreadsheet", "Grafana", "Notion"),
    ),
    "person": (
        ("{v} should lead the {u}", "ask {v} to be responsible for the {u}"),
        (
            "Who is in charge of the {u}?",
            "Whom did we pick to head the {u}?",
            "Who should lead the {u}?",
            "Who is responsible for the {u}?",
        ),
        ("Imke", "Mr Okafor", "Benedikt", "Rosalind", "Tomasz", "Mrs Delacroix"),
    ),
    "risk": (
        ("the biggest danger for the {u} is {v}", "{v} could ruin the {u}, so plan for it"),
        (
            "What might go wrong with the {u}?",
            "Which threat to the {u} did you warn me about?",
            "What is the biggest danger for the {u}?",
            "What could ruin the {u}?",
        ),
        ("late frost", "a missing permit", "battery drain", "stage fright", "duplicate records", "knee pain"),
    ),
    "rhythm": (
        ("work on the {u} {v}", "the schedule of the {u} is {v}"),
        (
            "How often should I spend time on the {u}?",
            "What frequency was proposed for the {u}?",
            "When do I work on the {u}?",
            "What is the schedule of the {u}?",
        ),
        (
            "every Tuesday evening",
            "twice a week",
            "on alternate Saturdays",
            "ten minutes a day",
            "once a month",
            "each weekday at seven",
        ),
    ),
}

ADVICE = (
    "Start by writing down what success would look like, because a clear picture keeps later choices honest",
    "Break the work into pieces that can be finished in one sitting, and keep a visible list of what is left",
    "Talk to somebody who has done this before; an hour of their experience saves a week of trial and error",
    "Leave some slack, since nearly everything takes longer than the first estimate says",
    "It helps to review progress regularly and to drop what no longer serves the purpose",
    "Compare at least three offers and ask each the same questions, so that the answers can be compared",
    "Keep receipts, notes and photographs in one folder, because you will look for them later",
    "If two goals conflict, decide early which one wins, and tell everybody involved",
    "A small pilot shows most of the problems at a tenth of the cost",
    "Do not forget the legal side: permissions, insurance and data protection are easier to arrange at the beginning",
    "Think about who maintains the result once the excitement is over",
    "Celebrate the milestones; motivation is a resource like any other",
    "When the deadline comes close, cut the scope and not the quality",
    "The location matters more than people expect, for access, for noise and for the mood of the participants",
    "Money is best tracked weekly, with a reserve of about ten percent for surprises",
    "Choose software that your helpers already know, even when another program looks better on paper",
    "A supplier who answers quickly before the order usually answers quickly after it",
    "Name one responsible person for each task, since shared responsibility tends to mean none",
    "Write a short summary after each meeting and send it to everybody on the same day",
    "Look at the weather, the holidays and the school calendar before you fix a date",
    "Measure first, then change one thing at a time, otherwise you will not know what helped",
    "Good lighting, simple signs and enough chairs solve half of the complaints",
    "Ask for feedback while there is still time to act on it",
    "Keep the first version boring and reliable; polish comes afterwards",
)

FIELD_ADVICE = (
    "With {w1} and {w2} it pays to begin early, because the {w3} will depend on both",
    "Many people underestimate the {w1}, although the {w2} is what everybody notices",
    "Look after the {w1} before you touch the {w2}",
    "If the {w1} turns out well, the {w2} and the {w3} are much easier",
    "A simple list for {w1}, {w2} and {w3} is enough at the beginning",
    "Good {w1} costs more than cheap {w1}, yet it saves trouble with the {w2}",
    "Test the {w1} on a small scale, and only then go on to the {w2}",
    "Have a look at how others arrange their {w1}; the {w2} is often the clever part",
)

HEADS = ("Planning", "Money", "People", "Tools", "Timing", "Risks", "Place", "Routine", "Next steps")

ASKS = (
    "Can you help me think through the {a} of the {u}?",
    "I'm stuck with the {u}. What do you think?",
    "Let's talk about the {u} again.",
    "Any advice on the {a}?",
    "Please go on with the next point of the {u}.",
    "What else should I consider here?",
    "Could you go into more detail?",
    "I have half an hour now. Where were we with the {u}?",
)

THANKS = ("Thanks, that helps a lot.", "Okay, I'll try that.", "Good points, let me sleep on it.", "Great, noted.")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a generated conversation."""

    ref: str
    speaker: str
    text: str
    session: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the refs of the messages that answer it."""

    text: str
    evidence: tuple[str, ...]
    kind: str
    """single, updated or multi."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation and its questions."""

    name: str
    messages: tuple[Message, ...]
    questions: tuple[Question, ...]


def _answer(rng: random.Random, undertaking: str, decision: str, others: list[str]) -> str:
    """Write a long answer: headed paragraphs of advice, with the decision inside one of them."""
    paragraphs = []
    count = rng.randint(4, 7)
    place = rng.randrange(count)
    for number in range(count):
        sentences = rng.sample(ADVICE, rng.randint(1, 3))
        for template in rng.sample(FIELD_ADVICE, rng.randint(2, 3)):
            words = rng.sample(FIELDS[undertaking].split(), 3)
            sentences.append(template.format(w1=words[0], w2=words[1], w3=words[2]))
        rng.shuffle(sentences)
        if rng.random() < 0.5:
            sentences.insert(rng.randrange(len(sentences)), f"Much of this is true of the {rng.choice(others)} as well")
        if rng.random() < 0.6:
            sentences.insert(rng.randrange(len(sentences)), f"The {undertaking} is no exception here")
        if number == place:
            sentences.insert(rng.randrange(1, len(sentences)), decision[0].upper() + decision[1:])
        paragraphs.append(f"**{rng.choice(HEADS)}**: " + ". ".join(sentences) + ".")
    return "\n\n".join(paragraphs)


def _conversation(number: int) -> Conversation:
    rng = random.Random(SEED + number)
    undertakings = rng.sample(UNDERTAKINGS, 10)
    pairs = [(u, a) for u in undertakings for a in rng.sample(list(ASPECTS), 7)]
    rng.shuffle(pairs)
    updated = rng.sample(pairs, 12)
    plan = pairs + updated
    start = datetime(2024, 1, 8, 18, 0, tzinfo=UTC) + timedelta(days=number)
    messages: list[Message] = []
    evidence: dict[tuple[str, str], list[str]] = {}
    per_session = -(-len(plan) // 8)
    for index, (undertaking, aspect) in enumerate(plan):
        session = index // per_session
        at = start + timedelta(days=9 * session, minutes=4 * (index % per_session))
        statements, _, values = ASPECTS[aspect]
        decision = rng.choice(statements).format(u=undertaking, v=rng.choice(values))
        others = [u for u in undertakings if u != undertaking]
        lines = [("user", rng.choice(ASKS).format(a=aspect, u=undertaking))]
        lines.append(("assistant", _answer(rng, undertaking, decision, others)))
        if rng.random() < 0.4:
            lines.append(("user", rng.choice(THANKS)))
        for offset, (speaker, text) in enumerate(lines):
            ref = f"c{number}m{len(messages)}"
            messages.append(Message(ref, speaker, text, f"s{session}", at + timedelta(minutes=offset)))
            if speaker == "assistant":
                evidence.setdefault((undertaking, aspect), []).append(ref)
    questions = [
        Question(rng.choice(ASPECTS[a][1]).format(u=u), tuple(refs), "updated" if len(refs) > 1 else "single")
        for (u, a), refs in evidence.items()
    ]
    for u in rng.sample(undertakings, 4):
        refs = tuple(ref for (name, _), held in evidence.items() if name == u for ref in held)
        questions.append(Question(f"Summarise everything that we decided about the {u}.", refs, "multi"))
    return Conversation(f"long-{number}", tuple(messages), tuple(questions))


def generate(count: int = 8) -> list[Conversation]:
    """Make the first ``count`` conversations of the set."""
    return [_conversation(number) for number in range(count)]


if __name__ == "__main__":
    made = generate()
    print(made[0].messages[1].text)
    words = [len(m.text.split()) for c in made for m in c.messages if m.speaker == "assistant"]
    print(
        f"\n{len(made)} conversations, {sum(len(c.messages) for c in made)} messages, "
        f"{sum(len(c.questions) for c in made)} questions, assistant words {min(words)}-{max(words)}"
    )
