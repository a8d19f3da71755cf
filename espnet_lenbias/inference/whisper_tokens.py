"""Whisper's tokenizer as ESPnet asks for it.

ESPnet was written for releases of Whisper whose tokenizer is one of Hugging Face's, at
`Tokenizer.tokenizer`. Since 20230314 it is one of tiktoken's, of the same labels, at
`Tokenizer.encoding`, and it answers to other names.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tiktoken  # comes with Whisper, which is an extra

_END = "<|endoftext|>"
_MARKS = "add_special_tokens takes a list of labels under each of its names"


def byte_characters() -> dict[int, str]:
    """Return the character that stands for each byte in the name of a label.

    A label is a piece of UTF-8 and may be a part of a character, and its name is a text:
    GPT-2 has bytes that print stand for themselves, and the others for characters behind
    the first 256, in order. A blank is "Ġ".
    """
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in plain]
    moved = {byte: chr(256 + n) for n, byte in enumerate(others)}
    return {**{byte: chr(byte) for byte in plain}, **moved}


_CHARACTERS = byte_characters()
_BYTES = {character: bytes([byte]) for byte, character in _CHARACTERS.items()}


class HuggingFaceView:
    """What ESPnet calls of Hugging Face's tokenizer, answered by Whisper's own.

    Attributes:
        additional_special_tokens: Names that :meth:`add_special_tokens` was given.

    """

    def __init__(self, encoding: "tiktoken.Encoding"):
        """Look at a tokenizer.

        Args:
            encoding: `whisper.tokenizer.Tokenizer.encoding`.
        """
        self._encoding = encoding
        names = encoding.special_tokens_set
        self._special = {name: encoding.encode_single_token(name) for name in names}
        self._names = {label: name for name, label in self._special.items()}
        self._hidden = set(self._names)  # labels that are no part of a text
        # Special labels follow the pieces; Hugging Face counts GPT-2's end label, the
        # first of Whisper's English tokenizer, among the pieces as well.
        self._pieces = min(self._names)
        self.additional_special_tokens: list[str] = []

    @property
    def vocab_size(self) -> int:
        """Labels, those that were added left out."""
        return max(self._pieces, 50257)

    def get_added_vocab(self) -> dict[str, int]:
        """Return name and number of each label that stands for no piece of text."""
        return dict(self._special)

    def add_tokens(self, names: Iterable[str]) -> int:
        """Add labels, such as ESPnet's prompts; return how many are new."""
        new = [name for name in dict.fromkeys(names) if name not in self._special]
        for name in new:
            label = self._encoding.n_vocab + len(self._special_added())
            self._special[name], self._names[label] = label, name
        return len(new)

    def add_special_tokens(self, names: Mapping[str, Sequence[str]]) -> int:
        """Add labels that are no part of a text; return how many are new."""
        count = 0
        for listed in names.values():
            if isinstance(listed, str):
                raise TypeError(_MARKS)
            count += self.add_tokens(listed)
            self._hidden.update(self._special[name] for name in listed)
            self.additional_special_tokens += listed
        return count

    def tokenize(self, text: str, add_special_tokens: bool = False) -> list[str]:
        """Return the names of a text's labels; the names of special labels are these.

        Args:
            text: May hold names of labels, such as ``<|en|>``.
            add_special_tokens: Whisper's tokenizer adds none.
        """
        return self.convert_ids_to_tokens(self._encode(text))

    def convert_ids_to_tokens(
        self, ids: Iterable[int], skip_special_tokens: bool = False
    ) -> list[str]:
        """Return the names of labels, without those that are no part of a text if asked."""
        hidden = self._hidden if skip_special_tokens else ()
        return [self._name(int(label)) for label in ids if int(label) not in hidden]

    def convert_tokens_to_ids(self, tokens: str | Iterable[str]) -> Any:
        """Return the number of a label, or the numbers of several.

        One that there is not is the end label, as in Hugging Face's GPT-2.
        """
        if isinstance(tokens, str):
            return self._label(tokens)
        return [self._label(token) for token in tokens]

    def convert_tokens_to_string(self, tokens: Iterable[str]) -> str:
        """Return the text that labels stand for; bytes that are no UTF-8 become U+FFFD."""
        pieces = (_BYTES.get(c, c.encode()) for token in tokens for c in token)
        return b"".join(pieces).decode("utf-8", errors="replace")

    def _special_added(self) -> list[str]:
        known = self._encoding.special_tokens_set
        return [name for name in self._special if name not in known]

    def _name(self, label: int) -> str:
        if label in self._names:
            return self._names[label]
        piece = self._encoding.decode_single_token_bytes(label)
        return "".join(_CHARACTERS[byte] for byte in piece)

    def _label(self, name: str) -> int:
        if name in self._special:
            return self._special[name]
        piece = b"".join(_BYTES.get(c, c.encode()) for c in name)
        try:
            return self._encoding.encode_single_token(piece)
        except KeyError:
            return self._special[_END]

    def _encode(self, text: str) -> list[int]:
        """Return the labels of a text; those that were added split it first."""
        for name in self._special_added():
            if name in text:
                before, _, after = text.partition(name)
                label = self._special[name]
                return [*self._encode(before), label, *self._encode(after)]
        return self._encoding.encode(text, allowed_special="all")
