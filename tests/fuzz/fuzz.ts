import { Dice } from "./dice.ts";
import { isAnswered, type Problem, problemIn } from "./evaluate.ts";
import { type HeartbeatPlan, planHeartbeats, sendHeartbeats } from "./heartbeats.ts";
import { rawBytes, sendRaw } from "./raw-connection.ts";
import type { Answer } from "./send.ts";
import type { FuzzTarget, Target } from "./target.ts";
import { type Live, Taste } from "./taste.ts";
import { type WireRequest, wireRequest } from "./wire-request.ts";

/** Which cases to run. */
export interface FuzzPlan {
  readonly seed: number;
  /** The first case. `until` is the end of the range (exclusive); it is infinite if only time limits the run. */
  readonly from: number;
  readonly until: number;
  /** The time after which no further case starts, on the clock of performance.now(). */
  readonly endMs: number;
}

/** A problem, and how to reproduce it. */
export interface Finding {
  readonly caseNumber: number;
  readonly problem: string;
  readonly what: string;
}

export interface FuzzOutcome {
  readonly cases: number;
  readonly findings: readonly Finding[];
  /** The number of calls that ended with each status. The status is that of gRPC or, in other protocols, of HTTP. */
  readonly codes: ReadonlyMap<string, number>;
  /** The number of calls that succeeded as intended. */
  readonly answered: number;
}

/** The number of cases after which everything is restored. */
export const ROUND = 250;
const AT_A_TIME = 12;
/** The number of findings after which a run ends. */
const ENOUGH = 12;

/** Run cases until all have run, the time is up, or there are enough findings. */
export async function fuzz(target: FuzzTarget, plan: FuzzPlan): Promise<FuzzOutcome> {
  const findings: Finding[] = [];
  const codes = new Map<string, number>();
  const known = new Set<string>();
  let answered = 0;
  let live: Live = new Map();
  let next = plan.from;
  const goesOn = () => next < plan.until && performance.now() < plan.endMs && findings.length < ENOUGH;
  const note = (caseNumber: number, problem: Problem, what: string, kind: string) => {
    if (problem === null || known.has(`${kind} ${problem}`)) return;
    known.add(`${kind} ${problem}`);
    findings.push({ caseNumber, problem, what });
  };
  const work = async (end: number) => {
    while (next < end && goesOn()) {
      const caseNumber = next;
      next += 1;
      const made = makeCase(target, plan.seed, caseNumber, live);
      const answer = await made.run();
      const request = made.request;
      note(caseNumber, problemIn(request, answer), describe(made, answer), nameOf(made.target));
      const code = answer.headers["grpc-status"] ?? String(answer.status);
      codes.set(code, (codes.get(code) ?? 0) + 1);
      if (isAnswered(request, answer)) answered += 1;
      note(caseNumber, target.complaint(), `about then: ${describe(made, answer)}`, "the log");
    }
  };
  while (goesOn()) {
    const round = Math.floor(next / ROUND);
    live = await target.beginRound(round);
    const end = Math.min(plan.until, (round + 1) * ROUND);
    await Promise.all(Array.from({ length: AT_A_TIME }, () => work(end)));
    note(next - 1, target.complaint(), "after a round", "the log");
  }
  return { cases: next - plan.from, findings, codes, answered };
}

interface Case {
  readonly target: Target;
  readonly request: WireRequest;
  readonly run: () => Promise<Answer>;
}

function makeCase(fuzzed: FuzzTarget, seed: number, caseNumber: number, live: Live): Case {
  const dice = new Dice(seed, caseNumber);
  const taste = new Taste(dice, live);
  if (dice.chance(0.03)) return rawCase(fuzzed, dice);
  const isOwn = dice.chance(0.93);
  const target = dice.pick(
    fuzzed.targets.filter(({ method }) => method.parent.typeName.startsWith("rollcall.") === isOwn),
  );
  const { method, port } = target;
  const isHeartbeat = port === "agents" && method.parent.typeName.startsWith("rollcall.");
  if (isHeartbeat || dice.chance(0.08)) return heartbeatCase(fuzzed, taste);
  const authorization = credentials(fuzzed, target, taste);
  const isProven = target.caller === "node" && dice.chance(0.8);
  const overlay = isProven ? fuzzed.fleet.proofOf(method, dice.pick(fuzzed.fleet.nodes)) : null;
  const isGrpcOnly = port === "agents";
  const made = wireRequest(method, taste, { authorization, overlay, isGrpcOnly });
  const request = { ...made, headers: { "x-forwarded-for": clientOf(caseNumber), ...made.headers } };
  return { target, request, run: () => fuzzed.senders[port].send(request) };
}

/**
 * Return the address of a separate client behind one proxy for each case. Otherwise the cases would only find the
 * limits of a single address.
 */
function clientOf(caseNumber: number): string {
  return `10.${(caseNumber >> 16) & 255}.${(caseNumber >> 8) & 255}.${caseNumber & 255}`;
}

function heartbeatCase(fuzzed: FuzzTarget, taste: Taste): Case {
  const target = fuzzed.targets.find(({ method }) => method.name === "Heartbeat");
  if (target === undefined) throw new Error("no service serves Heartbeat");
  const plan: HeartbeatPlan = planHeartbeats(target.method, taste, fuzzed.fleet);
  return {
    target,
    request: {
      protocol: "grpc",
      http: 2,
      verb: "POST",
      path: plan.path,
      headers: {},
      body: Buffer.concat(plan.frames),
      isStream: true,
    },
    run: () => sendHeartbeats(fuzzed.origins.agents, plan, fuzzed.fleet),
  };
}

/** A case with a connection that does not follow any protocol. */
function rawCase({ origins, targets }: FuzzTarget, dice: Dice): Case {
  const target = dice.pick(targets);
  const body = rawBytes(dice);
  const request: WireRequest = {
    protocol: "grpc",
    http: 2,
    verb: "POST",
    path: "(a raw connection)",
    headers: {},
    body,
    isStream: true,
  };
  return { target, request, run: () => sendRaw(origins[target.port], body) };
}

function credentials({ fleet }: FuzzTarget, target: Target, { dice }: Taste): string | null {
  const bearer = (role: "viewer" | "operator" | "admin") => `Bearer ${fleet.token(role)}`;
  const { caller } = target;
  if (caller === "replica" && dice.chance(0.7)) return fleet.replicaCredentials(target.method);
  if ((caller === "viewer" || caller === "operator" || caller === "admin") && dice.chance(0.75)) {
    return bearer(dice.chance(0.5) ? caller : "admin");
  }
  return dice.pick([
    null,
    "Bearer nonsense",
    "Bearer ey.ey.ey",
    "Basic dXNlcjpwYXNz",
    "rollcall-replica AAAA.1.AAAA",
    "",
    bearer("viewer"),
    bearer("operator"),
  ]);
}

function nameOf({ method }: Target): string {
  return `${method.parent.typeName}/${method.name}`;
}

function describe({ request }: Case, answer: Answer): string {
  const { headers, body, ...rest } = request;
  const shown = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, name === "authorization" ? value.slice(0, 12) : value]),
  );
  const text = Buffer.from(body).toString(/json/.test(headers["content-type"] ?? "") ? "utf8" : "base64");
  const said = answer.body.toString("latin1").slice(0, 400);
  return [
    JSON.stringify({ ...rest, headers: shown, bytes: body.length, body: text.slice(0, 2_000) }),
    `answer: ${answer.end} ${answer.status} ${JSON.stringify(answer.headers).slice(0, 600)} ${JSON.stringify(said)}`,
  ].join("\n    ");
}
