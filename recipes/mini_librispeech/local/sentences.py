"""A small grammar of literary English; sentences are asked for by length in words."""

from local import lexicon as lex


def pick(rng, items):
    """One of `items`, uniformly."""
    return items[int(rng.integers(len(items)))]


def chance(rng, p):
    """True with probability p."""
    return bool(rng.random() < p)


def plural(noun):
    """HOUSE -> HOUSES, STORY -> STORIES, CHILD -> CHILDREN."""
    if noun in lex.IRREGULAR_PLURALS:
        return lex.IRREGULAR_PLURALS[noun]
    if noun.endswith("Y") and noun[-2] not in "AEIOU":
        return noun[:-1] + "IES"
    return noun + ("ES" if noun.endswith(("CH", "SH", "S", "X")) else "S")


def number(rng):
    """A number from two to some hundreds, in words."""
    kind = int(rng.integers(4))
    if kind == 0:
        return [pick(rng, lex.UNITS[1:])]
    if kind == 1:
        return [pick(rng, lex.TEENS)]
    if kind == 2:
        return [pick(rng, lex.TENS)] + (
            [pick(rng, lex.UNITS)] if chance(rng, 0.7) else []
        )
    return [pick(rng, lex.UNITS[1:]), "HUNDRED"] + (
        ["AND", pick(rng, lex.TENS)] if chance(rng, 0.4) else []
    )


def digits(rng):
    """Three to eight digits in a row, repetitions included."""
    return [pick(rng, lex.UNITS) for _ in range(int(rng.integers(3, 9)))]


def adjectives(rng):
    """None to three adjectives, the last two sometimes joined by AND."""
    n = int(rng.choice([0, 1, 2, 3], p=[0.45, 0.35, 0.14, 0.06]))
    words = [pick(rng, lex.ADJECTIVES) for _ in range(n)]
    return words[:-1] + ["AND"] + words[-1:] if n > 1 and chance(rng, 0.4) else words


def common_noun_phrase(rng):
    """THE TALL GREY HOUSE, FORTY TWO GOLDEN COINS."""
    kind = rng.random()
    adjs, noun = adjectives(rng), pick(rng, lex.NOUNS)
    if kind < 0.15:
        return number(rng) + adjs + [plural(noun)]
    if kind < 0.3:
        return [pick(rng, lex.PLURAL_DETERMINERS)] + adjs + [plural(noun)]
    det = pick(rng, lex.DETERMINERS)
    rest = adjs + [noun]
    return ["AN" if det == "A" and rest[0][0] in "AEIO" else det] + rest


def noun_phrase(rng):
    """A name, a pronoun, or a common noun, sometimes with OF and another."""
    kind = rng.random()
    if kind < 0.15:
        return [pick(rng, lex.NAMES)] + (
            ["AND", pick(rng, lex.NAMES)] if chance(rng, 0.25) else []
        )
    if kind < 0.2:
        return ["OLD" if chance(rng, 0.5) else "YOUNG", pick(rng, lex.NAMES)]
    words = common_noun_phrase(rng)
    return words + (["OF"] + common_noun_phrase(rng) if chance(rng, 0.12) else [])


def subject(rng):
    """A noun phrase or a pronoun, sometimes with a relative clause."""
    if chance(rng, 0.25):
        return [pick(rng, lex.PRONOUNS)]
    words = noun_phrase(rng)
    return words + (relative(rng) if chance(rng, 0.12) else [])


def relative(rng):
    """WHO CARRIED THE LAMP, THAT MY BROTHER SOLD."""
    if chance(rng, 0.5):
        return [
            "WHO" if chance(rng, 0.5) else "WHICH",
            pick(rng, lex.TRANSITIVE),
        ] + noun_phrase(rng)
    return ["THAT"] + noun_phrase(rng) + [pick(rng, lex.TRANSITIVE)]


def place_phrase(rng):
    """IN LONDON, BEHIND THE OLD WALL."""
    if chance(rng, 0.25):
        return [pick(rng, ["IN", "NEAR", "FROM"]), pick(rng, lex.PLACES)]
    return [pick(rng, lex.PREPOSITIONS)] + common_noun_phrase(rng)


def noun_list(rng):
    """Three to six noun phrases or names or adjectives in a row."""
    n = int(rng.integers(3, 7))
    make = pick(
        rng,
        [
            lambda: [pick(rng, lex.NAMES)],
            lambda: [plural(pick(rng, lex.NOUNS))],
            lambda: common_noun_phrase(rng),
        ],
    )
    items = [make() for _ in range(n)]
    return [word for item in items[:-1] for word in item] + ["AND"] + items[-1]


