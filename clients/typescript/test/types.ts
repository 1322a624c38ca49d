/** Compiled, not run: the types say what a caller needs, and refuse what the server would refuse. */

import { Esker, type Answer, type Hit } from "../src/index.js";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <T extends true>(): T => true as T;

const esker = new Esker();

holds<Equal<Answer<"recallMemories">["hits"], Hit[]>>();
holds<Equal<Answer<"exportPool">, string>>();
holds<Equal<Hit["kind"], "observation" | "reflection" | "note" | "manual" | null>>();
holds<Equal<Hit["truncated"], boolean>>();
holds<Equal<Answer<"checkLiveness">["status"], "alive">>();

void esker.recall("Where is the ledger?", { limit: 3, tier: "memories" });
void esker.call("getStatus", {});
void esker.call("reflectPool", { body: { dry_run: true } });
void esker.call("reflectPool", {});
// @ts-expect-error: an option that does not exist
void esker.recall("Where is the ledger?", { limits: 3 });
// @ts-expect-error: a value that is not allowed
void esker.recall("Where is the ledger?", { tier: "all" });
// @ts-expect-error: the path is missing
void esker.call("getMemory", {});
// @ts-expect-error: the body is missing
void esker.call("writeMemory", {});
// @ts-expect-error: no such operation
void esker.call("rememberEverything", {});
