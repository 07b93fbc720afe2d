"""Numbers with their nouns in messages."""


def counted(number: int, noun: str, many: str | None = None) -> str:
    """Return "1 hit" or "2,000 hits"; `many` is the plural of a noun that does not take an s."""
    return f"{number:,} {noun if number == 1 else many or f'{noun}s'}"
