"""The pictures of how memory works."""

from docs_site.drawing import BLUE, GREEN, GREY, ORANGE, Drawing


def overview() -> Drawing:
    """From messages to memories and back into the next session."""
    drawing = Drawing(820, 330, "Messages become memories, which return as a pack and as answers")
    drawing.labelled(20, 120, 120, 70, ["Agent", "any client"], BLUE)
    drawing.labelled(210, 40, 130, 60, ["Messages", "verbatim"])
    drawing.labelled(410, 40, 130, 60, ["Memories", "one fact a row"], GREEN)
    drawing.labelled(640, 40, 160, 60, ["Reflections", "fewer, denser rows"], GREEN)
    drawing.labelled(410, 160, 130, 60, ["Vectors", "for meaning"])
    drawing.labelled(210, 160, 130, 60, ["Answer", "recall_memory"], ORANGE)
    drawing.labelled(210, 250, 130, 60, ["Pack", "frozen text"], ORANGE)
    drawing.arrow((120, 120), (210, 80), "ingest")
    drawing.arrow((340, 70), (410, 70), "observe")
    drawing.arrow((540, 70), (640, 70), "reflect")
    drawing.arrow((475, 100), (475, 160), "")
    drawing.text(485, 135, "embed", size=13)
    drawing.arrow((410, 190), (340, 190), "recall")
    drawing.arrow((210, 185), (140, 165), "")
    drawing.arrow((210, 280), (100, 190), "")
    drawing.line((720, 100), (720, 280))
    drawing.arrow((720, 280), (340, 280), "rank and render")
    return drawing


def coverage() -> Drawing:
    """Every message is in one group or in the raw tail."""
    drawing = Drawing(820, 190, "A session: groups of observed messages, and the unobserved tail behind the cursor")
    drawing.text(20, 30, "One session, oldest message first", bold=True)
    for left, width, name, rows in ((20, 230, "group 1", "4 facts"), (250, 290, "group 2", "nothing worth keeping")):
        drawing.labelled(left, 50, width, 60, [name, rows], GREEN)
    drawing.labelled(540, 50, 260, 60, ["raw tail", "not observed yet"], GREY)
    drawing.arrow((540, 150), (540, 114))
    drawing.text(552, 140, "The cursor moves in the transaction", size=13)
    drawing.text(552, 158, "that stores the facts.", size=13)
    drawing.text(20, 140, "Each message is in exactly one group, or in the tail.", size=13)
    drawing.text(20, 158, "The observer takes the tail from its oldest message on.", size=13)
    return drawing


def prefix() -> Drawing:
    """Which part of a request stays the same, so that the provider's cache holds."""
    drawing = Drawing(820, 300, "Three requests of one session: the part before the breakpoint stays the same")
    rows = (
        ("request 1", 250, "system · pack v1", "messages"),
        ("request 2, some minutes later", 250, "system · pack v1", "new rows · more messages"),
        ("request 3, after a reflection", 210, "system · pack v2", "fewer messages"),
    )
    for number, (name, width, before, after) in enumerate(rows):
        top = 30 + 84 * number
        drawing.text(20, top + 8, name, bold=True)
        drawing.labelled(20, top + 16, width, 40, [before], ORANGE)
        drawing.labelled(20 + width, top + 16, 300 + 120 * (number == 1) - 80 * (number == 2), 40, [after], GREY)
    drawing.text(20, 286, "Orange is frozen: the same bytes until a reflection, an eviction or a forgetting.", size=13)
    return drawing


def question() -> Drawing:
    """How a question becomes an answer, or none."""
    drawing = Drawing(820, 250, "A question is searched by words and by meaning, weighed, and answered or not")
    drawing.labelled(20, 95, 120, 60, ["Question", "and its time"], BLUE)
    drawing.labelled(190, 30, 150, 60, ["Keywords", "BM25, stemmed"])
    drawing.labelled(190, 160, 150, 60, ["Meaning", "nearest vectors"])
    drawing.labelled(395, 95, 150, 60, ["Evidence", "one figure a row"])
    drawing.labelled(600, 30, 200, 60, ["Answer", "best rows, with sources"], GREEN)
    drawing.labelled(600, 160, 200, 60, ["Nothing is known", "all below the floor"], ORANGE)
    drawing.arrow((140, 115), (190, 65))
    drawing.arrow((140, 135), (190, 185))
    drawing.arrow((340, 65), (395, 110))
    drawing.arrow((340, 185), (395, 140))
    drawing.arrow((545, 110), (600, 65))
    drawing.arrow((545, 140), (600, 185))
    return drawing


def team() -> Drawing:
    """The parts of a server for a team."""
    drawing = Drawing(820, 250, "A team's server: proxy, servers, workers, one Postgres")
    drawing.labelled(20, 95, 130, 60, ["Laptops", "a key each"], BLUE)
    drawing.labelled(210, 95, 130, 60, ["Proxy", "TLS"])
    drawing.labelled(410, 30, 150, 60, ["Server 1", "esker serve"], GREEN)
    drawing.labelled(410, 100, 150, 60, ["Server 2", "the same"], GREEN)
    drawing.labelled(410, 170, 150, 60, ["Worker", "esker worker"], GREEN)
    drawing.labelled(640, 95, 160, 60, ["Postgres", "with pgvector"], ORANGE)
    drawing.arrow((150, 125), (210, 125))
    drawing.arrow((340, 115), (410, 65))
    drawing.arrow((340, 130), (410, 130))
    drawing.arrow((560, 65), (640, 110))
    drawing.arrow((560, 130), (640, 125))
    drawing.arrow((560, 195), (640, 145))
    return drawing
