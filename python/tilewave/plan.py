"""Plans: every choice that turns a nest into schedules, as a value."""
import dataclasses
import json
from pathlib import Path

from tilewave import _core
from tilewave.errors import ConfigError

CHOICES = ("grid", "tile", "factors", "mapping_dim", "grouping", "schedule", "lookahead",
           "slices", "chunk_bytes", "row", "storage")


@dataclasses.dataclass
class Plan:
    """How a sweep is cut and ordered: print it, edit it, save it, pass it back to `run`.

    Attributes
    ----------
    grid : tuple of int
        Ranks along each dimension.
    mapping_dim : int
        Tiles along this dimension stay on one CPU.
    tile : tuple of int
        Points of a tile along each dimension.
    factors : tuple of int
        Lanes of a rank along each dimension (m of athanasaki2002).
    grouping : str
        "hyperplane" or "vertical" (athanasaki2002).
    schedule : str
        "overlapping" or "blocking".
    lookahead : int
        Tiles that receives are posted ahead.
    slices : int
        Parts of a tile that lanes pipeline (vertical).
    chunk_bytes : int
        Most bytes of a packed message.
    row : tuple of int
        From one point of a kernel's row to the next: a unit vector, or one with a 1 and a -1; empty
        for the last dimension. Rows whose points do not depend on each other become vectors.
    storage : str
        "plain" (row-major), or "skewed": the points of a row are neighbours in memory.
    """

    grid: tuple
    mapping_dim: int
    tile: tuple
    factors: tuple
    grouping: str = "hyperplane"
    schedule: str = "overlapping"
    lookahead: int = 1
    slices: int = 1
    chunk_bytes: int = 262144
    row: tuple = ()
    storage: str = "plain"

    @property
    def threads(self):
        """Lanes of a rank."""
        return self._to_core().lanes

    @classmethod
    def _from_core(cls, core):
        return cls(**{name: getattr(core, name) for name in CHOICES})

    def _to_core(self):
        core = _core.Plan()
        for name in CHOICES:
            _assign(core, name, getattr(self, name))
        return core

    def save(self, path):
        """Write the plan as JSON."""
        Path(path).write_text(json.dumps(dataclasses.asdict(self), indent=2) + "\n")

    @classmethod
    def load(cls, path):
        """Read a plan that `save` wrote.

        Raises
        ------
        ConfigError
            When the file is no plan.
        """
        try:
            data = json.loads(Path(path).read_text())
            return cls(**{name: tuple(value) if isinstance(value, list) else value
                          for name, value in data.items()})
        except (TypeError, ValueError, AttributeError) as error:
            raise ConfigError(f"{path} is no saved plan: {error}") from None

    def __str__(self):
        return "\n".join(f"{name:12} {getattr(self, name)}" for name in CHOICES)


ALLOWED = {"grid": "a tuple of integers", "tile": "a tuple of integers", "factors": "a tuple of integers",
           "mapping_dim": "an integer", "lookahead": "an integer", "slices": "an integer",
           "chunk_bytes": "an integer", "grouping": "'hyperplane', 'vertical'",
           "schedule": "'blocking', 'overlapping'", "row": "a tuple of integers",
           "storage": "'plain', 'skewed'"}


def _assign(core, name, value):
    try:
        setattr(core, name, value)
    except TypeError:
        raise ConfigError(f"{name}: given {value!r}; allowed: {ALLOWED[name]}") from None


def make_plan(problem, context, choices):
    """The plan for a problem; `choices` (validated here) are obeyed, the rest is picked."""
    probe = _core.Plan()
    for name, value in choices.items():
        if name in CHOICES:
            _assign(probe, name, value)
    threads = choices.get("threads", context.threads)
    if not isinstance(threads, int) or not 1 <= threads:
        raise ConfigError(f"threads: given {threads!r}; allowed: an integer >= 1")
    fixed = {name: value for name, value in choices.items() if name in CHOICES}
    return _core.make_plan(problem, context.size, threads, context._core.machine(), **fixed)
