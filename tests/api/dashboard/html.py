"""HTML of a page as a test reads it: the tables by the heading before them, and all texts."""

from html.parser import HTMLParser


class Html(HTMLParser):
    """A parsed page.

    `tables` are the rows of cells of each table, by the text of the last heading or summary before it. `texts` are all
    texts between tags, and `tags` all start tags with their attributes.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: dict[str, list[list[str]]] = {}
        self.texts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._heading, self._in_heading, self._in_cell = "", False, False
        self._outside: list[str] = []
        """The headings before the open `<details>`."""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag == "details":
            self._outside.append(self._heading)
        elif tag in ("h1", "h2", "summary") and not self._in_cell:
            self._heading, self._in_heading = "", True
        elif tag == "tr":
            self.tables.setdefault(self._heading.strip(), []).append([])
            self._in_cell = False
        elif tag in ("td", "th"):
            self.tables[self._heading.strip()][-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "details":
            self._heading = self._outside.pop()
        elif tag in ("h1", "h2", "summary"):
            self._in_heading = False
        elif tag in ("td", "th", "table"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self._in_heading:
            self._heading += data
        elif self._in_cell:
            rows = self.tables[self._heading.strip()]
            rows[-1][-1] = (rows[-1][-1] + data).strip()

    def rows(self, heading: str) -> list[list[str]]:
        """Return the rows of a table without its head."""
        return self.tables.get(heading, [[]])[1:]

    @property
    def text(self) -> str:
        """Return all texts with single spaces."""
        return " ".join(" ".join(self.texts).split())

    def links(self) -> list[str]:
        return [attributes["href"] or "" for tag, attributes in self.tags if tag == "a" and "href" in attributes]
