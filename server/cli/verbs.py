"""The verbs of the command line, in the groups of the help page: each with its module and its line there."""

PANELS: dict[str, dict[str, tuple[str, str]]] = {
    "Ask and write": {
        "recall": ("memories", "Ask memory a question."),
        "search": ("memories", "Ask memory a question: another name of `recall`."),
        "expand": ("expand", "Show the sources of a memory or a passage, and the messages around them."),
        "memories": ("memories", "List memories, newest first."),
        "remember": ("memories", "Write a memory about the current repository; outside of one, about all projects."),
        "edit": (
            "memories",
            "Replace a memory by one with other words, priority, category or tags; the old one is kept as superseded.",
        ),
        "pin": ("memories", "Put a memory first in every pack; the row that it was is kept as superseded."),
        "confirm": ("memories", "Confirm that a memory which an agent wrote is your word."),
        "briefing": ("briefing", "Show the most important memories of a project, and the state of its latest session."),
        "open": ("open_page", "Open the page of the server in the browser: what memory holds, and why."),
        "status": ("status", "Show what memory contains, and how much of it cannot be found yet."),
    },
    "Sessions and projects": {
        "ingest": ("ingest", "Send transcripts of agents to the server, except what was sent before."),
        "sessions": ("sessions", "List sessions, the most recently begun first, or show the memory of one."),
        "observe": ("sessions", "Observe the unobserved messages of one session or of all."),
        "reflect": ("reflections", "Condense memories of one session, of all sessions, or of the pool."),
        "reflections": ("reflections", "List reflections, show the changes of one, or undo it."),
        "pack": ("sessions", "Show the context pack of a session."),
        "session": ("projects", "Delete a session."),
        "project": ("projects", "List, rename, merge and delete projects."),
    },
    "Forget and exclude": {
        "forget": (
            "forgetting",
            "Delete memories, passages, or all that says some words, with what was drawn from it and repeats it.",
        ),
        "quarantine": (
            "quarantine",
            "Take a source out of recall and packs, or bring it back; without options, list quarantines.",
        ),
        "exclude": ("exclude", "Exclude projects and directories from memory, or show what is excluded."),
        "scan": ("scan", "Look through everything that is stored for secrets, and mask them."),
    },
    "Files": {
        "export": ("exporting", "Write a pool's memory into files: all of it, a MEMORY.md, daily logs."),
        "sync": ("sync", "Synchronise memory with a folder of Markdown files, which people edit."),
        "import": ("importing", "Read a file that `esker export jsonl` has written."),
        "openapi": ("openapi", "Write the OpenAPI document, from which clients in any language are generated."),
        "backup": (
            "backup",
            "Write the whole database into one file, as it is at one moment; servers keep running.",
        ),
        "restore": ("backup", "Restore a backup, check it, and put it in the place of the database."),
    },
    "Set up": {
        "demo": ("demo", "Show what Esker does on a sample transcript."),
        "setup": ("setup", "Choose what writes memories, try one call, and write the settings file."),
        "install": ("install", "Set agent CLIs up for Esker: its MCP server and its hooks."),
        "uninstall": ("install", "Remove Esker from agent CLIs."),
        "gateway": ("gateway", "Start a program whose requests to models go through the gateway."),
        "config": ("config", "Show each setting, its value, and where that comes from."),
        "doctor": ("doctor", "Check everything that can be wrong and say how to fix it."),
        "key": ("admin", "Create, list and revoke keys."),
        "pool": ("admin", "Create, list and configure pools."),
    },
    "Run": {
        "serve": ("serve", "Run the server: HTTP, MCP and an embedding worker."),
        "service": ("service", "Have the server run by itself: systemd, launchd, or a start by hooks."),
        "logs": ("logs", "Show the log of the server that a service or a hook started."),
        "worker": ("serve", "Run an embedding worker alone."),
        "mcp": ("mcp", "Speak MCP on standard input and output, for clients that start their servers."),
        "hook": ("hook", "Handle an event of an agent CLI, with JSON on standard input."),
        "spool": ("spool", "Show the parcels that hooks could not send yet, or send or delete them."),
        "jobs": ("jobs", "Show jobs, run one again, or drop one."),
        "migrate": ("admin", "Bring the database's schema up to date."),
        "reembed": ("reembed", "Switch to another embedding model, or back."),
    },
    "Look into it": {
        "audit": ("audit", "Show who wrote, read in bulk, exported, forgot or changed keys, newest first."),
        "spend": ("spend", "Show the cost of language models, and the daily cap."),
        "savings": ("savings", "Show the tokens of clients' model calls beside those of the raw histories."),
        "eval": ("evaluation", "Measure how well a pool's memory can be found, and report faults."),
        "bench": ("bench", "Measure Esker's speed on this machine, each figure beside its floor."),
    },
}

VERBS: dict[str, tuple[str, str]] = {verb: about for verbs in PANELS.values() for verb, about in verbs.items()}
"""Verb → its module and its line in the help."""
