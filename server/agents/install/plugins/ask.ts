import { spawn } from "node:child_process"

const ESKER = "{{esker}}"
const OPTIONS: string[] = ["{{options}}"]
const MOST_MILLISECONDS = 5000
const GIVEN_UP_MILLISECONDS = 60000
// A hook sets it for what it starts: an agent that runs in there is not to be remembered.
export const MARK = "IN_ESKER_HOOK"

// Answers the context for the model, or nothing; never rejects. The hook goes on when nobody waits for it any more.
export function ask(client: string, event: string, input): Promise<string | undefined> {
  return new Promise((resolve) => {
    const patience = setTimeout(() => resolve(undefined), MOST_MILLISECONDS)
    const done = (context: string | undefined) => {
      clearTimeout(patience)
      resolve(context)
    }
    try {
      const hook = spawn(ESKER, ["hook", ...OPTIONS, client, event], { stdio: ["pipe", "pipe", "ignore"] })
      // A timer of the agent's that must not keep it from ending.
      setTimeout(() => hook.kill(), GIVEN_UP_MILLISECONDS).unref()
      const chunks: Buffer[] = []
      hook.stdout.on("data", (chunk) => chunks.push(chunk))
      hook.on("error", () => done(undefined))
      hook.on("close", () => done(contextOf(Buffer.concat(chunks).toString("utf8"))))
      hook.stdin.on("error", () => {})
      hook.stdin.end(JSON.stringify({ ...input, hook_event_name: event }))
    } catch {
      done(undefined)
    }
  })
}

function contextOf(answer: string): string | undefined {
  try {
    const { context } = JSON.parse(answer)
    return typeof context === "string" && context ? context : undefined
  } catch {
    return undefined
  }
}
