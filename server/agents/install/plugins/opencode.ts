// Written by `esker install opencode`; `esker uninstall opencode` removes it.
// Passes OpenCode's events to `esker hook`, and its answers to the model.

import { MARK, ask } from "./ask.ts"

export const Esker = async ({ client, directory }) => {
  if (process.env[MARK]) return {}
  // Contexts by session: fetched once, so that the system prompt stays the same, and again after a compaction.
  const contexts = new Map<string, Promise<string | undefined>>()
  // Whether a session is that of a sub-agent, whose prompts are orders of another agent.
  const agents = new Map<string, boolean>()

  const tell = (message: string) => {
    // Without a terminal there is nobody to show it to.
    void Promise.resolve(client?.tui?.showToast?.({ body: { message, variant: "warning" } })).catch(() => {})
  }

  const send = (event: string, session_id: string, more = {}) =>
    ask("opencode", event, { session_id, cwd: directory, ...more }, tell)

  const start = (session: string, source: string) => {
    const context = send("session.created", session, { source })
    contexts.set(session, context)
    return context
  }

  const isAgent = async (session: string): Promise<boolean> => {
    if (!agents.has(session)) {
      const found = await client?.session?.get?.({ path: { id: session } }).catch(() => undefined)
      agents.set(session, Boolean(found?.data?.parentID))
    }
    return agents.get(session)
  }

  // Errors here must not disturb the agent.
  const quietly = (handler) => async (...given) => {
    try {
      await handler(...given)
    } catch {
      // continue without memory
    }
  }

  return {
    event: quietly(({ event }) => {
      const session = event.properties?.sessionID ?? event.properties?.info?.id
      if (!session) return
      if (event.type === "session.created") {
        agents.set(session, Boolean(event.properties.info?.parentID))
        void start(session, "startup")
      }
      if (event.type === "session.idle") void send("session.idle", session)
      if (event.type === "session.compacted") void start(session, "compact")
      if (event.type === "session.deleted") {
        contexts.delete(session)
        agents.delete(session)
        void send("session.deleted", session)
      }
    }),

    "chat.message": quietly(async (input, output) => {
      const texts = output.parts.filter((part) => part.type === "text" && !part.synthetic)
      const prompt = texts.map((part) => part.text).join("\n")
      const session = input.sessionID
      if (!session || !prompt.trim()) return
      // The ids are those in OpenCode's own store, so a prompt that is also read from there is stored once.
      const parts = texts.map(({ id, text }) => ({ id, text }))
      const text = await send("chat.message", session, { prompt, parts, by_agent: await isAgent(session) })
      if (!text) return
      const id = `prt_esker${Date.now().toString(36)}${Math.random().toString(36).slice(2, 10)}`
      output.parts.push({ id, sessionID: session, messageID: output.message.id, type: "text", text, synthetic: true })
    }),

    "experimental.chat.system.transform": quietly(async (input, output) => {
      const session = input.sessionID
      if (!session) return
      const context = await (contexts.get(session) ?? start(session, "resume"))
      if (context) output.system.push(context)
    }),

    "experimental.session.compacting": quietly(async (input) => {
      if (input.sessionID) await send("session.compacting", input.sessionID)
    }),
  }
}
