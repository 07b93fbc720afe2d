"""Writer of small MaxMind DB files (https://maxmind.github.io/MaxMind-DB/), with nodes of two records of 32 bits."""

from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Any

_UNUSED = -1


def write(file: Path, records: Mapping[str, Any], kind: str = "GeoLite2-Country") -> str:
    """Write the records of networks, which do not overlap, and return the path."""
    nodes, data = [[_UNUSED, _UNUSED]], bytearray()
    places = dict[tuple[int, int], int]()
    for text, record in records.items():
        network = ip_network(text)
        length = network.prefixlen + (96 if network.version == 4 else 0)
        bits = f"{int(network.network_address):0128b}"[:length]
        node = 0
        for bit in map(int, bits[:-1]):
            if nodes[node][bit] == _UNUSED:
                nodes[node][bit] = len(nodes)
                nodes.append([_UNUSED, _UNUSED])
            node = nodes[node][bit]
        places[node, int(bits[-1])] = len(data)
        data += _encoded(record)
    for (node, bit), place in places.items():
        nodes[node][bit] = len(nodes) + 16 + place
    tree = b"".join((len(nodes) if each == _UNUSED else each).to_bytes(4, "big") for node in nodes for each in node)
    metadata = {
        "node_count": len(nodes).to_bytes(4, "big"),
        "record_size": b"\0\x20",
        "ip_version": b"\0\6",
        "database_type": kind,
        "languages": [],
        "binary_format_major_version": b"\0\2",
        "binary_format_minor_version": b"\0\0",
        "build_epoch": (1).to_bytes(8, "big"),
        "description": {},
    }
    file.write_bytes(tree + bytes(16) + data + b"\xab\xcd\xefMaxMind.com" + _encoded(metadata))
    return str(file)


def _encoded(value: Any) -> bytes:
    if isinstance(value, str):
        return bytes([2 << 5 | len(value)]) + value.encode()
    if isinstance(value, bytes):  # a whole number: of 64 bits, or as type 5 of 16 and as type 6 of 32
        head = [8, 9 - 7] if len(value) == 8 else [{2: 5, 4: 6}[len(value)] << 5 | len(value)]
        return bytes(head) + value
    if isinstance(value, list):
        return bytes([len(value), 11 - 7]) + b"".join(map(_encoded, value))
    return bytes([7 << 5 | len(value)]) + b"".join(_encoded(each) for item in value.items() for each in item)
