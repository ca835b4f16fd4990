import { setTimeout as delay } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { CordonNodeRequestSchema, UncordonNodeRequestSchema } from "@rollcall/api/rollcall/admin/v1/admin_pb";
import { benchNodeId } from "../../seeds/bench-nodes.ts";
import { UnaryClient } from "../unary-client.ts";

const SERVICE = "/rollcall.admin.v1.AdminService";
const NODES_A_CALL = 50;

/** A fleet that keeps changing until it is stopped. */
export interface ChangingFleet {
  /** The number of changes committed so far. */
  readonly changes: number;
  stop(): Promise<void>;
}

/**
 * Cordon and uncordon nodes through the API, `rate` nodes per second, in a cycle over all nodes. Each change is an
 * event in a separate transaction, like an operator's decision. If the server cannot keep up, the rate falls, and
 * missed changes are not made later.
 */
export async function changeFleet(options: {
  readonly port: number;
  readonly token: string;
  readonly nodes: number;
  readonly rate: number;
}): Promise<ChangingFleet> {
  const { port, token, nodes, rate } = options;
  const client = new UnaryClient({ port, localAddress: "127.0.0.1" }, { authorization: `Bearer ${token}` });
  await client.ready;
  const paceMs = (1_000 * NODES_A_CALL) / rate;
  let isOver = false;
  let changes = 0;
  const running = (async () => {
    for (let call = 0; !isOver; call += 1) {
      const begin = performance.now();
      const from = call * NODES_A_CALL;
      const names = Array.from({ length: NODES_A_CALL }, (_, at) => benchNodeId((from + at) % nodes));
      const selector = { nodes: [...new Set(names)] };
      // Every second pass over the fleet reverts the previous pass.
      if (Math.floor(from / nodes) % 2 === 0) {
        const request = create(CordonNodeRequestSchema, { selector, reason: "as the benchmark says" });
        await client.call(`${SERVICE}/CordonNode`, toBinary(CordonNodeRequestSchema, request));
      } else {
        const request = create(UncordonNodeRequestSchema, { selector });
        await client.call(`${SERVICE}/UncordonNode`, toBinary(UncordonNodeRequestSchema, request));
      }
      changes += selector.nodes.length;
      await delay(Math.max(0, paceMs - (performance.now() - begin)));
    }
  })();
  return {
    get changes() {
      return changes;
    },
    stop: async () => {
      isOver = true;
      await running;
      client.close();
    },
  };
}
