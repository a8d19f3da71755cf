"""A synchronous grammar: each rule says one thing in two languages.

The source side of a rule is fixed, and for the English side there are wordings with
probabilities: what is said has one source text and many English ones.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

_LINE = re.compile(r"([A-Z]+) ?(\d*): (.+) -> (.+)")
_WORDING = re.compile(r"(?:(\d+) )?(.+)")

Side = tuple[str, ...]  # words, and in capitals symbols


@dataclass(frozen=True)
class Rule:
    """What a symbol can stand for."""

    weight: int
    source: Side
    wordings: Mapping[Side, int]  # English sides and their weights


@dataclass(frozen=True)
class Meaning:
    """A rule and, for each of its symbols, what stands there."""

    rule: Rule
    parts: Mapping[str, "Meaning"]

    def source(self) -> str:
        """Return the source text."""
        return self._text(self.rule.source, Meaning.source)

    def english(self, rng: Random) -> str:
        """Return an English text, each wording drawn by its weight."""
        wording = _drawn(rng, self.rule.wordings)
        return self._text(wording, lambda part: part.english(rng))

    def likeliest(self) -> str:
        """Return the English text that has the likeliest wording of each part."""
        wording = max(self.rule.wordings, key=self.rule.wordings.get)
        return self._text(wording, Meaning.likeliest)

    def _text(self, side: Side, say: Callable[["Meaning"], str]) -> str:
        parts = self.parts
        return " ".join(say(parts[item]) if item in parts else item for item in side)


class Grammar:
    """The rules of each symbol."""

    def __init__(self, lines: Iterable[str], name: str = "grammar"):
        """Read the rules; a line that is empty or begins with # is none.

        Args:
            lines: ``SYMBOL weight: source side -> weight English side / ...``, where a
                weight that is not there is 1.
            name: What errors call the lines.

        Raises:
            ValueError: Names the line that is not a rule, or the symbol without one.
        """
        self.rules: dict[str, list[Rule]] = defaultdict(list)
        for number, line in enumerate(lines, start=1):
            if not line.strip() or line.startswith("#"):
                continue
            try:
                symbol, rule = _read_rule(line.strip())
            except ValueError as e:
                raise ValueError(
                    f"{name}, line {number}: {e}: {line.strip()}"
                ) from None
            self.rules[symbol].append(rule)
        rules = [rule for rules in self.rules.values() for rule in rules]
        used = {_kind(symbol) for rule in rules for symbol in _symbols(rule.source)}
        missing = sorted(used - self.rules.keys())
        if missing:
            raise ValueError(f"{name}: there is no rule for {', '.join(missing)}")

    @classmethod
    def read(cls, path: Path) -> "Grammar":
        """Read a file of rules; see the constructor."""
        return cls(path.read_text(encoding="utf-8").splitlines(), str(path))

    def draw(self, rng: Random, symbol: str = "SENTENCE") -> Meaning:
        """Return a meaning, each rule drawn by its weight among those of its symbol."""
        rules = self.rules[symbol]
        [rule] = rng.choices(rules, [rule.weight for rule in rules])
        parts = {s: self.draw(rng, _kind(s)) for s in _symbols(rule.source)}
        return Meaning(rule, parts)


def _drawn(rng: Random, wordings: Mapping[Side, int]) -> Side:
    return rng.choices(list(wordings), list(wordings.values()))[0]


def _read_rule(line: str) -> tuple[str, Rule]:
    """Return the symbol and the rule of a line."""
    match = _LINE.fullmatch(line)
    if not match:
        raise ValueError("this is no rule")
    symbol, weight, source, english = match.groups()
    wordings = dict(map(_read_wording, english.split(" / ")))
    rule = Rule(int(weight or 1), tuple(source.split()), wordings)
    symbols = Counter(_symbols(rule.source))
    if any(count > 1 for count in symbols.values()):
        raise ValueError("a symbol stands twice in the source side: number the two")
    if any(Counter(_symbols(side)) != symbols for side in wordings):
        raise ValueError("an English side has other symbols than the source side")
    return symbol, rule


def _read_wording(text: str) -> tuple[Side, int]:
    weight, words = _WORDING.fullmatch(text).groups()
    return tuple(words.split()), int(weight or 1)


def _symbols(side: Side) -> Iterator[str]:
    return filter(str.isupper, side)


def _kind(symbol: str) -> str:
    """NOUN2 -> NOUN."""
    return symbol.rstrip("0123456789")
