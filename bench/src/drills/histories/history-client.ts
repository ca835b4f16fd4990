import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { seededRandom } from "@rollcall/domain";
import { benchNodeId } from "../../seeds/bench-nodes.ts";
import type { History, OperationName } from "./history.ts";
import { type Attempt, type CallTarget, callNode, type NodeCall, takesRequestId } from "./node-calls.ts";

/** How often each operation is drawn. Deleted nodes register again, so most operations meet a node. */
const WEIGHTS: Readonly<Record<OperationName, number>> = {
  ...{ read: 30, label: 14, cordon: 12, uncordon: 12, approve: 8, reject: 6 },
  ...{ ban: 3, unban: 6, delete: 3, register: 6 },
};
const OPERATIONS = Object.entries(WEIGHTS) as readonly [OperationName, number][];
const TOTAL_WEIGHT = OPERATIONS.reduce((sum, [, weight]) => sum + weight, 0);
/** The share of changes that are given up after an unknown outcome, as if the caller had died. */
const GIVES_UP = 0.3;
const MOST_ATTEMPTS = 200;
const PAUSE_MS = 100;
/** The number of nodes that all clients use at a time, so that their operations overlap. */
const NODES_AT_A_TIME = 4;

/** What the clients of a drill share. */
export interface ClientSetting {
  readonly seed: number;
  readonly history: History;
  readonly nodes: number;
  /** The number of operations of each client. */
  readonly operations: number;
  readonly token: string;
  readonly adminPorts: readonly number[];
  readonly registryPorts: readonly number[];
  /** Resolves when the client may start its next operation. */
  started(): Promise<void>;
  complain(complaint: string): void;
}

/** Makes one operation after the other. The seed determines the operations, but not their timing. */
export class HistoryClient {
  readonly #setting: ClientSetting;
  readonly #number: number;
  readonly #random: () => number;

  constructor(setting: ClientSetting, number: number) {
    this.#setting = setting;
    this.#number = number;
    this.#random = seededRandom(setting.seed + number);
  }

  async run(): Promise<void> {
    const { operations, nodes } = this.#setting;
    for (let count = 0; count < operations; count += 1) {
      await this.#setting.started();
      const first = Math.floor((count * nodes) / operations);
      const nodeIndex = (first + Math.floor(this.#random() * NODES_AT_A_TIME)) % nodes;
      const operation = drawOperation(this.#random());
      const replica = Math.floor(this.#random() * 2);
      const givesUp = this.#random() < GIVES_UP;
      await this.#operate({ operation, nodeIndex, value: `c${this.#number}-${count}` }, replica, givesUp);
    }
  }

  /** Read all nodes once. Each read is repeated until it is answered. */
  async readAll(): Promise<void> {
    for (let nodeIndex = 0; nodeIndex < this.#setting.nodes; nodeIndex += 1) {
      await this.#operate({ operation: "read", nodeIndex, value: "" }, nodeIndex, false);
    }
  }

  /** Repeat a call until it is answered, alternating between the replicas, and record it. */
  async #operate(wanted: Omit<NodeCall, "requestId">, replica: number, givesUp: boolean): Promise<void> {
    const { history } = this.#setting;
    const call = { ...wanted, requestId: takesRequestId(wanted.operation) ? randomUUID() : "" };
    // The time of the first attempt that may have taken effect.
    let openSinceUs: number | null = null;
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
      let callUs = history.nowUs();
      const result = await callNode(this.#target(replica + attempt), call, () => {
        callUs = history.nowUs();
      });
      if (result.kind === "done" || result.kind === "refused") {
        this.#recordAnswer(call, result, callUs, openSinceUs);
        return;
      }
      if (result.kind === "unknown") {
        if (result.fault !== null) this.#setting.complain(result.fault);
        if (call.operation !== "read") openSinceUs ??= callUs;
        const isRepeated = call.operation === "read" || (takesRequestId(call.operation) && !givesUp);
        if (!isRepeated) break;
      }
      await delay(PAUSE_MS);
    }
    if (openSinceUs === null) {
      this.#setting.complain(`${call.operation} was not answered in ${MOST_ATTEMPTS} attempts`);
      return;
    }
    history.record({ ...this.#lineOf(call), callUs: openSinceUs, returnUs: null });
  }

  #recordAnswer(
    call: NodeCall,
    result: Extract<Attempt, { kind: "done" | "refused" }>,
    callUs: number,
    openSinceUs: number | null,
  ): void {
    const { history } = this.#setting;
    const line = this.#lineOf(call);
    const returnUs = history.nowUs();
    if (result.kind === "refused") {
      // Refusals are not remembered for the request id. An earlier attempt can still be on its way, and take effect.
      if (openSinceUs !== null) history.record({ ...line, callUs: openSinceUs, returnUs: null });
      history.record({ ...line, callUs, returnUs, refusal: result.reason });
      return;
    }
    const seen = result.seen === null ? {} : { seen: result.seen };
    history.record({ ...line, callUs: openSinceUs ?? callUs, returnUs, ...seen });
  }

  #lineOf({ operation, nodeIndex, value }: NodeCall) {
    const named = { node: benchNodeId(nodeIndex), client: this.#number, operation };
    return operation === "label" ? { ...named, value } : named;
  }

  #target(replica: number): CallTarget {
    const { adminPorts, registryPorts, token } = this.#setting;
    return {
      adminPort: adminPorts[replica % adminPorts.length] ?? 0,
      registryPort: registryPorts[replica % registryPorts.length] ?? 0,
      token,
    };
  }
}

function drawOperation(random: number): OperationName {
  let rest = random * TOTAL_WEIGHT;
  for (const [operation, weight] of OPERATIONS) {
    rest -= weight;
    if (rest < 0) return operation;
  }
  return "read";
}
