"""Numbers with their nouns in messages."""


def counted(number: int, noun: str, many: str | None = None) -> str:
    """Return a number with its noun, such as "1 hit" or "2,000 hits". `many` is an irregular plural."""
    return f"{number:,} {noun if number == 1 else many or f'{noun}s'}"
