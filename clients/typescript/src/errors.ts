/** Errors of Esker: each says what happened and, in its `hint`, what to do next. */

import type { components } from "./schema.js";

export type Problem = components["schemas"]["Problem"];

/** Something went wrong. `status` is 0 if no server answered. */
export class EskerError extends Error {
  readonly status: number;
  readonly hint: string | undefined;
  /** The wrong fields of a request. */
  readonly errors: NonNullable<Problem["errors"]>;
  /** The id under which the server logged the request. */
  readonly requestId: string | undefined;

  constructor(problem: Partial<Problem> & { detail: string }, cause?: unknown) {
    super(problem.detail, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.status = problem.status ?? 0;
    this.hint = problem.hint;
    this.errors = problem.errors ?? [];
    this.requestId = problem.request_id;
  }
}

/** The request is not valid (422), or too large (413); nothing was changed. */
export class InvalidInput extends EskerError {}
/** The id does not exist in this pool. */
export class NotFound extends EskerError {}
/** A valid key is required. */
export class Unauthorized extends EskerError {}
/** The key may not do this. */
export class Forbidden extends EskerError {}
/** The present state does not allow this. */
export class Conflict extends EskerError {}
/** No server answers, or it is too busy; try again later. */
export class Unavailable extends EskerError {}

const BY_STATUS: Record<number, typeof EskerError> = {
  401: Unauthorized,
  403: Forbidden,
  404: NotFound,
  409: Conflict,
  413: InvalidInput,
  422: InvalidInput,
  429: Unavailable,
};

/** Return the error that an answer describes; `text` is its body. */
export function errorOf(status: number, text: string): EskerError {
  const problem = parsed(text);
  if (problem === undefined) {
    return new Unavailable({ status, detail: `Another program answers at this address, not Esker (status ${status}).` });
  }
  const kind = BY_STATUS[status] ?? (status >= 500 ? Unavailable : EskerError);
  return new kind({ ...problem, status, detail: problem.detail ?? `The server answered ${status}.` });
}

function parsed(text: string): Partial<Problem> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
