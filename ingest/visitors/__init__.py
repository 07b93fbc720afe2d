"""Visitors: readers of one project and UTC day, distinguished without a stored address.

- `address_free`: Texts with 12 bits in place of each address, so that a stored digest does not single out the address.
- `salts`: Random keys by project and day, shared by all processes, and destroyed after two days.
- `majority`: The network that most views of a project, day and source have, for a warning.
- `visitor`: The visitor of an address and a user agent under the salt of a day.
"""
