"""Country and language of people, without their addresses.

- `country`: Two-letter code of a country (ISO 3166-1), from an edge network's header or the browser's time zone.
- `database`: Country of an address, from a MaxMind DB file of the owner.
- `language`: First language of an `Accept-Language` header.
"""
