"""Country and language of people, without their addresses.

- `country`: Two-letter code of a country (ISO 3166-1), from an edge network's header or the browser's time zone.
- `language`: First language of an `Accept-Language` header.
"""