def clause(rng):
    """One clause with its verb."""
    kind = rng.random()
    if kind < 0.06:
        return ["THE", "NUMBER", "OF", "THE", pick(rng, lex.NOUNS), "WAS"] + digits(rng)
    if kind < 0.12:
        return (
            ["THERE", "WERE"]
            + number(rng)
            + adjectives(rng)
            + [plural(pick(rng, lex.NOUNS))]
            + place_phrase(rng)
        )
    adverb = [pick(rng, lex.ADVERBS)] if chance(rng, 0.2) else []
    if kind < 0.2:
        pronoun = chance(rng, 0.3)
        who = (
            [pick(rng, lex.PRONOUNS)]
            if pronoun
            else [pick(rng, lex.DETERMINERS[3:])] + [pick(rng, lex.NOUNS)]
        )
        who = who if who[0] != "A" else ["THE"] + who[1:]
        verb = "WERE" if who[0] in ("WE", "THEY", "YOU") else "WAS"
        return (
            who
            + [verb]
            + adverb
            + [pick(rng, lex.FEELINGS)]
            + (["AND", pick(rng, lex.FEELINGS)] if chance(rng, 0.4) else [])
        )
    who = subject(rng)
    if kind < 0.42:
        return (
            who
            + adverb
            + [pick(rng, lex.INTRANSITIVE)]
            + (place_phrase(rng) if chance(rng, 0.7) else [])
        )
    if kind < 0.5:
        return who + [pick(rng, lex.TRANSITIVE)] + noun_list(rng)
    return (
        who
        + adverb
        + [pick(rng, lex.TRANSITIVE)]
        + noun_phrase(rng)
        + (place_phrase(rng) if chance(rng, 0.35) else [])
    )


def extension(rng):
    """Words that carry a sentence on: another clause, a place, a time, a saying."""
    kind = rng.random()
    if kind < 0.5:
        return [pick(rng, lex.LINKS)] + clause(rng)
    if kind < 0.7:
        return place_phrase(rng)
    if kind < 0.85:
        return pick(rng, lex.TIMES).split()
    return ["AND"] + [pick(rng, lex.INTRANSITIVE)] + place_phrase(rng)


def short_phrase(rng):
    """Two to four words without a full clause."""
    kind = int(rng.integers(5))
    if kind == 0:
        return [pick(rng, lex.PRONOUNS + lex.NAMES), pick(rng, lex.INTRANSITIVE)]
    if kind == 1:
        return common_noun_phrase(rng)
    if kind == 2:
        return place_phrase(rng)
    if kind == 3:
        return number(rng) + [plural(pick(rng, lex.NOUNS))]
    return [pick(rng, lex.NAMES), pick(rng, lex.INTRANSITIVE), pick(rng, lex.ADVERBS)]


def draw_length(rng):
    """Words per sentence: flat from 2 to 24, and a tenth flat from 20 to 35."""
    return int(rng.integers(20, 36)) if chance(rng, 0.1) else int(rng.integers(2, 25))


def sentence(rng, length):
    """A sentence of exactly `length` words, by rejection."""
    while True:
        if length < 5:
            words = short_phrase(rng)
        else:
            words = ["IT", "IS", "SAID", "THAT"] if chance(rng, 0.02) else []
            if chance(rng, 0.12):
                words = [pick(rng, lex.NAMES), pick(rng, lex.SAYING), "THAT"]
            words = words + clause(rng)
        while len(words) < length:
            words = words + extension(rng)
        if len(words) == length:
            return words


def sentences(rng, count, banned=frozenset()):
    """`count` distinct sentences, none of more than four words among `banned`."""
    out, seen = [], set()
    while len(out) < count:
        text = " ".join(sentence(rng, draw_length(rng)))
        if text in seen or (text in banned and text.count(" ") >= 4):
            continue
        seen.add(text)
        out.append(text)
    return out


def vocabulary():
    """Every word of the lexicon that a sentence can hold, plurals included, sorted."""
    lists = [
        value
        for name, value in vars(lex).items()
        if name.isupper() and isinstance(value, list)
    ]
    words = {word for items in lists for item in items for word in item.split()} | {
        "HUNDRED",
        "OF",
        "WHO",
        "WHICH",
    }
    return sorted(words | {plural(noun) for noun in lex.NOUNS})


def word_strings(rng, count, longest=4):
    """`count` strings of one to `longest` words, drawn evenly from the vocabulary."""
    words = vocabulary()
    return [
        " ".join(pick(rng, words) for _ in range(int(rng.integers(1, longest + 1))))
        for _ in range(count)
    ]
