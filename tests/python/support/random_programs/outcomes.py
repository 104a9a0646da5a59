"""What comes of a run, and messages by which it is counted."""

import dataclasses
import re

import tilewave as tw


@dataclasses.dataclass
class Outcome:
    """What came of a run: "run", "refused", "raised" as the definition does, or "wrong"."""

    kind: str
    said: str = ""
    detail: str = ""


#: What no refusal of a program that was drawn may say: it is of what is no bounds, or no points.
UNDESERVED = "are not supported; allowed: a pair|OffGrid: coordinates of shape"


def of_errors(errors, raised, allowed=()):
    """The outcome where ranks raised errors, and `raised` is what the definition raised, if anything. `allowed`: types
    of errors that refuse, beside ConfigError.
    """
    first = next(filter(None, errors))
    name, text = type(first).__name__, str(first)
    if not all(errors) or len({(type(error), str(error)) for error in errors}) > 1:
        shown = [f"{type(error).__name__}: {error}" for error in errors]
        return Outcome("wrong", "ranks raise different errors", "\n".join(shown))
    # A Python int has 64 bits in a nest, and more in the definition.
    raises = raised is not None or "of a number beyond 64 bits" in text
    if raises and isinstance(first, tw.KernelError | tw.ConfigError | OverflowError):
        return Outcome("raised", normalised(text))
    refuses = isinstance(first, tw.ConfigError) or isinstance(first, allowed) and "allowed" in text
    if refuses and not re.search(f"does not compile|InternalError|{UNDESERVED}", text):
        return Outcome("refused", normalised(text), text)
    if raised is not None and isinstance(first, allowed):
        return Outcome("raised", normalised(text))
    return Outcome("wrong", f"{name}: {normalised(text)}", text)


def normalised(text):
    """A message without numbers and names, so that equal reasons count together."""
    text = re.sub(r" at 0x\w+", "", text.replace("\n", " "))
    text = re.sub(r"<nest \w+>:\d+:\d+: ", "", text)
    text = re.sub(r"`[^`]*`|'[^']*'|\"[^\"]*\"", "'_'", text)
    text = re.sub(r"\([-\d, .N]*\)|\[[-\d, .N]*\]", "(N)", text)
    text = re.sub(r"-?\b\d+(\.\d+)?(e[-+]?\d+)?\b", "N", text)
    text = re.sub(r"\b[A-GT-Z]\[[^]]*\]", "A[_]", text)
    return text[:220]
