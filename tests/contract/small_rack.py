"""The example ring4 with fewer hosts and processes."""

SMALLER = {
    "name: h[1-4]": "name: h[1-2]",
    "name: h[5-6]": "name: h5",
    "ranks: h[1-4]-gpu0": "ranks: h[1-2]-gpu0",
    "id: h[1-6]-gpu0-a": "id: h[1-2,5]-gpu0-a",
    "id: h[1-6]-gpu0-b": "id: h[1-2,5]-gpu0-b",
    "accelerator: h[1-6]-gpu0": "accelerator: h[1-2,5]-gpu0",
    "port: [4, 10, 26, 32, 16, 38]": "port: [4, 10, 16]",
    "port: [5, 11, 27, 33, 17, 39]": "port: [5, 11, 17]",
}


def of_two_ranks(text: str) -> str:
    """The ring of h1 and h2, and one spare between them."""
    for written, instead in SMALLER.items():
        assert written in text, written
        text = text.replace(written, instead)
    return text
