import type { ReportHeartbeatRequest } from "@rollcall/api/rollcall/health/v1/health_query_pb";
import { handOver, LocalSessions, type Peers, type SessionHost, type UnaryAnswer } from "@rollcall/health/parts";
import type { Logger } from "@rollcall/process";
import type { Observer } from "./invariants.ts";
import type { Schedule } from "./schedule.ts";
import type { SimulatedClient } from "./simulated-peers.ts";
import { indexOf } from "./simulation-options.ts";

const NONCE = new Uint8Array(32);
const STORE = { clusterSecret: () => Buffer.alloc(32, 7) };

/** The shipped LocalSessions, which also reports each accepted Beat to an observer. */
export class ObservedLocalSessions extends LocalSessions {
  readonly #schedule: Schedule;
  readonly #observer: Observer;

  constructor(host: SessionHost, schedule: Schedule, observer: Observer) {
    super({ store: STORE, host });
    this.#schedule = schedule;
    this.#observer = observer;
  }

  override take(request: ReportHeartbeatRequest): UnaryAnswer {
    const answer = super.take(request);
    if (answer.ok && request.step.case === "beat") this.#observer.heard(indexOf(request.nodeId), this.#schedule.nowMs);
    return answer;
  }
}

/** The part of ReportHeartbeat after the checks of the challenge and the proof. */
export async function takeCall(
  process: {
    readonly host: SessionHost;
    readonly unary: LocalSessions;
    readonly peers: Peers<SimulatedClient>;
    readonly log: Logger;
  },
  request: ReportHeartbeatRequest,
): Promise<UnaryAnswer> {
  const { host, unary, peers, log } = process;
  const { step, nodeId } = request;
  if (step.case !== "open") return handOver({ replica: host.replica, unary, peers, log }, request);
  if (step.value.hello === undefined) throw new Error("the contract requires a hello");
  return unary.open(step.value.hello, NONCE, `caller-${nodeId}:1`);
}
