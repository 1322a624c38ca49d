/** A session: one conversation and its memory. */

import type { CallOptions, Connection } from "./connection.js";
import type { components } from "./schema.js";

type Schemas = components["schemas"];

/** A session that is open on the server; `Esker.session` returns it. */
export class Session {
  readonly #connection: Connection;
  readonly #path: { session_id: string };
  /** Esker's id of the session (ses_…). */
  readonly id: string;
  readonly project: string | null;
  readonly timezone: string;

  constructor(connection: Connection, known: Schemas["SessionOut"]) {
    this.#connection = connection;
    this.#path = { session_id: known.id };
    this.id = known.id;
    this.project = known.project;
    this.timezone = known.timezone;
  }

  /** Store new messages, in order; they are observed later. A message that is stored already changes nothing. */
  add(messages: Schemas["MessageIn"][], options?: CallOptions): Promise<Schemas["IngestReport"]> {
    return this.#connection.call("addMessages", { path: this.#path, body: { messages } }, options);
  }

  /** Yield the stored messages, oldest first; pages are fetched as they are needed. */
  async *messages(options?: CallOptions): AsyncGenerator<Schemas["MessageOut"], void, undefined> {
    let after: number | null = 0;
    do {
      const query = { after, limit: 500 };
      const page: Schemas["MessageList"] = await this.#connection.call(
        "listMessages",
        { path: this.#path, query },
        options,
      );
      yield* page.messages;
      after = page.next;
    } while (after !== null);
  }

  /** Return the context pack, a frozen text that goes before the messages. */
  async pack(options?: CallOptions): Promise<string> {
    return (await this.#connection.call("getPack", { path: this.#path }, options)).text;
  }

  /** Return the next request to the Messages API: `system` and `messages`, with figures about them. */
  context(request: Schemas["ContextIn"] = {}, options?: CallOptions): Promise<Schemas["ContextOut"]> {
    return this.#connection.call("buildContext", { path: this.#path, body: request }, options);
  }

  /** Report the usage of a model call, as the API returns it; the same `request_id` counts once. */
  usage(usage: Schemas["UsageIn"], options?: CallOptions): Promise<Schemas["UsageAnswer"]> {
    return this.#connection.call("reportUsage", { path: this.#path, body: usage }, options);
  }

  /** Report an event of the client's context. */
  event(event: Schemas["EventIn"], options?: CallOptions): Promise<Schemas["EventReport"]> {
    return this.#connection.call("reportEvent", { path: this.#path, body: event }, options);
  }

  /** Observe everything that the session contains by now, and wait for it. */
  observe(options?: CallOptions): Promise<Schemas["ObserveReport"]> {
    return this.#connection.call("observeSession", { path: this.#path, query: { wait: true } }, options);
  }

  /** Return the state of the session's memory: counters, packs, groups, jobs, usage and savings. */
  memory(options?: CallOptions): Promise<Schemas["SessionMemoryOut"]> {
    return this.#connection.call("getSessionMemory", { path: this.#path }, options);
  }
}
