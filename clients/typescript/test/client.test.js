// Against a real server, whose address is ESKER_URL and whose key is ESKER_KEY.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { Conflict, Esker, EskerError, InvalidInput, NotFound, Unauthorized, Unavailable } from "esker-client";

const { ESKER_URL: url, ESKER_KEY: key } = process.env;
const esker = new Esker({ url, key });

/** Run a server that gives these answers, one after the other, while `use` runs. */
async function answering(answers, use) {
  const seen = [];
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    const [status, body, headers] = answers[Math.min(seen.length, answers.length) - 1];
    if (status !== undefined) response.writeHead(status, headers).end(body);
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  try {
    await use(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
  return seen;
}

test("a memory is written, recalled, corrected, expanded and forgotten", async () => {
  const written = await esker.remember("The ledger lives in Postgres.", { project: "shop", tags: ["storage"] });
  const found = await esker.recall("Where does the ledger live?", { project: "shop" });
  assert.equal(found.hits[0].id, written.id);
  const corrected = await esker.correct(written.id, { content: "The ledger lives in SQLite." });
  assert.equal((await esker.expand(corrected.id)).expanded.memory.content, "The ledger lives in SQLite.");
  assert.equal((await esker.call("getMemory", { path: { memory_id: written.id } })).superseded_by, corrected.id);
  await assert.rejects(esker.correct(written.id, { content: "Too late." }), Conflict);
  assert.ok((await esker.forget(corrected.id)).memories >= 1);
  const left = await esker.recall("Where does the ledger live?", { project: "shop" });
  assert.deepEqual(left.hits.filter((hit) => hit.id === corrected.id), []);
});

test("a session is written to, observed and read", async () => {
  const session = await esker.session({ client: "node", external_id: "s1", project: "shop", timezone: "Europe/Berlin" });
  assert.equal(session.timezone, "Europe/Berlin");
  const said = { external_id: "m1", role: "user", content: "We decided that invoices are numbered by year." };
  assert.equal((await session.add([said])).accepted, 1);
  assert.equal((await session.add([said])).duplicates, 1);
  assert.ok((await session.observe()).groups >= 1);
  assert.match(await session.pack(), /observations/);
  const context = await session.context({ system: "You are helpful.", recall: true });
  assert.equal(context.messages.at(-1).role, "user");
  await session.usage({ input_tokens: 10, output_tokens: 2 });
  assert.equal((await session.memory()).usage.calls, 1);
  assert.equal((await session.event({ kind: "turn_end" })).received, "turn_end");
  const stored = [];
  for await (const message of session.messages()) stored.push(message.external_id);
  assert.deepEqual(stored, ["m1"]);
});

test("pages and an export are read to their end", async () => {
  const contents = Array.from({ length: 520 }, (_, number) => `Shelf ${number} holds the boxes of aisle ${number * 7}.`);
  await esker.call("writeMemories", { body: { memories: contents.map((content) => ({ content, project: "store" })) } });
  const ids = new Set();
  for await (const memory of esker.memories({ project: "store" })) ids.add(memory.id);
  assert.equal(ids.size, 520);
  const types = [];
  for await (const line of esker.export()) types.push(line.type);
  assert.deepEqual([types[0], types.at(-1)], ["header", "end"]);
  assert.ok(types.filter((type) => type === "memory").length >= 520);
});

test("an error is of the type of its status, with its hint and its fields", async () => {
  await assert.rejects(esker.expand("mem_none"), NotFound);
  await assert.rejects(new Esker({ url, key: "wrong" }).status(), Unauthorized);
  const wrong = await esker.recall("x", { limit: 0 }).catch((error) => error);
  assert.ok(wrong instanceof InvalidInput && wrong instanceof EskerError);
  assert.equal(wrong.errors[0].at, "limit");
  assert.equal(wrong.name, "InvalidInput");
  assert.ok(wrong.requestId);
});

test("a busy server is asked again after its Retry-After, and an error is thrown in the end", async () => {
  const busy = [503, JSON.stringify({ detail: "Busy." }), { "Retry-After": "0" }];
  const good = [200, JSON.stringify({ text: "Known." }), { "Content-Type": "application/json" }];
  const seen = await answering([busy, busy, good], async (address) => {
    assert.equal(await new Esker({ url: address }).briefing({ project: "a b" }), "Known.");
  });
  assert.deepEqual(seen, Array(3).fill("GET /v1/briefing?project=a+b"));
  const tried = await answering([busy], async (address) => {
    await assert.rejects(new Esker({ url: address, retries: 1 }).status(), Unavailable);
  });
  assert.equal(tried.length, 2);
});

test("a server that is silent, foreign or absent is unavailable, and a caller can give up", async () => {
  await answering([[undefined]], async (address) => {
    await assert.rejects(new Esker({ url: address, timeout: 50 }).status(), Unavailable);
    const reason = new Error("enough");
    await assert.rejects(new Esker({ url: address }).status({ signal: AbortSignal.abort(reason) }), reason);
  });
  await answering([[404, "<html>"]], async (address) => {
    await assert.rejects(new Esker({ url: address }).status(), /Another program/);
  });
  await assert.rejects(new Esker({ url: "http://127.0.0.1:1" }).status(), /No Esker answers/);
});
