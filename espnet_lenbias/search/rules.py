"""What becomes of hypotheses that end: the contract of the rules, one for each search.

At each position N a rule sees all one-label extensions of the running hypotheses. It
says which are kept, which of these have ended and how they rank, and which utterances
need no further position. Like a scorer's adapter, a rule keeps nothing on itself: its
state is passed in and out, so that a position can be tried and dropped again.

The rules here are :mod:`.explicit_length_rule` and :mod:`.simple_rule`; CONTRIBUTING shows
how to write another one. Symbols are those of :mod:`espnet_lenbias.search.pruning`.
"""

from typing import Any, NamedTuple, Protocol

import torch

from espnet_lenbias.options.search_conf import Coverage
from espnet_lenbias.search.pruning import Candidates, Grid


class Decision(NamedTuple):
    """What a rule decides about the extensions of one position.

    All tensors are on one device: that of the scores, or the CPU if the rule has fetched
    its candidates (:func:`espnet_lenbias.search.fetch.on_cpu`).
    """

    candidates: Candidates  # (A, C)
    kept: torch.Tensor  # (A, C) bool
    ended: torch.Tensor  # (A, C) bool, of the kept ones
    ranking_score: torch.Tensor  # (A, C) float64, of the ended ones
    cannot_improve: torch.Tensor  # (A,) bool: no later hypothesis can win
    has_result: torch.Tensor  # (A,) bool: there is an ended hypothesis to return
    trace_row: torch.Tensor  # (A, R) float64, one value for each of `trace_columns`
    # (A,) bool: a later hypothesis could win, and the search stops all the same, if
    # there is an ended one; None: nowhere
    given_up: torch.Tensor | None = None


class EndingRule(Protocol):
    """What the loop over positions asks a search's rule for."""

    @property
    def trace_columns(self) -> tuple[str, ...]:
        """The lists of :class:`espnet_lenbias.Trace` that a decision's row fills.

        `kept`, `running` and `best_final` are among them.
        """

    @property
    def coverage_options(self) -> Coverage | None:
        """Those of the coverage term that `step` is to be given; None: none."""

    def start(self, n_utts: int, device: torch.device) -> Any:
        """Return the state of `n_utts` slots in which nothing has ended.

        Args:
            n_utts: How many.
            device: That of the scores; a rule that decides on the CPU has its state there.
        """

    def may_end(self, weighted: torch.Tensor) -> torch.Tensor | None:
        """Tell which hypotheses may end at this position.

        Args:
            weighted: (n, V) weighted log-probs of the labels at this position.

        Returns:
            (n,) bool; None: all of them.
        """

    def step(
        self,
        state: Any,
        q: torch.Tensor,
        grid: Grid,
        length: int,
        coverage: torch.Tensor | None,
    ) -> tuple[Any, Decision]:
        """Prune the extensions of position N and account for what ends there.

        Args:
            state: Of A slots, from `start`, `step` or `select`.
            q: (n, V) accumulated weighted scores of all extensions (eq. 1); -inf for
                what must not be chosen.
            grid: Which rows belong to which slot.
            length: N.
            coverage: (n,) coverage term of the hypotheses; None: there are no
                `coverage_options`.

        Returns:
            The state after this position, and the decision. The state that was passed
            in stays valid.
        """

    def select(self, state: Any, slots: torch.Tensor) -> Any:
        """Return the state of these (A',) slots: the other utterances have finished.

        Args:
            state: Of A slots, after `step`.
            slots: On the device of the decision.
        """

    def in_contest(self, state: Any, n_ended: int) -> torch.Tensor:
        """Tell which of all that have ended can be returned, when all slots are gone.

        Args:
            state: The last one.
            n_ended: How many have ended in all, numbered in the order of the positions,
                at one position by slot and candidate.

        Returns:
            (n_ended,) bool, on the CPU.
        """
