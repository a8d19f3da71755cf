"""The errors that this package raises, which its users may want to catch."""


class OptionError(ValueError):
    """An option that this model, or this machine, cannot follow."""


class AudioError(ValueError):
    """Audio that cannot be decoded.

    It is empty, too short for the encoder, of a wrong shape, damaged, holds NaN or
    infinity, or 16 bits in integers of more, which would be next to silence.
    """


class ScorerError(RuntimeError):
    """A scorer returned what nothing can be ranked by: NaN, or plus infinity."""


class ClusterError(ValueError):
    """No workers can be had in the way that was asked for."""


class OtherRunError(ValueError):
    """The output folder is in use, or holds the results of a run with other options."""


class Terminated(KeyboardInterrupt):
    """A signal that ends a run as Ctrl-C does; its number is the argument."""


def one_line(error: BaseException) -> str:
    """Return the message of an exception as one line; its type where it has none."""
    return " ".join(str(error).split()) or type(error).__name__


def shown(text: object, instead: str = "?") -> str:
    """Return a text, such as the name of a file, without what would steer a terminal."""
    return "".join(sign if sign.isprintable() else instead for sign in str(text))


def in_a_line(error: BaseException) -> str:
    """Return the type and the message of an exception as one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
