// Written by `esker install pi`; `esker uninstall pi` removes it.
// Hands pi's events to `esker hook`, and what that answers to the model.

import { basename } from "node:path"
import { MARK, ask } from "./ask.ts"

const MESSAGE = "esker"

// A session that lives in memory alone has no file, and without an id nothing can be said of it.
function session(ctx) {
  const file = ctx?.sessionManager?.getSessionFile?.() ?? null
  const named = file ? basename(file).replace(/\.jsonl$/, "").split("_").pop() : undefined
  const session_id = ctx?.sessionManager?.getSessionId?.() ?? named
  return { session_id, cwd: ctx?.cwd ?? process.cwd(), transcript_path: file }
}

// A session that is taken up again may hold the context still.
function told(ctx): boolean {
  try {
    const entries = ctx.sessionManager.getBranch() as { type?: string; customType?: string }[]
    const last = entries.map((entry) => entry.type).lastIndexOf("compaction")
    return entries.some((entry, place) => place > last && entry.type === "custom_message" && entry.customType === MESSAGE)
  } catch {
    return false
  }
}

export default function (pi) {
  if (process.env[MARK]) return
  let context: Promise<string | undefined> | undefined

  const tell = (event: string, ctx, more = {}) => {
    const known = session(ctx)
    return known.session_id ? ask("pi", event, { ...known, ...more }) : Promise.resolve(undefined)
  }

  // Nothing that goes wrong in here may disturb the agent.
  const on = (event: string, handler) =>
    pi.on(event, async (given, ctx) => {
      try {
        return await handler(given ?? {}, ctx)
      } catch {
        return undefined
      }
    })

  on("session_start", (event, ctx) => {
    context = told(ctx) ? undefined : tell("session_start", ctx, { source: event.reason })
  })

  on("before_agent_start", async (event, ctx) => {
    const pack = context
    context = undefined
    const parts = await Promise.all([pack, tell("before_agent_start", ctx, { prompt: event.prompt })])
    const content = parts.filter(Boolean).join("\n\n")
    return content ? { message: { customType: MESSAGE, content, display: false } } : undefined
  })

  on("session_before_compact", async (_, ctx) => {
    await tell("session_before_compact", ctx)
  })

  on("session_compact", (_, ctx) => {
    context = tell("session_start", ctx, { source: "compact" })
  })

  on("agent_end", (_, ctx) => {
    void tell("agent_end", ctx)
  })

  on("session_shutdown", async (_, ctx) => {
    await tell("session_shutdown", ctx)
  })
}
