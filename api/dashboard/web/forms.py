"""Posted forms: their values and the faults that were found in them."""

from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from starlette.requests import Request

from api.http import body
from api.http.problems import Problem

BODY_BYTES_MAX = 256 * 1024
"""Maximum size of a posted form, unless its page has another one. The prompt of an agent job is the longest field."""
FIELDS_MAX = 50


@dataclass(slots=True)
class Form:
    """The values of a form by field, and a message for each faulty field."""

    values: dict[str, str] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)

    def text(self, name: str, characters_max: int, *, required: bool = True) -> str:
        """Return a value without surrounding spaces; record a fault if it is missing or too long."""
        value = self.values.get(name, "").strip()
        if required and not value:
            self.fault(name, "Please fill in this field.")
        elif len(value) > characters_max:
            self.fault(name, f"Use at most {characters_max:,} characters, not {len(value):,}.")
        return value

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        """Return a value of a closed set; record a fault for any other value."""
        value = self.values.get(name, "")
        if value not in allowed:
            self.fault(name, f"Choose one of: {', '.join(allowed)}.")
        return value

    def fault(self, name: str, message: str | Exception) -> None:
        """Record the fault of a field as a sentence, unless the field has one."""
        self.faults.setdefault(name, sentence(str(message)))


@dataclass(frozen=True, slots=True)
class Refusal:
    """Status and headers of the page that shows a refused form. The reason is a fault of the form."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)


def sentence(text: str) -> str:
    """Return a text, such as the detail of an error, as a sentence."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"


async def read(request: Request, bytes_max: int = BODY_BYTES_MAX, chunk_s: float = body.CHUNK_S) -> Form:
    """Return the posted form. Of a repeated field the last value counts. `chunk_s` is that of `body.read`.

    Raises:
        Problem: `body-too-large`, `body-too-slow` or `invalid-body`, and those of `body.read`.
    """
    content = await body.read(request, bytes_max, chunk_s, budget=body.ANONYMOUS)
    try:
        pairs = parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="strict")
    except ValueError:  # also UnicodeDecodeError
        raise Problem("invalid-body", "the body is not a form in UTF-8") from None
    return Form(dict(pairs))
