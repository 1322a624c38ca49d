// Written by `esker install pi`; `esker uninstall pi` removes it.
// Passes pi's events to `esker hook`, and its answers to the model.

import { basename } from "node:path"
import { MARK, ask } from "./ask.ts"

const MESSAGE = "esker"

// A session in memory has no file.
function session(ctx) {
  const file = ctx?.sessionManager?.getSessionFile?.() ?? null
  const named = file ? basename(file).replace(/\.jsonl$/, "").split("_").pop() : undefined
  const session_id = ctx?.sessionManager?.getSessionId?.() ?? named
  return { session_id, cwd: ctx?.cwd ?? process.cwd(), transcript_path: file }
}

// Whether a resumed session still contains the context.
function hasContext(ctx): boolean {
  try {
    const entries = ctx.sessionManager.getBranch() as { type?: string; customType?: string }[]
    const last = entries.map((entry) => entry.type).lastIndexOf("compaction")
    return entries.some((entry, index) => index > last && entry.type === "custom_message" && entry.customType === MESSAGE)
  } catch {
    return false
  }
}

export default function (pi) {
  if (process.env[MARK]) return
  let context: Promise<string | undefined> | undefined

  const send = (event: string, ctx, more = {}) => {
    const known = session(ctx)
    const tell = (notice: string) => ctx?.ui?.notify?.(notice, "warning")
    return known.session_id ? ask("pi", event, { ...known, ...more }, tell) : Promise.resolve(undefined)
  }

  // Errors here must not disturb the agent.
  const on = (event: string, handler) =>
    pi.on(event, async (given, ctx) => {
      try {
        return await handler(given ?? {}, ctx)
      } catch {
        return undefined
      }
    })

  on("session_start", (event, ctx) => {
    context = hasContext(ctx) ? undefined : send("session_start", ctx, { source: event.reason })
  })

  on("before_agent_start", async (event, ctx) => {
    const pack = context
    context = undefined
    const parts = await Promise.all([pack, send("before_agent_start", ctx, { prompt: event.prompt })])
    const content = parts.filter(Boolean).join("\n\n")
    return content ? { message: { customType: MESSAGE, content, display: false } } : undefined
  })

  on("session_before_compact", async (_, ctx) => {
    await send("session_before_compact", ctx)
  })

  on("session_compact", (_, ctx) => {
    context = send("session_start", ctx, { source: "compact" })
  })

  on("agent_end", (_, ctx) => {
    void send("agent_end", ctx)
  })

  on("session_shutdown", async (_, ctx) => {
    await send("session_shutdown", ctx)
  })
}
