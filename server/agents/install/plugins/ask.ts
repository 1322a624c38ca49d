import { spawn } from "node:child_process"

const ESKER = "{{esker}}"
const OPTIONS: string[] = ["{{options}}"]
const WAIT_MILLISECONDS = 5000
const KILL_MILLISECONDS = 60000
// Environment variable that a hook sets for what it starts: an agent running inside a hook is not recorded.
export const MARK = "IN_ESKER_HOOK"

// Resolves to the context for the model, or undefined; never rejects. After the timeout the hook continues to run.
// `tell` shows a notice to the user.
export function ask(client: string, event: string, input, tell: (notice: string) => void): Promise<string | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(undefined), WAIT_MILLISECONDS)
    const done = (context: string | undefined) => {
      clearTimeout(timer)
      resolve(context)
    }
    try {
      const hook = spawn(ESKER, ["hook", ...OPTIONS, client, event], { stdio: ["pipe", "pipe", "ignore"] })
      // unref: this timer must not keep the agent from exiting.
      setTimeout(() => hook.kill(), KILL_MILLISECONDS).unref()
      const chunks: Buffer[] = []
      hook.stdout.on("data", (chunk) => chunks.push(chunk))
      hook.on("error", () => done(undefined))
      hook.on("close", () => {
        const { context, notice } = answerOf(Buffer.concat(chunks).toString("utf8"))
        if (notice) tell(notice)
        done(context)
      })
      hook.stdin.on("error", () => {})
      hook.stdin.end(JSON.stringify({ ...input, hook_event_name: event }))
    } catch {
      done(undefined)
    }
  })
}

function answerOf(printed: string): { context?: string; notice?: string } {
  const text = (value: unknown) => (typeof value === "string" && value ? value : undefined)
  try {
    const { context, notice } = JSON.parse(printed)
    return { context: text(context), notice: text(notice) }
  } catch {
    return {}
  }
}
