"""Answer of the verification of one hit."""

from typing import Literal, NamedTuple

State = Literal["verified", "signed_known_key", "spoofed", "invalid_signature", "claimed", "not_checked"]


class Verdict(NamedTuple):
    """State of a hit's claim, and the evidence for the state, such as `list:openai-gptbot 2026-09-02`.

    `verified_by` is None for `claimed` and `not_checked`, which rest on no evidence, and for an `invalid_signature`
    whose host is not known.
    """

    state: State
    verified_by: str | None


CLAIMED = Verdict("claimed", None)
NOT_CHECKED = Verdict("not_checked", None)
