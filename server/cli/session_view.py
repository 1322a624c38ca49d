"""The memory of one session, as `esker sessions` shows it."""

from esker.server.cli.output import say, table
from esker.server.core.counts import counted
from esker.server.core.json_input import JsonObject

# How many groups are listed; --json has all of them.
_MOST_GROUPS = 20


def show_memory(memory: JsonObject) -> None:
    """Print a session's counters, packs, groups, jobs and usage."""
    _show_session(memory)
    say("\nPacks, newest first")
    table(("version", "why", "tokens", "frozen at (UTC)", "sha256"), [_pack(pack) for pack in memory["pack_versions"]])
    say("\nGroups, newest first")
    groups = memory["groups"]
    columns = ("messages", "kind", "observer", "sent", "written", "observations", "their tokens", "at (UTC)")
    table(columns, [_group(group) for group in groups[:_MOST_GROUPS]])
    if (more := len(groups) - _MOST_GROUPS) > 0:
        say(f"… and {counted(more, 'more group')}.")
    if memory["jobs"]:
        say("\nJobs")
        table(("kind", "state", "next at (UTC)", "tries"), [_job(job) for job in memory["jobs"]])
        _say_errors(memory["jobs"])
    if memory["usage"]:
        _show_usage(memory["usage"])


def _show_session(memory: JsonObject) -> None:
    session, counters = memory["session"], memory["counters"]
    project = f", project {session['project']}" if session["project"] else ""
    say(f"{session['id']} ({session['client']} {session['external_id']}{project}): {memory['state']}")
    last = f", last message {_when(session['last_sent_at'])}" if session["last_sent_at"] else ""
    say(f"Begun {_when(session['begun_at'])}{last} (UTC)")
    waiting = f", {counted(counters['unobserved_tokens'], 'token')} waiting" if counters["unobserved_tokens"] else ""
    share = f"{counters['observed_messages']:,} of {counted(counters['messages'], 'message')} observed"
    say(f"{share} ({memory['coverage']:.0%} in groups){waiting}; {counted(counters['total_tokens'], 'token')} in all")
    rows = [
        f"{counted(counters[f'{kind}s_live'], kind)} live, {counters[f'{kind}s_superseded']:,} superseded"
        for kind in ("observation", "reflection")
    ]
    due = f"{counters['observation_tokens']:,} of {counted(counters['reflect_at_tokens'], 'token')}"
    say(f"{'; '.join(rows)}; {due} until the next reflection")
    if counters["lost"]:
        say(f"{counted(counters['lost'], 'message')} lost: see `esker doctor`.")
    for label, name in (("Current task", "current_task"), ("Suggested continuation", "suggested_continuation")):
        if session[name]:
            say(f"{label}: {session[name]}")


def _pack(pack: JsonObject) -> tuple[object, ...]:
    version = f"{pack['version']}{' (current)' if pack['present'] else ''}"
    return version, pack["reason"], f"{pack['tokens']:,}", _when(pack["created_at"]), pack["sha256"] or "forgotten"


def _group(group: JsonObject) -> tuple[object, ...]:
    span = f"{group['first_seq']}–{group['last_seq']}"
    used = f"{group['input_tokens']:,}", f"{group['output_tokens']:,}"
    rows = group["observations"], f"{group['observation_tokens']:,}"
    return span, group["kind"], group["observer"], *used, *rows, _when(group["created_at"])


def _job(job: JsonObject) -> tuple[object, ...]:
    return job["kind"], job["state"], _when(job["run_after"]), job["attempts"]


def _say_errors(jobs: list[JsonObject]) -> None:
    for job in jobs:
        if job["last_error"]:
            say(f"{job['kind']}: {job['last_error']}")
            if job["hint"]:
                say(f"  {job['hint']}")


def _show_usage(usage: JsonObject) -> None:
    saved, share = usage["savings"], usage["cache_hit_share"]
    say(f"\nUsage, {_counted_by(usage)}")
    sent = f"{counted(saved['sent_tokens'], 'token')} sent, {usage['output_tokens']:,} written"
    cached = "" if share is None else f"; {share:.0%} read from the cache"
    lost = f"; the cached prefix was missing {counted(usage['prefix_lost'], 'time')}" if usage["prefix_lost"] else ""
    say(f"{counted(usage['calls'], 'call')}: {sent}{cached}{lost}")
    more = "more" if saved["left_out_tokens"] >= 0 else "fewer"
    raw = counted(saved["raw_tokens"], "token")
    if saved["left_out_tokens"]:
        say(f"Sending all messages with every call: {raw} by estimate, {abs(saved['left_out_tokens']):,} {more}")
    else:
        say("The requests went as the client sent them, so nothing was saved")
    if saved["saved_usd"] is not None:
        priced = counted(saved["priced_calls"], "call")
        money = f"${saved['cost_usd']:.4f} instead of ${saved['raw_cost_usd']:.4f}"
        say(f"{money} over {priced} with a known price: ${saved['saved_usd']:.4f} saved")


def _counted_by(usage: JsonObject) -> str:
    """Return who counted the tokens of a session's calls."""
    if not usage["gateway_calls"]:
        return "as reported by the client"
    if usage["gateway_calls"] == usage["calls"]:
        return "as the provider counted it, read by the gateway"
    return f"as reported by the client, and for {counted(usage['gateway_calls'], 'call')} read by the gateway"


def _when(moment: str) -> str:
    return moment[:16].replace("T", " ")
