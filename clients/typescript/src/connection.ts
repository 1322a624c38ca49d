/** Typed calls of the server's operations, with retries, time limits and errors as types. */

import { Unavailable, errorOf } from "./errors.js";
import { ROUTES, type OperationId } from "./operations.js";
import type { operations } from "./schema.js";

/** Statuses after which a request is sent again: the server was overloaded and changed nothing. */
const BUSY = new Set([429, 503]);
const MOST_TRIES = 4;
const LONGEST_PAUSE_MS = 10_000;
const USUAL_PAUSE_MS = 1_000;

export interface Options {
  /** Address of the server; by default http://127.0.0.1:8377. */
  url?: string;
  /** A key, which selects the pool. The owner of a local server needs none. */
  key?: string;
  /** Milliseconds that one try may take; by default a minute. */
  timeout?: number;
  /** How often a request to a busy server is sent again; by default three times. */
  retries?: number;
  /** A `fetch` to use instead of the global one. */
  fetch?: typeof fetch;
}

export interface CallOptions {
  /** Ends the call. */
  signal?: AbortSignal;
}

type Content<R> = R extends { content: infer C }
  ? C extends { "application/json": infer T }
    ? T
    : string
  : never;
type Answers<K extends OperationId> = operations[K]["responses"];

/** The answer to an operation, as the document describes it. */
export type Answer<K extends OperationId> = {
  [S in keyof Answers<K>]: S extends 200 | 201 | 202 ? Content<Answers<K>[S]> : never;
}[keyof Answers<K>];

type Body<K extends OperationId> = NonNullable<operations[K]["requestBody"]> extends { content: infer C }
  ? C[keyof C]
  : never;
type WithBody<K extends OperationId> = [NonNullable<operations[K]["requestBody"]>] extends [never]
  ? { body?: never }
  : undefined extends operations[K]["requestBody"]
    ? { body?: Body<K> }
    : { body: Body<K> };

/** The parts of a request: parameters of its path and its query, and its body. */
export type Request<K extends OperationId> = Pick<operations[K]["parameters"], "path" | "query"> & WithBody<K>;

interface Parts {
  path?: Record<string, unknown> | undefined;
  query?: Record<string, unknown> | undefined;
  body?: unknown;
}

/** A connection to one server; it opens nothing before the first call. */
export class Connection {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #timeout: number;
  readonly #retries: number;
  readonly #fetch: typeof fetch;

  constructor(options: Options) {
    this.#url = (options.url ?? "http://127.0.0.1:8377").replace(/\/+$/, "");
    this.#headers = options.key === undefined ? {} : { Authorization: `Bearer ${options.key}` };
    this.#timeout = options.timeout ?? 60_000;
    this.#retries = options.retries ?? MOST_TRIES - 1;
    this.#fetch = options.fetch ?? globalThis.fetch;
  }

  /** Call an operation and return its answer. Throws an `EskerError`. */
  async call<K extends OperationId>(operation: K, request: Request<K>, options?: CallOptions): Promise<Answer<K>> {
    const answer = await this.send(operation, request, options);
    const text = await answer.text();
    const isJson = answer.headers.get("content-type")?.startsWith("application/json") ?? false;
    return (isJson ? JSON.parse(text) : text) as Answer<K>;
  }

  /** Call an operation and return its answer before its body is read. Throws an `EskerError`. */
  async send<K extends OperationId>(operation: K, request: Request<K>, options: CallOptions = {}): Promise<Response> {
    const [method, template] = ROUTES[operation];
    const parts: Parts = request;
    const address = this.#url + filled(template, parts.path ?? {}) + asQuery(parts.query ?? {});
    for (let left = this.#retries; ; left--) {
      const answer = await this.#exchange(address, method, parts.body, options.signal);
      if (answer.ok) return answer;
      const error = errorOf(answer.status, await answer.text());
      if (!BUSY.has(answer.status) || left <= 0) throw error;
      await pause(answer.headers.get("retry-after"), options.signal);
    }
  }

  async #exchange(address: string, method: string, body: unknown, signal?: AbortSignal): Promise<Response> {
    const limit = AbortSignal.timeout(this.#timeout);
    const isText = typeof body === "string";
    const type = { "Content-Type": isText ? "application/x-ndjson" : "application/json" };
    try {
      return await this.#fetch(address, {
        method,
        headers: body === undefined ? this.#headers : { ...this.#headers, ...type },
        body: body === undefined ? null : isText ? body : JSON.stringify(body),
        signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
      });
    } catch (error) {
      signal?.throwIfAborted();
      const hint = "Start it with `esker serve`, or give its address as `url`.";
      throw new Unavailable({ detail: `No Esker answers at ${this.#url} (${reason(error)}).`, hint }, error);
    }
  }
}

function reason(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error ? cause.message || cause.name : String(cause);
}

function filled(template: string, path: Record<string, unknown>): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(path[name])));
}

function asQuery(query: Record<string, unknown>): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    [value].flat().filter((each) => each !== undefined && each !== null).map((each) => [name, String(each)]),
  );
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs)}`;
}

/** Wait as long as a `Retry-After` says; a date instead of seconds is ignored. */
async function pause(retryAfter: string | null, signal?: AbortSignal): Promise<void> {
  const seconds = /^\d+$/.test(retryAfter ?? "") ? Number(retryAfter) * 1_000 : USUAL_PAUSE_MS;
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, Math.min(LONGEST_PAUSE_MS, seconds));
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
