"""Lines of NIST's trn, the transcripts that sclite reads.

sclite reads braces as alternatives, the word @ as no word, and `;;` or `**` at the
beginning of a line as a comment: it leaves words out, or crashes. A trn file has no way
to quote them, so full-width signs stand for them there, in references and hypotheses
alike.
"""

import re

# Signs of words that sclite does not take as they are -> their full-width forms.
_FULL_WIDTH = str.maketrans("{}@;*", "\uff5b\uff5d\uff20\uff1b\uff0a")
# Parentheses end an utterance's name: full-width ones stand for them, and ornamental ones
# for these, as there may be utterances of both names.
_NO_PARENTHESES = str.maketrans("()\uff08\uff09", "\uff08\uff09\u2768\u2769")
_NO_WORD = re.compile(r".*[{}]|;;|\*\*|@$")


def trn_line(key: str, text: str, speaker: str) -> str:
    """Return a line ``TEXT (speaker-utterance)``, whose words sclite takes as words."""
    utterance = f"{speaker}-{key}".translate(_NO_PARENTHESES)
    return f"{' '.join(map(plain_word, text.split()))} ({utterance})\n"


def plain_word(word: str) -> str:
    """Return a word as sclite takes it as it is."""
    return word.translate(_FULL_WIDTH) if _NO_WORD.match(word) else word


def usual_speaker(key: str) -> str:
    """Return the speaker of an utterance of which nothing else tells: up to the "-"."""
    return key.partition("-")[0]
