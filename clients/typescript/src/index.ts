/** The client of Esker: one object for one pool of a server. */

import { Connection, type Answer, type CallOptions, type Options, type Request } from "./connection.js";
import type { OperationId } from "./operations.js";
import type { components } from "./schema.js";
import { Session } from "./session.js";

export * from "./errors.js";
export type { Answer, CallOptions, OperationId, Options, Request };
export { Session };

type Schemas = components["schemas"];
/** The documents that the server takes and gives, by their names in its OpenAPI document. */
export type { components, operations } from "./schema.js";
export type Recalled = Schemas["Recalled"];
export type Hit = Schemas["Hit"];
export type Memory = Schemas["SourcedMemory"];
export type Message = Schemas["MessageIn"];
export type Receipt = Schemas["Receipt"];
export type PoolLine = Schemas["PoolLine"];

type Filter = Omit<NonNullable<Request<"listMemories">["query"]>, "before" | "limit">;

/** A pool of a server. Every method throws an `EskerError` that says what happened and, in its `hint`, what to do. */
export class Esker {
  readonly #connection: Connection;

  constructor(options: Options = {}) {
    this.#connection = new Connection(options);
  }

  /** Call any operation of the OpenAPI document by its id. */
  call<K extends OperationId>(operation: K, request: Request<K>, options?: CallOptions): Promise<Answer<K>> {
    return this.#connection.call(operation, request, options);
  }

  /** Find or create a session: the same client and external id always give the same one. */
  async session(session: Schemas["SessionIn"], options?: CallOptions): Promise<Session> {
    return new Session(this.#connection, await this.call("openSession", { body: session }, options));
  }

  /** Ask memory a question. If the answer has `abstained`, nothing in memory is about it. */
  recall(query: string, more: Omit<Schemas["RecallIn"], "query"> = {}, options?: CallOptions): Promise<Recalled> {
    return this.call("recallMemories", { body: { ...more, query } }, options);
  }

  /** Write a memory; the same external id, or the same words in the same project, give the same memory. */
  remember(content: string, more: Omit<Schemas["MemoryIn"], "content"> = {}, options?: CallOptions): Promise<Memory> {
    return this.call("writeMemory", { body: { ...more, content } }, options);
  }

  /** Replace a memory with a corrected one, which has a new id. */
  correct(id: string, correction: Schemas["CorrectionIn"], options?: CallOptions): Promise<Memory> {
    return this.call("correctMemory", { path: { memory_id: id }, body: correction }, options);
  }

  /** Delete a memory and all that repeats it; with `messages` also the words of its source messages. */
  forget(id: string, how: Request<"forgetMemory">["query"] = {}, options?: CallOptions): Promise<Receipt> {
    return this.call("forgetMemory", { path: { memory_id: id }, query: how }, options);
  }

  /** Return the sources of a memory or a passage, and the messages around them. */
  expand(id: string, how: Request<"expandMemory">["query"] = {}, options?: CallOptions): Promise<Schemas["Expansion"]> {
    return this.call("expandMemory", { path: { memory_id: id }, query: how }, options);
  }

  /** Yield memories, newest first; pages are fetched as they are needed. */
  async *memories(filter: Filter = {}, options?: CallOptions): AsyncGenerator<Memory, void, undefined> {
    let before: string | null = null;
    do {
      const query: Request<"listMemories">["query"] = { ...filter, limit: 500, before };
      const page: Schemas["MemoryList"] = await this.call("listMemories", { query }, options);
      yield* page.memories;
      before = page.next;
    } while (before !== null);
  }

  /** Yield the lines of the pool's file. The last one has the type `end`; without it the file was cut off. */
  async *export(options?: CallOptions): AsyncGenerator<PoolLine, void, undefined> {
    const answer = await this.#connection.send("exportPool", {}, options);
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of answer.body ?? []) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) yield JSON.parse(line) as PoolLine;
    }
  }

  /** Return the most important memories of a project, or of the pool, as text. */
  async briefing(about: Request<"getBriefing">["query"] = {}, options?: CallOptions): Promise<string> {
    return (await this.call("getBriefing", { query: about }, options)).text;
  }

  /** Return what the pool contains, and how much of it is not searchable yet. */
  status(options?: CallOptions): Promise<Schemas["PoolStatus"]> {
    return this.call("getStatus", {}, options);
  }
}
